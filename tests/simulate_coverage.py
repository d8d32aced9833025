"""How often the 95% intervals hold the truth, and how often headline and verdict are wrong.

    python tests/simulate_coverage.py [REPETITIONS]

prints its tables in some minutes (docs/evaluate.md has some rows); test_coverage.py runs a part.

Texts of a `Law` have n hidden tokens each (lengths as of the embedded texts, lognormal, or of a
Pareto law, whose variance is infinite up to alpha = 2) and a gamma-distributed loss whose mean is
2.1 nats a token, times a gamma-distributed effect of the text and, where long texts are easier, a
factor that falls from 1.15 for the shortest to 0.85 (far easier: from 1.3 to 0.7). In laws of the
losses some texts are harder: 1 in 20 ten times, or each by a lognormal factor. A second model's
losses are 1.04 times these, with a normal noise of 0.2 in each text.

The resamples of `ratio_interval` depend on the number of texts alone, so that all repetitions share
them, and the sums over resamples are one product of matrices.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from fillmask_ui.evaluation.alarms import few_texts_alarm
from fillmask_ui.intervals import (
    Interval,
    effective_number,
    interval_of_scores,
    judge,
    largest_share,
)

SHORTEST, MEAN_NATS, WORSE = 8.0, 2.1, 1.04
HARD_SHARE = 0.05  # of the texts, in laws with harder ones
SIZES = (20, 60, 200, 1000)
RESAMPLES = 2000
_AT_ONCE = 250


@dataclass(frozen=True)
class Texts:
    """What was measured of [R, N] texts, in R repetitions."""

    tokens: np.ndarray
    baseline: np.ndarray  # sum of the losses, in nats
    model: np.ndarray


@dataclass(frozen=True)
class Law:
    """How long texts are, and how hard."""

    name: str
    alpha: float = 0.0  # of a Pareto law of the lengths
    easier: float = 0.0  # how far the factor of the longest texts lies below 1
    harder: float = 1.0  # how many times as hard 1 text in 20 is
    spread: float = 0.0  # standard deviation of the logarithm of a lognormal factor of each text

    @property
    def truth(self) -> float:
        """Mean loss of a token, in nats."""
        # E[sqrt(shortest * n)] / E[n] of the Pareto law is (alpha - 1) / (alpha - 1/2).
        root = (self.alpha - 1) / (self.alpha - 0.5) if self.alpha else 0.0
        hard = 1 + HARD_SHARE * (self.harder - 1)
        return MEAN_NATS * hard * (1 - self.easier + 2 * self.easier * root)

    def draw(
        self, rng: np.random.Generator, repetitions: int, count: int, worse: float = WORSE
    ) -> Texts:
        size = (repetitions, count)
        if self.alpha:
            tokens = SHORTEST * (1 + rng.pareto(self.alpha, size))
        elif self.name.startswith("embedded"):
            tokens = rng.choice(_embedded_lengths(), size)
        else:
            tokens = np.maximum(1.0, rng.binomial(_lognormal(rng, size), 0.15))
        factor = 1 - self.easier + 2 * self.easier * np.sqrt(SHORTEST / tokens)
        effect = rng.gamma(4, 0.25, size) * factor
        if self.harder != 1:
            effect *= np.where(rng.random(size) < HARD_SHARE, self.harder, 1.0)
        if self.spread:  # of mean 1
            effect *= rng.lognormal(-self.spread * self.spread / 2, self.spread, size)
        # A sum of n gamma(0.6) tokens is gamma(0.6 n).
        baseline = rng.gamma(0.6 * tokens, MEAN_NATS / 0.6 * effect)
        return Texts(tokens, baseline, baseline * rng.normal(worse, 0.2, size))


def _lognormal(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return np.clip(rng.lognormal(3.6, 0.8, size).astype(int), 3, 500)


@cache
def _embedded_lengths() -> np.ndarray:
    """About 0.15 hidden tokens for each five characters."""
    file = Path(__file__).parents[1] / "assets" / "texts" / "embedded.jsonl"
    texts = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]
    return np.maximum(1.0, np.rint([len(text) * 0.15 / 5 for text in texts]))


ORDINARY = (Law("embedded"), Law("lognormal"))
HEAVY = tuple(
    Law(f"Pareto {alpha:g}{words}", alpha, easier)
    for alpha in (1.1, 1.5, 2.0, 3.0)
    for words, easier in (("", 0.0), (", long texts easier", 0.15))
)
HEAVY_LOSSES = (
    Law("embedded, 1 in 20 ten times as hard", harder=10),
    Law("embedded, lognormal losses", spread=1),
)
# Here no interval holds, whatever is made of the texts that were drawn.
HOPELESS = Law("Pareto 1.1, long texts far easier", 1.1, 0.3)


@cache
def _resampled(count: int) -> np.ndarray:
    """Float64 [RESAMPLES, N]: how often each text is in each resample of `ratio_interval`."""
    rng = np.random.default_rng(42)
    counts = np.zeros((RESAMPLES, count))
    at_once = max(1, 500_000 // count)
    for start in range(0, RESAMPLES, at_once):
        drawn = rng.integers(0, count, size=(min(at_once, RESAMPLES - start), count))
        for repetition, texts in enumerate(drawn, start):
            counts[repetition] = np.bincount(texts, minlength=count)
    return counts


def intervals_of(
    x: np.ndarray, n: np.ndarray, weights: np.ndarray | None = None
) -> Iterator[tuple[Interval, Interval]]:
    """Of each of R repetitions what `ratio_interval` gives, and the same without corrections.

    Args:
        x: float64 [R, N], numerators.
        n: float64 [R, N], denominators.
        weights: float64 [R, N], as of `ratio_interval`; by default n.
    """
    weights = n if weights is None else weights
    counts, texts = _resampled(x.shape[1]), x.shape[1]
    for start in range(0, len(x), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        own_n = n[part]
        ratio = x[part].sum(axis=1, keepdims=True) / own_n.sum(axis=1, keepdims=True)
        residuals = x[part] - ratio * own_n
        total, gap, squares, crossed, lengths = (
            counts @ column.T
            for column in (own_n, residuals, residuals**2, residuals * own_n, own_n**2)
        )  # [RESAMPLES, R]
        shift = gap / total
        spread = np.maximum(squares - 2 * shift * crossed + shift**2 * lengths, 0.0)
        errors = np.sqrt(spread * texts / (texts - 1)) / total
        whole = np.sqrt((residuals**2).sum(axis=1) * texts / (texts - 1)) / own_n.sum(axis=1)  # [R]
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(errors > 1e-9 * whole, shift / errors, np.nan)
        quantiles = np.nanquantile(scores, [0.025, 0.975], axis=0).T  # [R, 2]
        for repetition, (interval, error) in enumerate(zip(quantiles, whole, strict=True), start):
            low, high = float(ratio[repetition - start, 0]) - error * interval[::-1]
            corrected = interval_of_scores(
                x[repetition], n[repetition], interval, weights[repetition]
            )
            yield corrected, Interval(low, high, "plain")


@dataclass(frozen=True)
class Coverage:
    """Shares of the repetitions, and mean widths against the uncorrected interval."""

    mean: float  # with the true mean loss in its interval
    mean_uncorrected: float
    mean_width: float
    change: float  # the same of the relative change against the second model
    change_uncorrected: float
    change_width: float
    difference: float  # of the difference of the mean losses
    noted: float  # with the note that a few long, or hard, texts decide
    silent: float  # whose interval of the mean misses without that note


def coverage(law: Law, count: int, repetitions: int, seed: int = 1) -> Coverage:
    """Of texts drawn from a law, the embedded ones among them."""
    texts = law.draw(np.random.default_rng(seed), repetitions, count)
    noted = np.array(
        [
            bool(few_texts_alarm(count, effective_number(n), largest_share(x, n)))
            for x, n in zip(texts.baseline, texts.tokens, strict=True)
        ]
    )
    gap = texts.model - texts.baseline
    hits, plain, widths = [], [], []
    for x, n, weights, truth in (
        (texts.baseline, texts.tokens, texts.tokens, law.truth),
        (gap, texts.baseline, texts.baseline, WORSE - 1),
        (gap, texts.tokens, texts.baseline, law.truth * (WORSE - 1)),
    ):
        intervals = list(intervals_of(x, n, weights))
        hits.append(
            np.array([corrected.low <= truth <= corrected.high for corrected, _ in intervals])
        )
        plain.append(np.mean([old.low <= truth <= old.high for _, old in intervals]))
        wide, narrow = np.sum([[i.high - i.low for i in pair] for pair in intervals], axis=0)
        widths.append(wide / narrow)
    return Coverage(
        *(hits[0].mean(), plain[0], widths[0]),
        *(hits[1].mean(), plain[1], widths[1]),
        *(hits[2].mean(), noted.mean(), (~hits[0] & ~noted).mean()),
    )


@dataclass(frozen=True)
class ErrorRates:
    """Shares of the repetitions in which a comparison says what is not so."""

    # Where the models do not differ:
    headline: float  # whose interval of the change leaves out 0
    difference: float  # whose interval of the difference in nats does
    either: float  # one of them
    alarm: float  # with a verdict of AT_RISK or REGRESSION
    # Where the change lies on the border of PASS and AT_RISK:
    passed: float  # with PASS
    failed: float  # with AT_RISK or REGRESSION


def error_rates(law: Law, count: int, repetitions: int, seed: int = 2) -> ErrorRates:
    """Of headline and verdict together, of enough texts for a verdict."""
    rng = np.random.default_rng(seed)
    equal, border = (law.draw(rng, repetitions, count, worse) for worse in (1.0, 1.05))
    gap = equal.model - equal.baseline
    changes = [interval for interval, _ in intervals_of(gap, equal.baseline)]
    differences = [interval for interval, _ in intervals_of(gap, equal.tokens, equal.baseline)]
    seen = np.array([[not interval.low <= 0 <= interval.high for interval in changes]])
    seen = np.vstack(
        [seen, [not interval.low <= 0 <= interval.high for interval in differences]]
    )  # [2, R]
    labels = [_labels(texts, count) for texts in (equal, border)]
    worse = [np.isin(label, ("AT_RISK", "REGRESSION")).mean() for label in labels]
    passed = (labels[1] == "PASS").mean()
    return ErrorRates(*seen.mean(axis=1), seen.any(axis=0).mean(), worse[0], passed, worse[1])


def _labels(texts: Texts, count: int) -> np.ndarray:
    """The verdict of each repetition."""
    gap = texts.model - texts.baseline
    changes = gap.sum(axis=1) / texts.baseline.sum(axis=1)
    intervals = intervals_of(gap, texts.baseline)
    return np.array(
        [
            judge(change, interval, count).label
            for change, (interval, _) in zip(changes, intervals, strict=True)
        ]
    )


def main(repetitions: int) -> None:
    print("| lengths | texts | mean | change | difference | noted | silent misses | widths |")
    print("| --- | ---: | --- | --- | --- | --- | --- | --- |")
    for law in (*ORDINARY, *HEAVY_LOSSES, *HEAVY, HOPELESS):
        for count in SIZES:
            shares = coverage(law, count, repetitions)
            cells = (
                *(f"{shares.mean:.1%} ({shares.mean_uncorrected:.1%})",),
                *(f"{shares.change:.1%} ({shares.change_uncorrected:.1%})",),
                *(f"{share:.1%}" for share in (shares.difference, shares.noted, shares.silent)),
                f"{shares.mean_width:.2f}, {shares.change_width:.2f}",
            )
            print(f"| {law.name} | {count:,} | {' | '.join(cells)} |", flush=True)
    print("\n| texts | | headline | nats | either | alarm | PASS at +5% | worse at +5% |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for law in (*ORDINARY, *HEAVY_LOSSES):
        for count in SIZES[1:]:
            rates = (f"{rate:.1%}" for rate in vars(error_rates(law, count, repetitions)).values())
            print(f"| {law.name} | {count:,} | {' | '.join(rates)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
