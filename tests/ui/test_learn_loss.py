"""The chapters on guesses and on the loss: their figures, and the points of their sentences."""

import json
import math
import re

import pytest
import torch

from fillmask_ui import load_model
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.figure import Asked
from fillmask_ui.ui.learn import guess_figures, loss_figures
from fillmask_ui.ui.session import Session
from tests.table_model import TableModel
from tests.ui.test_examples import holds

TEXT = "the [MASK] sat on the mat."
SPLIT = {"word_0": "cat", "percent_0": "50", "word_1": "dog", "percent_1": "25"}
OURS = {"which": "own", "sentence": TEXT, "truth": "cat", **SPLIT}
MASK = {"sentence": TEXT, "truth": "cat"}


@pytest.fixture(scope="module", params=["embedded", "embedded:int8"])
def embedded(request):
    return load_model(request.param)


@pytest.fixture
def ask(session):
    def pieces(show, values):
        return show(Asked(session, values, TableModel()))

    return pieces


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


def bars(html):
    """Word -> the probability that its bar shows."""
    found = re.findall(r'data-value="([^"]*)".*?fm-bar-word" dir="auto">([^<]*?) ?<', html, re.S)
    return {word: float(value) for value, word in found}


# ---- Guess the word


@pytest.mark.parametrize("example", [*guess_figures.READY, *guess_figures.ROUNDS], ids=str)
def test_the_model_makes_the_point_of_every_sentence(example, embedded):
    assert example.claims and len(example.hidden) == 1
    assert [claim for claim in example.claims if not holds(claim, example, embedded)] == []


def test_nothing_of_the_model_or_the_truth_is_there_until_it_is_revealed(ask):
    shown = ask(guess_figures.guess, OURS)
    assert bars(shown.pieces["result"]) == pytest.approx(
        {"cat": 0.5, "dog": 0.25, "no guess": 0.25}
    )
    text = "".join(shown.pieces.values())
    assert "model" not in text.lower() and "cat" not in shown.pieces["sentence"]
    assert shown.set == {"revealed": ""}


def test_once_revealed_the_losses_follow_the_guesses_until_the_sentence_changes(ask, logits):
    shown = ask(guess_figures.guess, {**OURS, "reveal": "1"})
    assert "cat" in shown.pieces["sentence"]
    assert "0.693 nats" in shown.pieces["result"]
    assert f"{cross_entropy(logits):.3f} nats" in shown.pieces["result"]
    later = {**OURS, **shown.set, "percent_0": "25"}
    assert "1.386 nats" in ask(guess_figures.guess, later).pieces["result"]
    assert "The class" in ask(guess_figures.guess, {**later, "hide": "1"}).pieces["result"]
    another = {**later, "sentence": "a [MASK] ran."}
    assert ask(guess_figures.guess, another).set == {"revealed": ""}


def test_a_true_word_that_nobody_guessed_is_infinite(ask):
    shown = ask(guess_figures.guess, {**OURS, "truth": "river", "reveal": "1"})
    assert "Nobody guessed “river”: the loss of the class is infinite" in shown.pieces["result"]


def test_no_more_than_all_is_split_and_something_is_guessed(ask):
    with pytest.raises(OptionError, match="percents add up to 120"):
        ask(guess_figures.guess, {**OURS, "percent_1": "70"})
    with pytest.raises(OptionError, match="nobody has guessed yet"):
        ask(guess_figures.guess, {**OURS, "word_0": "", "word_1": "", "reveal": "1"})
    with pytest.raises(TextError, match="no mask"):
        ask(guess_figures.guess, {**OURS, "sentence": "the cat sat"})


def test_words_of_the_class_are_never_markup(ask):
    shown = ask(guess_figures.guess, {**OURS, "word_0": "<img src=x>", "truth": "", "reveal": "1"})
    assert "&lt;img" in shown.pieces["result"] and "<img" not in shown.pieces["result"]


def test_the_score_of_three_gaps_is_the_mean_of_the_losses(embedded):
    session = Session(ModelStore(loader=lambda reference, **_: embedded), "embedded")
    typed = {"guesses_0": "honey 3, wax", "guesses_1": "hay 50%, oats 20%", "guesses_2": "sea 1%"}
    assert guess_figures.rounds(Asked(session, typed, embedded)).pieces == {"result": ""}
    html = guess_figures.rounds(Asked(session, {**typed, "score": "1"}, embedded)).pieces["result"]
    truths = [(e.text, e.hidden[0]) for e in guess_figures.ROUNDS]
    model = [session.score(embedded, text, [word])[0][0].nll_nats for text, word in truths]
    people = [-math.log(0.75), -math.log(0.5), -math.log(0.01)]
    mean = html[html.index("<tfoot>") :]
    assert f"{sum(people) / 3:.3f}" in mean and f"{sum(model) / 3:.3f}" in mean
    for value in [*people, *model]:
        assert f"{value:.3f}" in html
    nobody = {**typed, "guesses_1": "", "score": "1"}
    assert "infinite" in guess_figures.rounds(Asked(session, nobody, embedded)).pieces["result"]


# ---- From logits to a loss


def test_columns_open_one_after_the_other(ask, logits):
    tables = [
        ask(loss_figures.table, {**MASK, "columns": str(n)}).pieces["table"] for n in (1, 2, 3, 4)
    ]
    assert [table.count('scope="col"') for table in tables] == [2, 3, 4, 5]
    cat = TableModel().vocabulary.ids["cat"]
    assert f"{logits[cat]:.2f}" in tables[0] and "sum" not in tables[1]
    assert f"{torch.exp(logits).sum():,.0f}" in tables[2]
    assert f"{cross_entropy(logits):.3f} nats" in tables[3]
    assert "nats" not in tables[2]


@pytest.mark.parametrize("added", ["5", "largest"])
def test_what_is_added_to_all_logits_changes_logits_and_no_probability(ask, logits, added):
    plain, moved = (
        ask(loss_figures.table, {**MASK, "columns": "4", "added": a}).pieces["table"]
        for a in ("", added)
    )
    shares = [re.findall(r"--share:([\d.]+)", table) for table in (plain, moved)]
    assert shares[0] == shares[1] and len(shares[0]) >= 5
    number = 5 if added == "5" else -logits.max().item()
    assert f">{logits.max().item() + number:.2f}<" in moved
    assert f">{logits.max().item():.2f}<" in plain


@pytest.mark.parametrize(
    ("typed", "nats", "bits"),
    [
        ("70", "0.357", "0.515"),
        ("30", "1.204", "1.737"),
        ("1", "4.605", "6.644"),
        ("seventy", "0.357", "0.515"),
    ],
)
def test_the_curve_has_the_numbers_of_the_course(typed, nats, bits):
    html = loss_figures.curve(Asked(None, {"percent": typed})).pieces["point"]
    assert f">{nats}<" in html and f">{bits}<" in html
    (point,) = json.loads(re.search(r"data-points='([^']*)'", html)[1])
    assert math.exp(-point["nll_nats"]) == pytest.approx(point["probability"])


@pytest.mark.parametrize("temperature", [0.1, 1, 5])
def test_bars_and_loss_follow_the_temperature(ask, logits, temperature):
    shown = ask(loss_figures.temperature, {**MASK, "temperature": str(temperature)})
    wanted = torch.softmax(logits / temperature, 0)
    found = bars(shown.pieces["bars"])
    assert sum(found.values()) == pytest.approx(1)
    ids = TableModel().vocabulary.ids
    for word in [w for w in found if w in ids]:
        assert found[word] == pytest.approx(wanted[ids[word]].item())
    assert len([w for w in found if w in ids]) >= 4
    facts = shown.pieces["facts"]
    assert f"{cross_entropy(logits, temperature):.3f} nats" in facts
    entropy = torch.distributions.Categorical(logits=logits / temperature).entropy().item()
    assert f"{entropy:.3f} nats" in facts and f"{math.log(len(logits)):.3f} nats" in facts


def test_the_embedded_model_shows_what_temperature_does(embedded):
    """Sharper, the loss of the second word grows; flatter, loss and entropy near ln V."""
    session = Session(ModelStore(loader=lambda reference, **_: embedded), "embedded")
    values = {"sentence": guess_figures.READY[0].text, "truth": guess_figures.READY[0].hidden[0]}

    def figures(temperature):
        asked = Asked(session, {**values, "temperature": str(temperature)}, embedded)
        facts = loss_figures.temperature(asked).pieces["facts"]
        return [float(n) for n in re.findall(r'<dd dir="auto">([\d.]+) nats', facts)]

    (cold, sure, top), (plain, _, _), (hot, unsure, _) = map(figures, (0.1, 1, 5))
    assert cold > 3 * plain and sure < 0.05
    assert hot > plain and unsure > 0.8 * top


def test_three_names_of_one_loss(ask, logits):
    html = ask(loss_figures.units, MASK).pieces["units"]
    value = cross_entropy(logits)
    assert f">{value:.3f}<" in html and f">{value / math.log(2):.3f}<" in html
    entropy = torch.distributions.Categorical(logits=logits).entropy().item()
    assert f">{math.exp(entropy):.2f}<" in html
    boxes = [min(loss_figures.MOST_BOXES, round(math.exp(nats))) for nats in (value, entropy)]
    assert html.count("<i></i>") == sum(boxes)


@pytest.mark.parametrize("show", [loss_figures.table, loss_figures.temperature, loss_figures.units])
def test_what_is_wrong_with_a_sentence_is_said(ask, show):
    with pytest.raises(OptionError, match="is 2 tokens"):
        ask(show, {**MASK, "truth": "walking"})
    with pytest.raises(TextError, match="has 2 masks"):
        ask(show, {"sentence": "[MASK] [MASK]", "truth": "cat"})


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_other_tokenizers_write_their_masks_otherwise(tiny_models, family):
    model = load_model(str(tiny_models.without_onnx(family)), runtime="torch")
    session = Session(ModelStore(loader=lambda reference, **_: model), family)
    words = [c.word.strip() for c in session.fill(model, TEXT, top_k=100).masks[0].candidates]
    best = next(w for w in words if w.isalpha() and len(model.vocabulary.encode_word(w)) == 1)
    values = {**OURS, "truth": best, "temperature": "2", "columns": "4", "reveal": "1"}
    for show in (
        guess_figures.guess,
        loss_figures.table,
        loss_figures.temperature,
        loss_figures.units,
    ):
        shown = show(Asked(session, values, model))
        assert best in "".join(shown.pieces.values())
    assert guess_figures.guess(Asked(session, values, model)).set == {"revealed": TEXT}
