"""Figures: the numbers of the records, labels that are text."""

import math

import pytest
from table_model import SPECIAL, TableModel, TableVocabulary

from fillmask_ui.filling import fill
from fillmask_ui.records import Candidate, MaskFilling
from fillmask_ui.show.charts import explore as plots


def mask_of(*tokens):
    words = [(token, token.removeprefix("##")) for token in tokens]
    share = 1 / len(tokens)
    return MaskFilling(
        1,
        math.log(len(tokens)),
        tuple(
            Candidate(rank, 10 + rank, token, word, share, -math.log(share))
            for rank, (token, word) in enumerate(words, start=1)
        ),
    )


def test_bars_are_the_probabilities_best_on_top():
    mask = fill(TableModel(), "the [MASK] sat", top_k=12).masks[0]
    figure = plots.candidates_figure(mask, key_prefix="v:0:")
    bar = figure.data[0]
    assert list(bar.x) == [c.probability for c in mask.candidates]
    assert list(bar.y) == list(range(1, 13))
    assert figure.layout.yaxis.autorange == "reversed"
    assert list(figure.layout.yaxis.ticktext) == [c.token for c in mask.candidates]
    assert list(bar.customdata) == [f"v:0:{c.token_id}" for c in mask.candidates]


def test_special_tokens_are_labels_not_formatting():
    """Plotly reads `<s>`, `<b>` and `<br>` as formatting unless they are escaped."""
    figure = plots.candidates_figure(mask_of("<s>", "<b>", "<br>", "&lt;", "$x$"))
    assert list(figure.layout.yaxis.ticktext) == [
        *("&lt;s&gt;", "&lt;b&gt;", "&lt;br&gt;", "&amp;lt;", "$x$")
    ]
    assert "<s>" not in figure.data[0].hovertext[0]


def test_tokens_that_look_alike_keep_their_own_bars():
    figure = plots.candidates_figure(mask_of("s", "##s", "1", "01"))
    assert list(figure.data[0].y) == [1, 2, 3, 4]
    assert list(figure.layout.yaxis.ticktext) == ["s", "##s", "1", "01"]


@pytest.mark.parametrize("word", ["", " ", "\n"])
def test_a_blank_word_is_shown_by_its_token(word):
    candidates = [Candidate(1, 7, "Ċ", word, 0.5, 0.7), Candidate(2, 8, "Ġa", "a", 0.5, 0.7)]
    assert plots.candidate_names(candidates) == ["Ċ", "a"]


def test_the_true_word_has_its_own_colour():
    figure = plots.candidates_figure(mask_of("a", "b"), marked=12)
    assert list(figure.data[0].marker.color) == [plots.ACCENT, plots.SECOND]


def test_long_lists_and_labels_are_cut():
    vocabulary = TableVocabulary((*SPECIAL, *(f"{'long' * 9}{i}" for i in range(50)), "the"))
    mask = fill(TableModel(vocabulary=vocabulary), "the [MASK]", top_k=None).masks[0]
    figure = plots.candidates_figure(mask)
    assert len(figure.data[0].x) == plots.MAX_BARS
    assert max(map(len, figure.layout.yaxis.ticktext)) <= 22


def test_a_figure_says_in_words_what_it_shows():
    figure = plots.candidates_figure(mask_of("cat", "dog"))
    assert "cat with 50.0%" in figure.layout.meta["description"]


def test_bits_in_the_hover_text():
    assert (
        "NLL 1.0000 bits"
        in plots.candidates_figure(mask_of("a", "b"), unit="bits").data[0].hovertext[0]
    )


@pytest.mark.parametrize("ratio", ["light", "dark"])
def test_colours_can_be_seen_on_both_backgrounds(ratio):
    """WCAG 2.2, criterion 1.4.11: graphics need a contrast of 3 to 1."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    background = luminance({"light": "#fafaf9", "dark": "#171513"}[ratio])
    for colour in (plots.ACCENT, plots.SECOND, plots.MUTED):
        high, low = sorted((luminance(colour), background), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3
