"""statistics against scipy and against simulated truth."""

import math

import numpy as np
import pytest
from scipy import stats

from fillmask_ui import intervals
from fillmask_ui.errors import OptionError
from fillmask_ui.intervals import (
    Interval,
    judge,
    largest_share,
    ratio_interval,
    share_interval,
)


def test_bootstrap_equals_scipy_for_texts_of_equal_length():
    """With equal n the ratio is a mean; scipy has the studentised interval's ingredients."""
    x = np.random.default_rng(5).gamma(2, 1, 400)
    interval = ratio_interval(x, np.ones(400))
    expected = stats.bootstrap(
        (x,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    assert interval.low == pytest.approx(expected.low, abs=0.02)
    assert interval.high == pytest.approx(expected.high, abs=0.02)


def test_linearised_interval_equals_students_t_for_equal_lengths():
    x = np.random.default_rng(5).gamma(2, 1, 25)
    expected = stats.t.interval(0.95, 24, x.mean(), stats.sem(x))
    interval = ratio_interval(x, np.ones(25), quick=True)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-9)


def test_small_and_broken_samples():
    """Few texts take the linearised interval, one or an infinite loss none; nothing is exact."""
    x, n = np.array([1.0, 3.0, 2.0]), np.array([1.0, 2.0, 2.0])
    interval, expected = ratio_interval(x, n), ratio_interval(x, n, quick=True)
    assert interval.method == "linearised-t"
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    for few in ([], [1.0], [1.0, math.inf]):
        assert ratio_interval(np.array(few), np.ones(len(few))) is None
    n = np.arange(1.0, 81.0)
    assert ratio_interval(np.zeros(80), n) == Interval(0.0, 0.0, "linearised-t")
    same = ratio_interval(n, n)
    assert same.low == same.high == 1.0


def test_student_t_equals_scipy():
    for freedom in (1, 2, 3, 4, 7, 10, 29, 30, 31, 100, 10_000):
        expected = stats.t.ppf(0.975, freedom)
        assert intervals.student_t_quantile(freedom) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "low", "high", "label"),
    [
        (0.028, 0.01, 0.045, "PASS"),  # bert-base-uncased of the published table
        (-0.2, -0.3, -0.1, "PASS"),
        (0.0, 0.0, 0.0, "PASS"),
        (0.07, 0.055, 0.09, "AT_RISK"),
        (2.591, 2.4, 2.8, "REGRESSION"),  # distilbert-base-uncased of the published table
        (0.04, 0.01, 0.07, "INCONCLUSIVE"),
        (0.07, 0.01, 0.2, "INCONCLUSIVE"),
    ],
)
def test_verdicts(change, low, high, label):
    assert judge(change, Interval(low, high, "bootstrap-t"), 100).label == label


def test_further_texts_settle_a_verdict():
    """The probability by drawing the true change, and then the change that all texts show."""
    change, half, texts = 0.03, 0.06, 100
    verdict = judge(change, Interval(change - half, change + half, "bootstrap-t"), texts)
    assert verdict.label == "INCONCLUSIVE"
    rng = np.random.default_rng(7)
    error = half / stats.norm.ppf(0.975)

    def share_settled(further):
        total = texts + further
        truth = rng.normal(change, error, 200_000)
        more = rng.normal(truth, error * math.sqrt(texts / further))
        changes = (texts * change + further * more) / total
        shrunk = half * math.sqrt(texts / total)
        bands = [
            np.searchsorted([0.05, 0.10], changes + shift, "right") for shift in (-shrunk, shrunk)
        ]
        return np.mean(bands[0] == bands[1])

    assert share_settled(verdict.further_texts) == pytest.approx(0.8, abs=0.01)
    assert share_settled(verdict.further_texts // 2) < 0.75
    for low, high, count in ((0.04, 0.06, 9), (-math.inf, math.inf, 100), (0.04, math.inf, 100)):
        few = intervals.Limits(fewest_texts=2)
        unknown = judge(0.05, Interval(low, high, "bootstrap-t"), count, few)
        assert unknown == judge(0.5, None, 2, few) == intervals.Verdict("INCONCLUSIVE", None)


def test_few_texts_have_no_verdict_but_an_exact_one():
    """30 of 12 effective texts in 60 are 30 / 12 * 60 = 150, by hand."""
    small = Interval(-0.001, 0.001, "bootstrap-t")
    assert judge(0.0, small, 30).label == "PASS"
    assert judge(0.0, small, 29) == intervals.Verdict("INCONCLUSIVE", needed_texts=30)
    uneven = judge(0.0, small, 60, effective_texts=12.0)
    assert uneven == intervals.Verdict("INCONCLUSIVE", needed_texts=150)
    assert judge(0.0, small, 5, intervals.Limits(fewest_texts=5)).label == "PASS"
    assert judge(0.0, None, 1, equal=True) == intervals.Verdict("PASS", equal=True)
    assert judge(math.inf, None, 1).label == "REGRESSION"
    assert judge(0.0, None, 1, near_chance=True, equal=True).label == "NEAR_CHANCE"
    for fewest in (1, 0, -3):
        with pytest.raises(OptionError, match=rf"texts must be at least 2; it was {fewest}"):
            intervals.Limits(fewest_texts=fewest)


def test_the_share_of_the_variance_that_a_few_texts_carry():
    """Of Normal residuals 28%, of exponential ones 50%: the integrals of scipy."""
    rng = np.random.default_rng(6)
    for draw, density, mean in (
        (rng.normal, stats.norm, 0.0),
        (rng.exponential, stats.expon, 1.0),
    ):
        x = draw(size=200_000)
        border = np.quantile(np.abs(x - mean), 0.95)
        tail = density.expect(lambda v, m=mean, b=border: (v - m) ** 2 * (abs(v - m) > b))
        assert largest_share(x + 3, np.ones(len(x))) == pytest.approx(tail, abs=0.01)
    assert largest_share(np.ones(30), np.ones(30)) == 0.0
    assert largest_share(np.array([1.0, math.inf]), np.ones(2)) == 0.0


@pytest.mark.parametrize(("count", "total"), [(0, 1), (0, 20), (1, 12), (150, 300), (20, 20)])
def test_the_interval_of_a_share_is_that_of_scipy(count, total):
    expected = stats.binomtest(count, total).proportion_ci(method="wilson")
    interval = share_interval(count, total)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
