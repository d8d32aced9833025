"""Figures of chapters 7 and 8: what they show."""

import re

import pytest
from lesson_figures import show_figure
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import FillmaskError, ModelError, OptionError
from fillmask_ui.lessons import chapters
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.learn import uncertainty_figures
from fillmask_ui.ui.session import Session


@pytest.fixture
def two_tokenizers():
    """A session whose model `letters` has another tokenizer than `table`, and `noisy` the same."""
    models = {
        "table": TableModel(),
        "noisy": TableModel(noise=0.2),
        "letters": TableModel(vocabulary=letter_vocabulary()),
    }
    return Session(ModelStore(loader=lambda choice, **_: models[choice.reference]), "table")


def show(session, name, **values):
    """The pieces of a figure."""
    return show_figure(session, session.model("table"), name, **values).pieces


def cells(html, row):
    """The numbers in the row of a table that begins with this text."""
    found = re.search(rf"<tr[^>]*><td[^>]*>{row}</td>(.*?)</tr>", html, re.DOTALL)
    return re.findall(r">([^<]+)</td>", found[1])


def test_both_are_wrong_until_the_slider_makes_one_right(session):
    html = show(session, "near_misses")["result"]
    assert html.count("✗ wrong") == 2
    assert "0.916 nats" in html and "2.996 nats" in html
    html = show(session, "near_misses", a="60")["result"]
    assert (html.count("✓ right"), html.count("✗ wrong")) == (1, 1)


def test_hits_stay_and_the_loss_moves(session):
    html = show(session, "two_temperatures", a="1.0", b="1.6")["result"]
    hits, accuracy = cells(html, "first guesses right"), cells(html, "top-1 accuracy")
    assert len(set(hits)) == len(set(accuracy)) == 1
    first, second, lowest = map(float, cells(html, "mean loss in nats"))
    assert first != second and lowest <= min(first, second)
    assert cells(html, "temperature")[:2] == ["1.0", "1.6"]


@pytest.mark.parametrize("value", ["", "warm", "nan", "-3", "1e9"])
def test_any_temperature_gives_an_answer(session, value):
    assert "top-1 accuracy" in show(session, "two_temperatures", a=value)["result"]


def test_columns_of_the_histogram_add_up(two_tokenizers):
    html = show(two_tokenizers, "token_losses", second="noisy", b="1.0")["result"]
    tokens = int(re.search(r">(\d+) tokens<", html)[1])
    rows = re.findall(
        r"<td[^>]*>[\d–]+(?: and more)?</td><td[^>]*>(\d+)</td>\s*<td[^>]*>(\d+)</td>", html
    )
    assert len(rows) == 15
    assert [sum(int(row[side]) for row in rows) for side in (0, 1)] == [tokens, tokens]
    assert cells(html, "model") == ["table-0-0", "table-0-0.2"]


@pytest.mark.parametrize("name", ["token_losses", "paired_difference"])
def test_another_tokenizer_does_not_compare(two_tokenizers, name):
    with pytest.raises(ModelError, match="other tokens than table-0-0"):
        show(two_tokenizers, name, second="letters")


def test_the_dial_says_what_its_seed_gives(session):
    first = show(session, "twenty_seeds", seed="1")
    last = show(session, "twenty_seeds", seed="20")
    assert first["result"].count("<circle") == 21  # a dot each, and a ring
    table = re.findall(
        r"<tr><td[^>]*>(\d+)</td>\s*<td[^>]*>(\d+)</td>\s*<td[^>]*>([\d.]+)</td>", first["result"]
    )
    assert [row[0] for row in table] == [str(seed) for seed in range(1, 21)]
    for pieces, row in ((first, table[0]), (last, table[-1])):
        assert f"Seed {row[0]} hides {row[1]} tokens" in pieces["answer"]
        assert f"{row[2]} nats" in pieces["answer"]


def test_the_order_of_the_texts_moves_the_first_mean(session):
    rows = [
        cells(show(session, "more_texts", order=order)["result"], "5") for order in ("0", "1", "0")
    ]
    assert rows[0] == rows[2] != rows[1]


def test_typed_losses_are_judged_by_typed_limits(session):
    """2.2 / 2 is 10 % more, and e^0.2 is 1.22."""
    pieces = show(session, "published_changes", loss="2,2", baseline="2")
    assert "+10.00%" in pieces["own"] and "1.22" in pieces["own"]
    assert "REGRESSION" in pieces["own"]
    pieces = show(session, "published_changes", loss="2.2", baseline="2", risk_below="12 %")
    assert "AT_RISK" in pieces["own"]
    assert pieces["result"].count("PASS") == 7
    strict = show(session, "published_changes", pass_below="2", risk_below="3")["result"]
    counts = [strict.count(f">{verdict}<") for verdict in ("PASS", "AT_RISK", "REGRESSION")]
    assert counts == [4, 2, 2]


def test_lines_are_put_in_order_of_their_change(session):
    html = show(session, "published_changes", order="change")["result"]
    changes = [float(found) for found in re.findall(r">([+-][\d.]+\d\d)%</td>", html)]
    assert len(changes) == 8 and changes == sorted(changes, reverse=True)
    assert "all 8 computed changes are the printed ones" in html


@pytest.mark.parametrize(
    "values",
    [{"loss": "two"}, {"baseline": "0"}, {"loss": "inf"}, {"pass_below": "12"}, {"loss": ""}],
)
def test_what_is_no_loss_is_an_error(session, values):
    with pytest.raises(FillmaskError) as error:
        show(session, "published_changes", **values)
    assert isinstance(error.value, OptionError)


def test_the_second_model_is_the_same_one_warmer_where_no_other_fits(session):
    pieces = show(session, "paired_difference")
    assert "table-0-0 at temperature 1.1" in pieces["result"]
    assert re.search(r"[\d.]+ times narrower", pieces["result"])


def test_the_texts_say_how_many_texts_the_figures_read():
    said = {
        chapter.name: " ".join(f"{step.text} {step.after}" for step in chapter.steps)
        for chapter in chapters()
    }
    assert f"{uncertainty_figures.TEMPERATURE_TEXTS} texts" in said["accuracy"]
    assert f"{uncertainty_figures.SEED_TEXTS} short texts" in said["certainty"]
