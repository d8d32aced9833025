"""What the figures of the chapters on senses and on sentence pairs show, without a browser."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from lesson_figures import show_figure
from table_model import TableModel

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import EvaluationConfig, evaluate
from fillmask_ui.lessons.word_vectors import TWO_SENSES
from fillmask_ui.models import ModelStore, load_model
from fillmask_ui.records import Example
from fillmask_ui.ui.learn import context_figures
from fillmask_ui.ui.session import Session


@pytest.fixture(scope="module", params=["embedded", "embedded:int8"])
def show(request):
    """`show(figure, **values)` with the model; it is asked again while it is busy."""
    model = load_model(request.param)
    session = Session(ModelStore(loader=lambda choice, **_: model), request.param)

    def ask(name: str, **values: str) -> Any:
        if name == "model":
            return model
        return show_figure(session, model, name, **values)

    return ask


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def rows_of(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]


def test_a_push_raises_raw_cosines_and_no_others(show):
    """The point of z-scoring, with any model."""
    plain, pushed = show("rogue_dimensions"), show("rogue_dimensions", push="2")
    assert pushed.pieces["scored"] == plain.pieces["scored"]
    (_, before), (_, after) = (
        [list(map(float, row)) for row in rows_of(own.pieces["contrast"]) if len(row) == 2][-2:]
        for own in (plain, pushed)
    )
    assert before[0] < 0.3  # any two tokens, as they are
    assert after[0] > 0.75
    assert abs(after[1] - before[1]) <= 0.01
    raw = [float(cell) for row in rows_of(pushed.pieces["raw"])[1:] for cell in row]
    assert min(raw) > 0.8
    assert "pushed" in pushed.pieces["dimensions"]
    assert "pushed" not in plain.pieces["dimensions"]


def test_an_example_fills_in_the_fields(show):
    shown = show("nearest_sense", take_match="1", word="bank")
    assert shown.set["word"] == "match"
    assert shown.set["sentences"] == TWO_SENSES[1].lines
    assert "lamp" in text_of(shown.pieces["nearest"])
    assert "sense 2" in text_of(shown.pieces["nearest"]).split("→")[1][:30]


def test_own_sentences_of_three_senses(show):
    lines = "1: The bank lent money.\n2: The bank of the river.\n3: A <b>bank</b> of clouds."
    shown = show("word_cosines", word="bank", sentences=lines)
    assert "&lt;b&gt;<mark>bank</mark>" in shown.pieces["matrix"]
    assert "–" in shown.pieces["summary"]  # no two have the same sense
    assert "▲" in shown.pieces["matrix"]
    point = show("sense_map", word="bank", sentences=lines).pieces["map"]
    assert 'role="img"' in point
    assert "bank" in re.search(r'aria-label="([^"]*)"', point)[1]


def test_what_a_reader_can_mend_is_said(show):
    with pytest.raises(FillmaskError, match="does not occur"):
        show("word_cosines", word="river")
    with pytest.raises(FillmaskError, match="write 2 to 12"):
        show("sense_map", sentences="")
    with pytest.raises(FillmaskError, match="empty"):
        show("sentence_pair", second=" ")


def test_a_model_without_vectors_says_so(session):
    with pytest.raises(FillmaskError, match="logits alone"):
        show_figure(session, TableModel(), "word_cosines", sentences="the cat\nthe cat", word="cat")


def test_a_pair_stands_in_two_segments(show):
    text = text_of(show("sentence_pair").pieces["tokens"])
    assert "Segment A [CLS] she put" in text
    assert "fire . [SEP] Segment B soon the" in text
    assert "no head" in text


def test_the_loss_of_the_pair_by_hand(show):
    follows = text_of(show("next_sentence", probability="0.7", truth="0").pieces["order"])
    assert "= 0.357 nats ; were it the other way round: 1.204 nats" in follows
    assert "1907.11692" in follows
    other = text_of(show("next_sentence", probability="0.7", truth="1").pieces["order"])
    assert "= 1.204 nats" in other


def test_both_losses_add_up(show):
    """By default some tokens of both sentences are hidden."""
    html = show("pretraining_loss", probability="0.7", truth="1").pieces["losses"]
    hidden = [float(row[2]) for row in rows_of(html) if len(row) == 3]
    masked, order = (float(row[0]) for row in rows_of(html)[-2:])
    total = float(re.search(r"fm-sentences-total.*?<td>([\d.]+)</td>", html, re.DOTALL)[1])
    assert len(hidden) >= 2
    assert masked == pytest.approx(sum(hidden) / len(hidden), abs=1e-3)
    assert order == pytest.approx(1.204)
    assert total == pytest.approx(masked + order, abs=1.1e-3)
    assert "no token was chosen" in show("pretraining_loss", seed="2").pieces["losses"]


def test_the_masked_loss_is_that_of_the_evaluator(show):
    """Of one text that is tokenized alike, since it names the token between the sentences."""
    model = show("model")
    text = "She put the kettle on the fire. [SEP] Soon the water began to boil."
    (row,) = evaluate(model, [Example(0, text)], EvaluationConfig(seed=context_figures.SEED))
    html = show("pretraining_loss").pieces["losses"]
    masked = float(rows_of(html)[-2][0])
    assert masked == pytest.approx(float(row.scores.nll_nats.mean()), abs=6e-4)
