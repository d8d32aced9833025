"""Bars of probability: what they show adds up to 1, on an axis that stays."""

import math
import re

import pytest
from page_tags import Tags
from table_model import SPECIAL, TableModel, TableVocabulary

from fillmask_ui.filling import fill, score_candidate_at
from fillmask_ui.records import Candidate
from fillmask_ui.show.drawing import MAX_BARS, bars_of
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import mask_html

TEXT = "the [MASK] sat."


def of(model, text=TEXT, *, top_k=4, words=(), hidden=None, number=0):
    filling = fill(model, text, top_k=top_k, candidates=words)
    truth = None if hidden is None else score_candidate_at(model, text, hidden, number)
    size = filling.signature.vocabulary_size
    return filling, bars_of(filling.masks[number], number, model.vocabulary, size, truth)


def candidate(token_id, token, word):
    return Candidate(1, token_id, token, word, 0.5, math.log(2))


def test_bars_are_the_probabilities_best_first_and_add_up_to_one():
    filling, bars = of(TableModel())
    best = filling.masks[0].candidates
    assert [bar.probability for bar in bars[:-1]] == [c.probability for c in best]
    assert [bar.key for bar in bars[:-1]] == [f"0:{c.token_id}" for c in best]
    assert bars[-1].kind == "rest"
    assert math.isclose(sum(bar.probability for bar in bars), 1.0, abs_tol=1e-12)
    assert bars[-1].note == f"{filling.signature.vocabulary_size - 4:,} of them"


def test_a_hidden_word_outside_the_first_has_its_bar_and_its_rank():
    model = TableModel()
    everything = fill(model, TEXT, top_k=None).masks[0].candidates
    far = next(c for c in everything[10:] if c.word.isalpha() and not c.token.startswith("##"))
    _, bars = of(model, hidden=far.word)
    (bar,) = [bar for bar in bars if bar.kind == "hidden"]
    assert bar.word == far.word
    assert bar.probability == pytest.approx(far.probability)
    assert f"rank {far.rank}" in bar.note
    assert math.isclose(sum(bar.probability for bar in bars), 1.0, abs_tol=1e-12)


def test_words_of_several_tokens_are_another_event_and_take_nothing_from_the_rest():
    filling, bars = of(TableModel(), words=["walked"])
    (bar,) = [bar for bar in bars if bar.kind == "asked"]
    assert (bar.key, bar.note) == ("", "2 tokens")
    shown = sum(c.probability for c in filling.masks[0].candidates)
    assert bars[-1].probability == pytest.approx(1 - shown)


def test_a_word_is_shown_once_however_often_it_is_asked_about():
    model = TableModel()
    best = fill(model, TEXT, top_k=1).masks[0].candidates[0].word
    _, bars = of(model, words=[best, "walked"], hidden=best)
    assert [bar.word for bar in bars].count(best) == 1
    assert bars[0].kind == "hidden"
    _, bars = of(model, words=["walked"], hidden="walked")
    assert [bar.kind for bar in bars].count("hidden") == 1
    assert "asked" not in {bar.kind for bar in bars}


def test_a_long_list_is_cut_and_says_so():
    vocabulary = TableVocabulary((*SPECIAL, *(f"word{i}" for i in range(50)), "the"))
    model = TableModel(vocabulary=vocabulary)
    filling, bars = of(model, "the [MASK]", top_k=None)
    assert len(bars) == MAX_BARS + 1
    source = mask_html(filling, model, question=Question(TEXT))["bars"]
    assert f"The bars show the first {MAX_BARS}; the table has all 56" in Tags(source).text


def test_endings_are_marked_and_words_that_would_look_alike_show_their_tokens():
    vocabulary = TableVocabulary((*SPECIAL, "ing", "##ing", "##.", "x"))
    ids = vocabulary.ids
    names = candidate_names(
        [candidate(ids[t], t, t.removeprefix("##")) for t in ("ing", "##ing", "##.")], vocabulary
    )
    assert names == ["ing", "…ing", "."]
    twins = [candidate(1, "Ġa", "a"), candidate(2, "▁a", "a"), candidate(3, "Ċ", "\n")]
    assert candidate_names(twins, vocabulary) == ["Ġa", "▁a", "Ċ"]


@pytest.mark.parametrize("zoom", [1, 10, 100])
def test_the_axis_is_fixed_or_says_where_it_ends(zoom):
    model = TableModel()
    filling, bars = of(model)
    source = mask_html(filling, model, question=Question(TEXT, zoom=zoom))["bars"]
    widths = [float(width) for width in re.findall(r"--p:([0-9.]+)", source)]
    assert widths == pytest.approx([min(1, zoom * bar.probability) for bar in bars], abs=1e-5)
    text = Tags(source).text
    assert f"{100 // zoom}%" in text
    assert ("Magnified: the axis ends at" in text) == (zoom > 1)
    assert (source.count("fm-cut") > 0) == any(zoom * bar.probability > 1 for bar in bars)
    table = mask_html(filling, model, question=Question(TEXT, zoom=zoom))["candidates"]
    shares = [float(share) for share in re.findall(r"--share:([0-9.]+)", table)]
    expected = [min(1, zoom * c.probability) for c in filling.masks[0].candidates]
    assert shares == pytest.approx(expected, abs=1e-4)
