"""Sums over measured texts, and what is largest among them.

Axes: M hidden positions of a text, N texts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fillmask_ui.evaluation.rows import EvaluatedText, TokenScores
from fillmask_ui.intervals import Interval, RatioMoments, ratio_interval


def loss_difference(candidate: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """`candidate - reference`; 0 where both are infinite: the models are equally wrong."""
    zeros = np.zeros(np.shape(candidate))
    return np.subtract(candidate, reference, out=zeros, where=candidate != reference)


def total(values: np.ndarray) -> float:
    """The sum; NaN where infinities cancel."""
    with np.errstate(invalid="ignore"):
        return float(np.sum(values))


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval over texts; None where there is none."""

    value: float
    interval: Interval | None

    def map(self, function: Callable[[float], float]) -> Estimate:
        """The estimate of an increasing function of the figure."""
        return Estimate(function(self.value), self.interval and self.interval.map(function))


def ratio_of(
    x: np.ndarray,
    n: np.ndarray,
    quick: bool,
    least: float = -math.inf,
    weights: np.ndarray | None = None,
) -> Estimate:
    """sum(x) / sum(n) over texts; NaN unless the latter is positive and finite.

    The interval is cut at `least`, and linearised if `quick`; `weights` as of `ratio_interval`.
    """
    whole = total(n)
    value = total(x) / whole if 0 < whole < math.inf else math.nan
    if quick:
        interval = RatioMoments(len(x), x.sum(), n.sum(), x @ x, n @ n, x @ n).interval()
    else:
        interval = ratio_interval(x, n, weights)
    return Estimate(value, interval and interval.not_below(least))


@dataclass(frozen=True, eq=False)
class TextSums:
    """What one model has of each text, in the order of their ids; sums are float64 [N]."""

    order: np.ndarray  # int64 [N], the number of each text as it came
    quick: bool  # whether intervals are linearised, not resampled
    nll_nats: np.ndarray
    tokens: np.ndarray
    characters: np.ndarray
    numerators: np.ndarray  # of `Metric.contribution`
    denominators: np.ndarray

    @cached_property
    def mean_nll_nats(self) -> Estimate:
        """Over all tokens."""
        return ratio_of(self.nll_nats, self.tokens, self.quick, least=0.0)

    @property
    def ratio(self) -> Estimate:
        """All numerators by all denominators."""
        terms = (self.numerators, self.nll_nats), (self.denominators, self.tokens)
        if all(np.array_equal(*pair) for pair in terms):  # resampling takes its time
            return self.mean_nll_nats
        return ratio_of(self.numerators, self.denominators, self.quick, least=0.0)


class OwnSums(ABC):
    """Sums that one metric alone has, of one model."""

    @abstractmethod
    def add(self, row: EvaluatedText, scores: TokenScores) -> None: ...

    @abstractmethod
    def figures(self, order: np.ndarray, quick: bool) -> Any:
        """A record of `catalogue.figure`s over texts in `order`, int64 [N]."""

    def against(self, reference: Any, order: np.ndarray) -> Any:  # noqa: ARG002
        """A record of `catalogue.figure`s that set it beside the sums of a reference, if any."""
        return None


class Largest:
    """What has the largest values; ties go to the earlier text and position."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._entries: list[tuple[float, int, int, Any]] = []  # -value, id, position, item
        self._least = -math.inf  # what lies below it is not among them

    def add(self, row: EvaluatedText, values: np.ndarray, make: Callable[[int], Any]) -> None:
        """Consider every token of a text by `values`, float64 [M], -inf for never.

        `make` makes the item of the hidden token at `cols[entry]`.
        """
        for entry in np.flatnonzero((values >= self._least) & (values > -np.inf)).tolist():
            self.put(float(values[entry]), row.id, int(row.cols[entry]), make(entry))

    def put(self, value: float, text_id: int, position: int, item: Any) -> None:
        self._entries.append((-value, text_id, position, item))
        if len(self._entries) > 1.25 * self.size:
            self._cut()

    def kept(self) -> tuple[Any, ...]:
        """From the largest on."""
        self._cut()
        return tuple(item for *_, item in self._entries)

    def _cut(self) -> None:
        self._entries = sorted(self._entries, key=lambda entry: entry[:3])[: self.size]
        if len(self._entries) == self.size:
            self._least = -self._entries[-1][0]
