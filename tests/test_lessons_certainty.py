"""Chapter 8: seeds, intervals, published changes and pairing, by hand and against scipy."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from table_model import TableModel, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.intervals import Interval, Limits
from fillmask_ui.lessons.mean_uncertainty import (
    PUBLISHED,
    Change,
    TextLosses,
    compare_paired,
    difference_of,
    means_by_count,
    means_over_seeds,
    shortest,
    text_losses,
)
from fillmask_ui.models import load_model
from fillmask_ui.records import Example
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextSource, open_texts

TEXTS = [Example(*item) for item in enumerate(sample_texts(60))]


def test_dice_are_the_evaluators():
    model = TableModel()
    passes = []
    dice = means_over_seeds(model, TEXTS, seeds=(3, 4, 5), on_pass=passes.append)
    assert passes == [1, 2, 3, 4]
    figures = [
        summarize(evaluate(model, TEXTS, EvaluationConfig(seed=seed))).model for seed in (3, 4, 5)
    ]
    means = [one.mean_nll_nats for one in figures]
    assert [one.mean_nll_nats for one in dice.seeds] == pytest.approx(means, abs=1e-12)
    assert dice.mean_nats == pytest.approx(np.mean(means))
    assert dice.spread_nats == pytest.approx(np.std(means, ddof=1))
    # All tokens of all seeds, kind by kind, are all that were scored.
    every = sum(one.tokens * one.mean_nll_nats for one in figures)
    by_kind = {
        kind: sum(group.tokens for one in figures for group in one.by_kind if group.name == kind)
        for kind in dice.shown_as
    }
    assert sum(by_kind[kind] * mean for kind, mean in dice.shown_as.items()) == pytest.approx(every)
    pseudo = summarize(evaluate(model, TEXTS, EvaluationConfig("pseudo-perplexity"))).model
    assert dice.pseudo_nll_nats == pseudo.mean_nll_nats


def test_means_and_intervals_are_the_evaluators():
    model = TableModel()
    rows = list(evaluate(model, TEXTS))
    losses = text_losses(model, TEXTS)
    found = means_by_count(losses)
    assert [one.texts for one in found] == [5, 10, 20, 40, len(losses.tokens)]
    whole = summarize(rows).model
    assert found[-1].mean_nll_nats == pytest.approx(whole.mean_nll_nats, abs=1e-12)
    assert found[-1].interval == whole.interval
    assert found[-1].tokens == whole.tokens
    assert [one.expected_half_nats / found[-1].half_nats for one in found] == pytest.approx(
        [math.sqrt(found[-1].texts / one.texts) for one in found]
    )


def test_another_order_changes_the_first_texts_alone():
    losses = text_losses(TableModel(), TEXTS)
    straight, turned = means_by_count(losses), means_by_count(losses, 7)
    assert turned[0].mean_nll_nats != straight[0].mean_nll_nats
    assert turned[-1].mean_nll_nats == pytest.approx(straight[-1].mean_nll_nats)
    assert means_by_count(losses, 7) == turned


def test_five_texts_have_the_interval_of_scipy():
    """With equally many tokens in each text the mean is one of five numbers: Student's t."""
    x = np.random.default_rng(2).gamma(4, 3, 12)
    five = means_by_count(TextLosses(x, np.full(12, 4.0)))[0]
    expected = stats.t.interval(0.95, 4, x[:5].mean() / 4, stats.sem(x[:5]) / 4)
    assert (five.interval.low, five.interval.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("losses", "message"),
    [(TextLosses(np.array([1, 2, math.inf, 1, 1, 1]), np.ones(6)), "calls a token impossible")],
)
def test_an_infinite_loss_is_an_error(losses, message):
    with pytest.raises(DataError, match=message):
        means_by_count(losses)


def test_too_few_texts_are_an_error():
    with pytest.raises(DataError, match=r"could measure \d of 4 texts"):
        text_losses(TableModel(), TEXTS[:4])


def test_published_changes_by_hand():
    """2.1625 / 2.1032 = 1.028195, 8.5174 / 2.3718 = 3.591112, e^6.1456 = 466.66."""
    first, last = PUBLISHED[0], PUBLISHED[-1]
    assert first.relative_change == pytest.approx(0.028195, abs=1e-6)
    assert last.relative_change == pytest.approx(2.591112, abs=1e-6)
    assert last.perplexity_factor == pytest.approx(466.66, abs=0.01)
    assert [row.verdict(Limits()) for row in PUBLISHED] == ["PASS"] * 7 + ["REGRESSION"]
    assert [row.as_printed for row in PUBLISHED] == [True] * 8
    assert [f"{row.printed_percent:+g}" for row in PUBLISHED] == [
        *("+2.8", "+2.7", "+0.2", "+1.6", "-0.5", "+1.4", "+4", "+259.1")
    ]


def test_losses_that_are_shown_give_the_change_that_is_stated():
    """2.16 / 2.10 is +2.9 %, so the losses stand with all their digits."""
    read = (Path(__file__).parent.parent / "docs" / "learn.md").read_text("utf-8")
    ((loss, baseline, stated),) = re.findall(r"why ([\d.]+) against ([\d.]+) is ([+\d.]+) %", read)
    assert f"{100 * Change(float(loss), float(baseline)).relative_change:+.1f}" == stated == "+2.8"
    # What the figure of the chapter begins with, below its heading of +2.8 %.
    controls = render("page/learn/published_changes.html")
    typed = dict(re.findall(r'name="(loss|baseline)"[^>]* value="([\d.]+)"', controls))
    assert typed == {"loss": loss, "baseline": baseline}


@pytest.mark.parametrize(
    ("loss", "verdict"),
    [(2.09, "PASS"), (2.099, "PASS"), (2.1, "AT_RISK"), (2.19, "AT_RISK"), (2.2, "REGRESSION")],
)
def test_verdicts_of_changes_against_two(loss, verdict):
    assert Change(loss, 2.0).verdict(Limits()) == verdict


def test_two_separate_means_add_up_as_squares():
    """Standard errors 3 and 4 of independent means make 5."""
    own, base = Interval(7.0, 13.0, "t"), Interval(4.0, 12.0, "t")
    found = difference_of((10.0, 8.0), (own, base))
    assert (found.low, found.high) == (-3.0, 7.0)
    skewed = difference_of((10.0, 8.0), (Interval(7, 22, "t"), Interval(3, 12, "t")))
    assert (skewed.low, skewed.high) == (2 - 5, 2 + 13)


def test_a_pair_is_the_evaluators():
    model, noisy = TableModel(), TableModel(noise=0.3)
    found = compare_paired(noisy, model, TEXTS)
    summary = summarize(evaluate(noisy, TEXTS, baseline=model))
    assert found.comparison.difference_nats == summary.comparison.difference_nats
    assert found.paired == summary.comparison.difference_interval
    assert found.separate == difference_of(
        (summary.model.mean_nll_nats, summary.baseline.mean_nll_nats),
        (summary.model.interval, summary.baseline.interval),
    )
    assert found.times_narrower > 1


def test_the_text_is_right_about_the_shipped_models():
    """Unchanged tokens cost little, random ones most; seeds differ, pairs are narrow."""
    model, other = load_model("embedded"), load_model("embedded:int8")
    texts = shortest(list(open_texts(TextSource())), 20)
    for one in (model, other):
        dice = means_over_seeds(one, texts)
        shown_as = dice.shown_as
        assert 0.1 < shown_as["unchanged"] < 1 < dice.mean_nats < shown_as["mask"]
        assert shown_as["mask"] < shown_as["random"]
        assert dice.spread_nats > 0.2
    found = compare_paired(other, model, list(open_texts(TextSource(samples=40))))
    assert found.times_narrower > 10
