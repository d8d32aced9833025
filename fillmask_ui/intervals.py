"""Confidence intervals over texts, and the verdict on a change of a metric.

The mean over tokens is a ratio of two sums over texts, X / N: tokens of one text are not
independent, whole texts are, so texts are the unit. With 15 to 60 texts of skewed losses the
percentile bootstrap and BCa cover 88% to 92% of the time instead of 95%, the studentised one
93% to 94% (tests/simulate_coverage.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from fillmask_ui.errors import OptionError
from fillmask_ui.options import check_options, option

LEVEL = 0.95  # of all intervals
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_RESAMPLES, _SEED = 2000, 42
SETTLED = 0.8  # probability with which the further texts that are named settle a verdict
MOST_TIMES_THE_TEXTS = 1e6  # named as further texts
# With fewer, too many resamples repeat one text; with more, the bootstrap equals the linearised
# interval to three digits at a thousand times the cost.
FEWEST_TEXTS_TO_RESAMPLE = 10
MOST_TEXTS_TO_RESAMPLE = 20_000
_CELLS_AT_ONCE = 500_000  # of resamples x texts
# Where the variance rests on fewer texts than this, residuals are corrected for their leverage.
FEWEST_BEHIND_VARIANCE = 30
# Where it rests on less than this share of the texts, Student's t has as little freedom.
LEAST_SHARE_BEHIND_VARIANCE = 0.15
LARGEST = 0.05  # share of the texts that `largest_share` asks about
LEAST_FREEDOM = 2  # of one the 95% quantile is 12.7: too wide to be of use


@dataclass(frozen=True)
class Interval:
    """A confidence interval and how it was made."""

    low: float
    high: float
    method: str  # `bootstrap-t`, `linearised-t`, `wilson` or `sign-test`
    level: float = LEVEL

    def map(self, function: Callable[[float], float]) -> Interval:
        """The interval of an increasing function of the quantity."""
        return Interval(function(self.low), function(self.high), self.method)

    def negative(self) -> Interval:
        """The interval of the quantity with its sign turned."""
        return Interval(-self.high, -self.low, self.method)

    def not_below(self, least: float) -> Interval:
        return self.map(lambda value: max(value, least))


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval over texts; None where there is none."""

    value: float
    interval: Interval | None

    def map(self, function: Callable[[float], float]) -> Estimate:
        """The estimate of an increasing function of the figure."""
        return Estimate(function(self.value), self.interval and self.interval.map(function))

    def negative(self) -> Estimate:
        """The estimate of the figure with its sign turned."""
        return Estimate(-self.value, self.interval and self.interval.negative())


def estimate_ratio(
    x: np.ndarray,
    n: np.ndarray,
    quick: bool,
    least: float = -math.inf,
    weights: np.ndarray | None = None,
) -> Estimate:
    """sum(x) / sum(n) over texts; NaN unless the latter is positive and finite.

    The interval is that of `ratio_interval`, cut at `least`.
    """
    with np.errstate(invalid="ignore"):  # infinities of either sign may cancel
        numerator, denominator = float(np.sum(x)), float(np.sum(n))
    value = numerator / denominator if 0 < denominator < math.inf else math.nan
    interval = ratio_interval(x, n, weights, quick=quick)
    return Estimate(value, interval and interval.not_below(least))


def interval_of_positive_ratio(
    texts: int, x: float, n: float, products: Sequence[float]
) -> Interval | None:
    """Interval of X / N by sums over texts, linearised (Cochran 1977, section 6.4).

    It is the interval of the logarithm, carried back; None below two texts or if infinite.
    `products` are the sums over texts of x^2, n^2 and x n.
    """
    if texts < 2 or n <= 0 or not math.isfinite(sum(products)):
        return None
    ratio, (xx, nn, xn) = x / n, products
    # Rounding can leave a tiny negative sum where all texts agree.
    squares = max(xx - 2 * ratio * xn + ratio * ratio * nn, 0.0)
    half = student_t_quantile(texts - 1) * float(_standard_error(squares, n, texts))
    if ratio > 0 and half < 100 * ratio:
        factor = math.exp(half / ratio)
        return Interval(ratio / factor, ratio * factor, "linearised-t")
    return Interval(ratio - half, ratio + half, "linearised-t")


def ratio_interval(
    x: np.ndarray, n: np.ndarray, weights: np.ndarray | None = None, *, quick: bool = False
) -> Interval | None:
    """Interval of sum(x) / sum(n), each float64 [N] over texts; None below two, or if infinite.

    The studentised bootstrap of Efron and Tibshirani 1993, section 12.5; linearised if `quick`.
    `weights`, float64 [N], by default n, decide how far it is corrected for few texts, as
    `interval_of_scores` says.
    """
    x, n = np.asarray(x, np.float64), np.asarray(n, np.float64)
    weights = n if weights is None else np.asarray(weights, np.float64)
    count, total = len(x), n.sum()
    if count < 2 or total <= 0 or not np.isfinite([x, n, weights]).all():
        return None
    ratio = x.sum() / total
    error = _standard_error(((x - ratio * n) ** 2).sum(), total, count)
    resampled = FEWEST_TEXTS_TO_RESAMPLE <= count <= MOST_TEXTS_TO_RESAMPLE
    if quick or error == 0 or not resampled:
        return interval_of_scores(x, n, None, weights)
    rng = np.random.default_rng(_SEED)
    products = np.stack([x, n, x * x, n * n, x * n])  # [5, N]
    scores, at_once = [], max(1, _CELLS_AT_ONCE // count)
    for start in range(0, _RESAMPLES, at_once):
        drawn = rng.integers(0, count, size=(min(at_once, _RESAMPLES - start), count))
        sums = np.stack([product[drawn].sum(axis=1) for product in products])  # [5, R]
        ratios = sums[0] / sums[1]
        squares = np.maximum(sums[2] - 2 * ratios * sums[4] + ratios * ratios * sums[3], 0.0)
        errors = _standard_error(squares, sums[1], count)
        usable = errors > 1e-9 * error
        scores.append((ratios[usable] - ratio) / errors[usable])
    all_scores = np.concatenate(scores)  # empty if the texts differ by rounding alone
    tails = [(1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2]
    quantiles = np.quantile(all_scores, tails) if len(all_scores) else None
    return interval_of_scores(x, n, quantiles, weights)


def interval_of_scores(
    x: np.ndarray,
    n: np.ndarray,
    quantiles: np.ndarray | None,
    weights: np.ndarray | None = None,
) -> Interval:
    """The last step of `ratio_interval`.

    If the variance rests on few texts, each residual is divided by 1 - h, h being the text's share
    of all weights w (HC3 of MacKinnon and White 1985): a heavy text draws the ratio to itself. If
    it rests on a small share of them, each side is the wider of the bootstrap's and of Student's t
    with that number of texts less one as its freedom (Satterthwaite 1946, for variances that grow
    as w^2).

    `quantiles`, float64 [2], are of (resampled ratio - ratio) / its standard error; Student's t
    takes their place if they are None.
    """
    count, total = len(x), n.sum()
    ratio = x.sum() / total
    residual = x - ratio * n  # [N], sums to 0
    if weights is None or weights.sum() <= 0:
        weights = n
    behind = effective_number(weights * weights)
    if quantiles is not None and behind < FEWEST_BEHIND_VARIANCE:
        residual = residual / (1 - np.minimum(weights / weights.sum(), 0.99))
    error = _standard_error((residual * residual).sum(), total, count)
    few = behind < LEAST_SHARE_BEHIND_VARIANCE * count
    freedom = max(LEAST_FREEDOM, round(behind) - 1) if few else count - 1
    quantile = student_t_quantile(freedom)
    if quantiles is None:
        low, high, method = -quantile, quantile, "linearised-t"
    else:
        (low, high), method = quantiles.tolist(), "bootstrap-t"
        if few:
            low, high = min(low, -quantile), max(high, quantile)
    # The quantiles change sides: a resample above the estimate speaks for a truth below it.
    return Interval(float(ratio - high * error), float(ratio - low * error), method)


def share_interval(count: float, total: float) -> Interval:
    """Interval of the share of independent texts that have a property, `count` of `total`.

    The score interval of Wilson 1927, which holds even if all texts agree.

    >>> share_interval(0, 20).high.__round__(3)
    0.161
    """
    share, weight = count / total, _Z * _Z / total
    half = _Z * math.sqrt((share * (1 - share) + weight / 4) / total)
    centre = share + weight / 2
    low, high = (centre - half) / (1 + weight), (centre + half) / (1 + weight)
    # Rounding may miss an exact 0 or 1 by 1e-17.
    low, high = max(low, 0.0) if count else 0.0, min(high, 1.0) if count < total else 1.0
    return Interval(low, high, "wilson")


def paired_share_interval(won: int, lost: int, total: int) -> Interval:
    """Interval of (won - lost) / total: the difference of two shares of the same texts.

    The adjusted Wald interval of Agresti and Min 2005, which does not vanish where none differs.

    >>> paired_share_interval(0, 0, 60).high.__round__(3)
    0.032
    """
    won_more, lost_more, more = won + 0.5, lost + 0.5, total + 2
    centre = (won_more - lost_more) / more
    half = _Z * math.sqrt(won_more + lost_more - more * centre * centre) / more
    return Interval(max(centre - half, -1.0), min(centre + half, 1.0), "agresti-min")


def paired_ratio_interval(won: int, lost: int, right: int) -> Interval | None:
    """Interval of (won - lost) / right: the change of a share, by that of the baseline.

    `right` counts the texts that the baseline has right, `lost` of which the model does not. By the
    variance of the logarithm of two paired shares (delta method), (won + lost) / (texts right under
    the one * under the other), each count raised by a half; simulated for 20 to 1,000 texts it
    holds the truth 95 times in 100 or more. None without a right one.
    """
    if not right:
        return None
    model_right, baseline_right = right + won - lost + 0.5, right + 0.5
    half = _Z * math.sqrt((won + lost + 1) / (model_right * baseline_right))
    ratio = model_right / baseline_right
    return Interval(ratio * math.exp(-half) - 1, ratio * math.exp(half) - 1, "delta")


def _standard_error(squares: Any, total: Any, count: int) -> Any:
    """Of a ratio, or of many, from the sum of squared residuals of its texts."""
    return np.sqrt(squares / (count - 1) * count) / total


def effective_number(weights: np.ndarray) -> float:
    """Kish's effective sample size, (sum w)^2 / sum w^2 (1965, Survey Sampling, section 11.7).

    For w = n it says how many texts a ratio rests on, for w = n^2 how many its variance rests on.

    >>> effective_number(np.array([1.0, 1.0, 1.0, 1.0])), effective_number(np.array([98.0, 1, 1]))
    (4.0, 1.0410...)
    """
    weights = weights / weights.max()
    return float(weights.sum() ** 2 / (weights * weights).sum())


def largest_share(x: np.ndarray, n: np.ndarray) -> float:
    """Share of the variance of sum(x) / sum(n) that the largest 5% of the texts carry; 0 if none.

    x and n are float64 [N]. Of Normal residuals it is 28%, of exponential ones 50%.

    >>> largest_share(np.array([21.0, *[1.0] * 19]), np.ones(20))
    0.95...
    """
    if not np.isfinite([x, n]).all():
        return 0.0
    squares = np.sort((x - x.sum() / n.sum() * n) ** 2)[::-1]  # [N]
    most = squares[: math.ceil(LARGEST * len(x))].sum()
    return float(most / squares.sum()) if squares.any() else 0.0


# Two-sided 95% quantiles of Student's t for 1 to 30 degrees of freedom.
_STUDENT_T = (
    *(12.706204736174676, 4.302652729749459, 3.1824463052837064, 2.7764451051977908),
    *(2.5705818356363146, 2.446911851144966, 2.364624251592783, 2.306004135204166),
    *(2.2621571627982044, 2.228138851986274, 2.200985160091639, 2.1788128296672262),
    *(2.160368656462789, 2.1447866879178026, 2.131449545559774, 2.119905299221254),
    *(2.1098155778333165, 2.100922040241036, 2.093024054408307, 2.085963447265865),
    *(2.079613844727679, 2.0738730679040227, 2.0686576104190486, 2.063898561628024),
    *(2.059538552753298, 2.0555294386428695, 2.051830516480285, 2.0484071417952485),
    *(2.0452296421327043, 2.042272456301238),
)


def student_t_quantile(freedom: int) -> float:
    """Two-sided quantile of Student's t: |t| stays below it with probability 95%.

    Above 30 degrees of freedom by the series 26.7.5 of Abramowitz and Stegun 1964.

    >>> round(student_t_quantile(100), 4)
    1.984
    """
    if freedom <= len(_STUDENT_T):
        return _STUDENT_T[freedom - 1]
    z, z2 = _Z, _Z * _Z
    terms = (
        z,
        z * (z2 + 1) / 4,
        z * ((5 * z2 + 16) * z2 + 3) / 96,
        z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
        z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


@dataclass(frozen=True)
class Limits:
    """Borders of the verdict, as relative change of a metric where lower is better."""

    option_panel = "Limits of verdicts"

    pass_below: float = option(0.05, "Relative change that is still PASS.", metavar="X", least=0)
    risk_below: float = option(0.10, "Relative change that is still AT_RISK.", metavar="X", least=0)
    # Also of texts of equal length that would count as much (`effective_number`).
    fewest_texts: int = option(
        30, "Texts below which a verdict is INCONCLUSIVE.", metavar="N", least=2
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.pass_below >= self.risk_below:
            raise OptionError(
                "the border of PASS must lie below that of AT_RISK; they were "
                f"{self.pass_below:.1%} and {self.risk_below:.1%}"
            )

    def band(self, change: float) -> str:
        if change < self.pass_below:
            return "PASS"
        return "AT_RISK" if change < self.risk_below else "REGRESSION"

    def texts_needed(self, texts: int, effective_texts: float) -> int:
        """How many texts of this kind a verdict takes.

        >>> Limits().texts_needed(60, 12.0)
        150
        """
        return math.ceil(self.fewest_texts * max(1.0, texts / effective_texts))


@dataclass(frozen=True)
class Verdict:
    """Whether a model still does its job, beside another."""

    label: str  # PASS, AT_RISK, REGRESSION, INCONCLUSIVE or NEAR_CHANCE
    further_texts: int | None = None  # that would probably settle an inconclusive one
    needed_texts: int | None = None  # where there are fewer than any verdict takes
    equal: bool = False  # whether all losses are exactly those of the baseline


def judge(
    change: float,
    interval: Interval | None,
    texts: int,
    limits: Limits | None = None,
    *,
    effective_texts: float | None = None,
    near_chance: bool = False,
    equal: bool = False,
) -> Verdict:
    """The band that the whole interval of a relative change (0.03 for +3%) lies in, if any.

    NEAR_CHANCE comes first: beside another broken model a broken one changes nothing. What is exact
    (`equal`, or an infinite change) takes no number of texts.

    >>> judge(0.03, Interval(0.01, 0.06, "bootstrap-t"), texts=100)
    Verdict(label='INCONCLUSIVE', further_texts=733, needed_texts=None, equal=False)
    >>> judge(0.0, Interval(-0.01, 0.02, "bootstrap-t"), texts=6).needed_texts
    30
    """
    limits = limits or Limits()
    if near_chance:
        return Verdict("NEAR_CHANCE", equal=equal)
    if equal:
        return Verdict("PASS", equal=True)
    if change == math.inf:
        return Verdict("REGRESSION")  # an impossible token: no number of texts brings it back
    needed = limits.texts_needed(texts, effective_texts or texts)
    if texts < needed:
        return Verdict("INCONCLUSIVE", needed_texts=needed)
    if interval is None or math.isnan(change):
        return Verdict("INCONCLUSIVE")
    low, high = limits.band(interval.low), limits.band(interval.high)
    if low == high:
        return Verdict(low)
    spread = interval.high - interval.low
    growth = 1.0
    # A spread known from too few texts says nothing of the next ones.
    if texts >= FEWEST_TEXTS_TO_RESAMPLE and 0 < spread < math.inf:
        while (growth := growth * 1.02) < MOST_TIMES_THE_TEXTS:
            if _settled_probability(change, interval, growth, limits) >= SETTLED:
                return Verdict("INCONCLUSIVE", math.ceil(texts * growth) - texts)
    return Verdict("INCONCLUSIVE")


def _settled_probability(change: float, interval: Interval, growth: float, limits: Limits) -> float:
    """The probability that the interval of `growth` times the texts lies within one band.

    The change over all texts is Normal around the measured one; its variance is that of the
    measured one times the share of the texts that are yet to come.
    """
    error = (interval.high - interval.low) / 2 / _Z
    later = NormalDist(change, error * math.sqrt(1 - 1 / growth))
    above = (interval.high - change) / math.sqrt(growth)
    below = (change - interval.low) / math.sqrt(growth)
    borders = (-math.inf, limits.pass_below, limits.risk_below, math.inf)
    bands = ((low + below, high - above) for low, high in itertools.pairwise(borders))
    return sum(later.cdf(high) - later.cdf(low) for low, high in bands if low < high)
