"""The figures of the chapters on masking and on the ledger, and both in a browser."""

import re
from functools import partial

import pytest
from lesson_figures import show_figure
from page_tags import Tags
from table_model import TableModel

from fillmask_ui import load_model
from fillmask_ui.lessons.masked_text import mask_text
from fillmask_ui.lessons.token_losses import evaluated
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.learn.learn_figures import figure

NAMES = ["masking", "mask_shares", "mask_kinds", "ledger", "ledger_kinds", "ledger_mix"]
CAT = "the old dog ran to the river and the cat sat on the mat"  # five tokens with seed 4


@pytest.fixture
def show(session):
    """What a figure shows of some values, as soon as it is known."""
    return partial(show_figure, session, TableModel())


def rows(source):
    """The cells of a table, row by row."""
    body = source.split("<tbody>")[1]
    return [Tags(row).text.split() for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)]


def test_each_token_has_its_original_what_is_shown_and_its_label(show):
    source = show("masking", text=CAT, seed=4).pieces["tokens"]
    cards = [Tags(card).text.split() for card in re.findall(r"<li.*?</li>", source, re.DOTALL)][1:]
    text, name = mask_text(TableModel(), CAT, 4), TableModel().vocabulary.token
    signs = {"mask": "■", "random": "≠", "unchanged": "="}
    for card, token in zip(cards, text.tokens, strict=True):
        original, shown = name(token.token_id), name(token.shown_id).replace("##", "…")
        without = "never has a label–" if token.fixed else "no label–"
        shows = f"{token.kind} {signs[token.kind]} {shown}" if token.kind else shown
        label = f"label {original}" if token.kind else without
        assert " ".join(card) == f"original {original} shown {shows} {label}"
    assert f"{len(text.chosen)} of {text.free} tokens" in Tags(source).text


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "deberta-v2"])
def test_tokens_of_any_tokenizer_are_words(session, tiny_models, family):
    """No marks of the tokenizer, and masks as everybody writes them."""
    model = load_model(tiny_models.without_onnx(family), runtime="torch")
    text = "The cat ___ on the mat."
    source = show_figure(session, model, "masking", text=text).pieces["tokens"]
    words = Tags(source).text.split()
    assert {"on", "the", "[MASK]"} <= set(words)
    assert not set("Ġ▁") & set("".join(words))
    shown = show_figure(session, model, "ledger", text=text, seed=3)
    assert shown.pieces["lines"]


def test_a_higher_rate_chooses_more(show):
    def few(rate):
        source = show("masking", text=CAT, seed=4, rate=rate).pieces["tokens"]
        return int(re.search(r"(\d+) of 14", Tags(source).text)[1])

    assert few(1) < few(15) < few(60)


def test_the_shares_stand_beside_the_expected(show):
    source = show("mask_shares", text=CAT, seed=4).pieces["shares"]
    assert [row[0] for row in rows(source)] == ["chosen", "■", "≠", "="]
    assert [next(cell for cell in row if "%" in cell) for row in rows(source)] == [
        *("15.0%", "80.0%", "10.0%", "10.0%")
    ]
    # (1 - 0.15)^14, by a calculator
    assert "= 10.3%" in Tags(source).text
    assert (
        "(1 − 0.30)14 = 0.68%" in Tags(show("mask_shares", text=CAT, rate=30).pieces["shares"]).text
    )


def test_a_seed_is_one_of_many(show):
    """Turning the dial changes the first column; the second is of the same seeds as ever."""
    columns = [
        [re.findall(r"[\d.]+%|–", " ".join(row)) for row in rows(source)]
        for source in (show("mask_shares", text=CAT, seed=s).pieces["shares"] for s in (4, 6))
    ]
    one, other = ([row[1] for row in table] for table in columns)
    assert one != other
    assert [row[2] for row in columns[0]] == [row[2] for row in columns[1]]


def test_one_word_is_shown_in_three_ways(show):
    source = show("mask_kinds", text="the cat sat.").pieces["kinds"]
    texts = re.findall(r'fm-way-text"[^>]*>(.*?)</td>', source)
    assert [Tags(text).text for text in texts][::2] == ["the cat [MASK].", "the cat sat."]
    assert Tags(texts[1]).text not in ("the cat [MASK].", "the cat sat.")


def test_the_ledger_is_revealed_line_by_line(show):
    first = show("ledger", text=CAT, seed=4)
    count = int(re.search(r"1 of (\d) lines", first.pieces["lines"])[1])
    assert (first.set["lines"], len(rows(first.pieces["lines"]))) == ("1", 1)
    second = show("ledger", text=CAT, seed=4, lines=1, more=1)
    assert (second.set["lines"], len(rows(second.pieces["lines"]))) == ("2", 2)
    everything = show("ledger", text=CAT, seed=4, lines=2, all=1)
    assert len(rows(everything.pieces["lines"])) == count > 2
    assert "Mean" in everything.pieces["lines"]
    beyond = show("ledger", text=CAT, seed=4, lines=count, more=1)
    assert beyond.pieces["lines"] == everything.pieces["lines"]
    assert show("ledger", text=CAT, seed=4, lines=count, first=1).set["lines"] == "1"


def test_the_evaluator_says_the_same_until_text_or_seed_change(show):
    pressed = show("ledger", text=CAT, seed=4, lines=99, evaluate=1)
    number = f"{evaluated(TableModel(), CAT, 4).metric:.6f}"
    assert Tags(pressed.pieces["evaluator"]).text.count(number) == 2
    assert f"{float(number):.4f} nats" in pressed.pieces["lines"]
    kept = {"evaluated": pressed.set["evaluated"]}
    again = show("ledger", text=CAT, seed=4, lines=1, **kept)
    assert again.pieces["evaluator"] == pressed.pieces["evaluator"]
    for other in ({"text": CAT, "seed": 6}, {"text": CAT + " red", "seed": 4}):
        assert not show("ledger", **other, **kept).pieces["evaluator"].strip()


def test_a_seed_that_chooses_nothing_names_one_that_does(show):
    model = TableModel()
    assert not mask_text(model, CAT, 2).chosen
    shown = show("ledger", text=CAT, seed=2, evaluate=1)
    (other,) = re.findall(r"is seed (\d+)\.", shown.pieces["lines"])
    assert not any(mask_text(model, CAT, seed).chosen for seed in range(2, int(other)))
    assert mask_text(model, CAT, int(other)).chosen
    assert shown.pieces["evaluator"] == ""
    assert "none chosen" in show("ledger_kinds", text=CAT, seed=2).pieces["kinds"]


def test_the_kinds_of_one_seed_stand_beside_those_of_many(show):
    source = show("ledger_kinds", text=CAT, seed=4).pieces["kinds"]
    table = rows(source)
    assert [row[0] for row in table] == ["■", "≠", "=", "all"]
    assert f"{evaluated(TableModel(), CAT, 4).mean_nll_nats:.3f}" in table[-1]


def test_more_unchanged_tokens_lower_the_mean(show):
    def mean(share):
        table = rows(show("ledger_mix", text=CAT, unchanged=share).pieces["mix"])
        assert "your" in table[2]
        return float(table[2][-2])

    assert mean(0) > mean(10) > mean(60)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("text", "said"),
    [(" ", "text is empty"), ("xyz", "No token"), ("the cat " * 50, "takes at most 64")],
)
def test_what_cannot_be_masked_is_said(session, name, text, said):
    answer = answered(figure, session, {"name": name, "values": {"text": text}})
    assert answer["kind"] == "error"
    assert said.lower() in answer["notice"].lower()


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_never_markup(show, name):
    shown = show(name, text="<b>the cat</b> sat <script>", seed=1, lines=99)
    for source in shown.pieces.values():
        assert not Tags(source).names & {"b", "script"}
