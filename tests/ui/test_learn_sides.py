"""Figures of the chapters on both sides and on cross-entropy: what they show, and in a browser."""

import html
import math
import re
from functools import partial

import pytest
from lesson_figures import show_figure
from page_tags import Tags

from fillmask_ui import fill, load_model
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling import score_candidate_at
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.learn import context_figures, loss_figures
from fillmask_ui.ui.session import Session


@pytest.fixture(scope="module")
def embedded():
    session = Session(ModelStore(), "embedded")
    return session, session.model("")


@pytest.fixture
def show(embedded):
    """What a figure answers to values of its controls."""

    return partial(show_figure, *embedded)


def text_of(source):
    """What a reader sees; blocks and cells stand apart."""
    apart = re.sub(r"(?=</?(?:t[dh]|d[td]|p|h4|li|text)\b)", " ", source)
    return " ".join(Tags(apart).text.split())


def cells(source):
    """The cells of each row of the body of a table, as text."""
    body = source.split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [
        [text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows
    ]


def test_three_sides_show_the_losses_of_the_cut_texts(show, embedded):
    pieces = show("sides").pieces
    texts = ["I put the [MASK].", "[MASK] into the lock and opened the door."]
    texts.append(context_figures.EXAMPLES[0].text)
    for number, text in enumerate(texts, 1):
        said = text_of(pieces[f"view{number}"])
        word = score_candidate_at(embedded[1], text, "key", 0)
        assert text in said
        assert f"loss {word.nll_nats:.3f} nats" in said
        best = fill(embedded[1], text, top_k=1, joint=0).masks[0].candidates[0]
        assert f"{best.word} {100 * best.probability:.1f}%" in said


def test_a_pressed_sentence_is_written_into_the_controls(show):
    shown = show("sides", cup="1", text="anything", word="x")
    assert shown.set == {"text": "I drink a cup of [MASK] every morning.", "word": "tea"}
    assert "for “tea”" in text_of(shown.pieces["view3"])
    assert show("sides").set == {}


def test_a_side_is_cut_or_hidden(show):
    titles = [text_of(piece).split(" The ")[0] for piece in show("cut_or_hidden").pieces.values()]
    assert titles == ["Cut off", "Cut off, “.” stays", "Hidden by masks"]
    pieces = show("cut_or_hidden", kept="right").pieces
    assert "[MASK] [MASK] barked" in text_of(pieces["view2"])
    assert text_of(pieces["view3"]).startswith("All words The [MASK] barked")
    pieces = show("cut_or_hidden", text="She [MASK] home", word="went").pieces
    assert text_of(pieces["view3"]).startswith("All words")


@pytest.mark.parametrize("figure", ["sides", "cut_or_hidden", "model_truth"])
def test_what_cannot_be_asked_is_said(show, figure):
    with pytest.raises(TextError, match="no mask"):
        show(figure, text="No gap here.")
    with pytest.raises(OptionError, match="word is missing"):
        show(figure, word=" ")


@pytest.mark.parametrize("figure", ["sides", "cut_or_hidden", "attention", "model_truth"])
def test_what_readers_write_is_never_markup(show, figure):
    written = "<img src=x onerror=alert(1)> & [MASK] <b>it</b>."
    pieces = show(figure, text=written, word="dog").pieces
    assert not Tags("".join(pieces.values())).names & {"img", "b"}
    assert figure != "sides" or html.escape("<b>it</b>") in pieces["view2"]


def test_the_grids_say_how_many_words_a_guess_can_use(show):
    said = text_of(show("attention").pieces["grids"])
    assert "Guessed at “The”, from 1 word." in said
    assert "Guessed in the gap, from 8 words." in said
    assert "before the first word, from 0 words" in text_of(
        show("attention", text="[MASK] is blue.").pieces["grids"]
    )


def test_every_word_is_measured_from_three_sides(show, embedded):
    shown = show("side_losses", text="The dog barked.")
    rows = cells(shown.pieces["losses"])
    assert [row[0] for row in rows] == ["The", "dog", "barked"]
    views = ("The [MASK].", "[MASK] barked.", "The [MASK] barked.")
    losses = [score_candidate_at(embedded[1], view, "dog", 0).nll_nats for view in views]
    assert rows[1][1:] == [f"{loss:.3f}" for loss in losses]


def test_a_one_hot_truth_leaves_one_term(show):
    shown = show("one_hot")
    assert cells(shown.pieces["result"])[1] == ["2", "1", "0.7", "0.357", "0.357"]
    assert "cross-entropy H(p, q) 0.357 nats" in text_of(shown.pieces["result"])
    shown = show("one_hot", example="animals", true_animals="2", true_four="0")
    terms = [row[-1] for row in cells(shown.pieces["result"])]
    assert terms == ["0.000", "0.000", f"{-math.log(0.1):.3f}"]
    assert shown.pieces["true"].count("checked") == 1


def test_typed_distributions_are_compared_in_either_unit(show):
    typed = {"names": "yes, no", "p": "1/2, 1/2", "q": "25%, 75%"}
    said = text_of(show("compare_distributions", **typed, unit="bits").pieces["result"])
    # By hand: H(p) = 1 bit, H(p, q) = (2 + log2(4/3)) / 2 = 1.2075 bits.
    assert "cross-entropy H(p, q) 1.208 bits = entropy H(p) 1.000 bits + KL(p ‖ q) 0.208" in said
    result = show("compare_distributions", zero="1").pieces["result"]
    assert "H(p, q) infinite" in text_of(result)
    assert cells(result)[2] == ["milk", "0.1", "0", "∞", "∞"]


def test_a_wrong_sum_is_told_and_scaled_on_request(show):
    with pytest.raises(OptionError, match="p adds up to 4"):
        show("compare_distributions", p="3, 1", q="0.5, 0.5")
    shown = show("compare_distributions", p="3, 1", q="0.5, 0.5", scale="1")
    assert (shown.set["p"], shown.set["q"]) == ("0.75, 0.25", "0.5, 0.5")
    # What was written into the fields is again a distribution.
    again = show("compare_distributions", p="1 1 1", q="1 2 4", scale="1").set
    assert show("compare_distributions", p=again["p"], q=again["q"]).pieces["result"]


def test_the_cross_entropy_is_lowest_at_the_truth(show):
    said = text_of(show("soft_truth", p="0.7", q="0.7").pieces["result"])
    floor = -0.7 * math.log(0.7) - 0.3 * math.log(0.3)
    assert said.startswith(
        f"cross-entropy H(p, q) {floor:.3f} nats = entropy H(p) {floor:.3f} nats"
    )
    assert "KL(p ‖ q) 0.000 nats" in said
    # A certain truth has no floor.
    assert "entropy H(p) 0.000 nats" in text_of(show("soft_truth", p="1", q="2").pieces["result"])


def test_the_models_cross_entropy_is_the_loss_that_explore_shows(show, embedded):
    shown = show("model_truth")
    word = score_candidate_at(embedded[1], loss_figures.SENTENCE, "cold", 0)
    assert f"cross-entropy H(p, q) {word.nll_nats:.3f} nats" in text_of(shown.pieces["result"])
    assert f"“cold”: {word.nll_nats:.3f} nats" in text_of(shown.pieces["model"])
    rows = cells(shown.pieces["result"])
    assert sum(float(row[2]) for row in rows) == pytest.approx(1, abs=0.002)
    with pytest.raises(OptionError, match="is 2 tokens"):
        show("model_truth", text="He had a [MASK].", word="toothache")


@pytest.mark.parametrize("reference", ["embedded", "embedded:int8"])
def test_the_word_of_the_real_gap_is_likely_but_not_certain(reference):
    model = load_model(reference)
    word = score_candidate_at(model, loss_figures.SENTENCE, loss_figures.WORD, 0)
    assert 0.2 < word.probability < 0.9
