"""Figures on one masked word: guesses, the loss, its sides, distributions; losses as of torch."""

import math
import re
from functools import partial

import pytest
import torch
from explore_page import session_of
from lesson_figures import Tags, show_figure
from table_model import TableModel

from fillmask_ui import fill, load_model
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.ui.learn import guess_figures
from tests.ui.test_examples import holds

TEXT = "the [MASK] sat on the mat."
MASK = {"sentence": TEXT, "truth": "cat"}
SPLIT = {"word_0": "cat", "percent_0": "50", "word_1": "dog", "percent_1": "25"}
OURS = {"which": "own", **MASK, **SPLIT}


@pytest.fixture
def show(session):
    """What a figure shows of the table model."""
    return partial(show_figure, session, TableModel())


@pytest.fixture
def logits():
    """Of the table model at the mask, for torch."""
    model = TableModel()
    ids = model.vocabulary.encode(TEXT).ids
    own = model.own[model.vocabulary.mask_id]
    return torch.tensor(model.left[ids[1]] + model.right[ids[3]] + own).double()


def cross_entropy(logits, temperature=1.0):
    target = torch.tensor([TableModel().vocabulary.ids["cat"]])
    return torch.nn.functional.cross_entropy(logits[None] / temperature, target).item()


def entropy(logits, temperature=1.0):
    return torch.distributions.Categorical(logits=logits / temperature).entropy().item()


def bars(html):
    """Word -> the probability that its bar shows."""
    row = r'fm-row-name" dir="auto">(?:<span.*?</span>)?([^<]*?) ?<.*?--p:([\d.]+)'
    return {word: float(value) for word, value in re.findall(row, html, re.S)}


@pytest.mark.parametrize("example", [*guess_figures.READY, *guess_figures.ROUNDS], ids=str)
def test_the_model_makes_the_point_of_every_sentence(example, shipped):
    assert example.claims and len(example.hidden) == 1
    assert [claim for claim in example.claims if not holds(claim, example, shipped)] == []


def test_the_model_is_absent_until_it_is_revealed_for_this_sentence(show, logits):
    hidden = show("guess", **OURS)
    expected = {"cat": 0.5, "dog": 0.25, "no guess": 0.25}
    assert bars(hidden.pieces["result"]) == pytest.approx(expected)
    assert "model" not in "".join(hidden.pieces.values()).lower()
    assert "cat" not in hidden.pieces["sentence"] and hidden.set == {"revealed": ""}
    shown = show("guess", **OURS, reveal=1)
    assert "cat" in shown.pieces["sentence"] and "0.693 nats" in shown.pieces["result"]
    assert f"{cross_entropy(logits):.3f} nats" in shown.pieces["result"]
    later = {**OURS, **shown.set, "percent_0": "25"}
    assert "1.386 nats" in show("guess", **later).pieces["result"]
    assert "The class" in show("guess", **later, hide=1).pieces["result"]
    assert show("guess", **{**later, "sentence": "a [MASK] ran."}).set == {"revealed": ""}
    nobody = show("guess", **{**OURS, "truth": "river"}, reveal=1).pieces["result"]
    assert "Nobody guessed “river”: the loss of the class is infinite" in nobody
    markup = show("guess", **{**OURS, "word_0": "<img src=x>", "truth": ""}, reveal=1)
    assert "&lt;img" in markup.pieces["result"] and "<img" not in markup.pieces["result"]


def test_columns_open_one_after_the_other_and_only_differences_matter(show, logits):
    tables = [show("softmax_table", **MASK, columns=n).pieces["table"] for n in (1, 2, 3, 4)]
    assert [table.count('scope="col"') for table in tables] == [2, 3, 4, 5]
    cat = TableModel().vocabulary.ids["cat"]
    assert f"{logits[cat]:.2f}" in tables[0] and "sum" not in tables[1]
    assert f"{torch.exp(logits).sum():,.0f}" in tables[2] and "nats" not in tables[2]
    assert f"{cross_entropy(logits):.3f} nats" in tables[3]
    shares = re.findall(r"--share:([\d.]+)", tables[3])
    for added, number in (("5", 5), ("largest", -logits.max().item())):
        moved = show("softmax_table", **MASK, columns=4, added=added).pieces["table"]
        assert re.findall(r"--share:([\d.]+)", moved) == shares and len(shares) >= 5
        assert f">{logits.max().item() + number:.2f}<" in moved


@pytest.mark.parametrize("temperature", [0.1, 1, 5])
def test_bars_and_loss_follow_the_temperature(show, logits, temperature):
    pieces = show("loss_temperature", **MASK, temperature=temperature).pieces
    wanted = torch.softmax(logits / temperature, 0)
    found, ids = bars(pieces["bars"]), TableModel().vocabulary.ids
    assert sum(found.values()) == pytest.approx(1, abs=1e-4)
    words = [word for word in found if word in ids]
    assert len(words) >= 4
    for word in words:
        assert found[word] == pytest.approx(wanted[ids[word]].item(), abs=1e-5)
    for value in (cross_entropy(logits, temperature), entropy(logits, temperature)):
        assert f"{value:.3f} nats" in pieces["facts"]
    assert f"{math.log(len(logits)):.3f} nats" in pieces["facts"]


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_other_tokenizers_write_their_masks_otherwise(tiny_models, family):
    model = load_model(str(tiny_models.without_onnx(family)), runtime="torch")
    session = session_of(table=model)
    words = [c.word.strip() for c in fill(model, TEXT, top_k=100).masks[0].candidates]
    best = next(w for w in words if w.isalpha() and len(model.vocabulary.encode_word(w)) == 1)
    values = {**OURS, "truth": best, "temperature": "2", "columns": "4", "reveal": "1"}
    for name in ("guess", "softmax_table", "loss_temperature", "loss_units"):
        shown = show_figure(session, model, name, **values)
        assert best in "".join(shown.pieces.values())


@pytest.mark.parametrize("figure", ["sides", "cut_or_hidden", "model_truth", "attention"])
def test_what_cannot_be_asked_is_said_and_nothing_is_markup(show, figure):
    with pytest.raises(TextError, match="no mask"):
        show(figure, text="no gap here.")
    if figure != "attention":
        with pytest.raises(OptionError, match="word is missing"):
            show(figure, text=TEXT, word=" ")
    written = "<img src=x onerror=alert(1)> & [MASK] <b>the</b>."
    pieces = show(figure, text=written, word="cat").pieces
    assert not Tags("".join(pieces.values())).names & {"img", "b"}
