"""Sums over measured texts that merge, and what is largest among them.

Axes: M hidden positions of a text, N texts.
"""

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fillmask_ui.evaluation.rows import EvaluatedText, TokenScores
from fillmask_ui.intervals import Interval, RatioMoments, ratio_interval


def loss_difference(own: ArrayLike, base: ArrayLike) -> np.ndarray:
    """`own - base`; 0 where both are infinite: the models are equally wrong."""
    return np.subtract(own, base, out=np.zeros(np.shape(own)), where=own != base)


def total(values: np.ndarray) -> float:
    """Exact sum, so that shards in any order give the same last digit."""
    if np.isfinite(values).all():
        return math.fsum(values)
    with np.errstate(invalid="ignore"):  # inf - inf is nan, which is the answer
        return float(np.sum(values))


def interval_of(
    x: np.ndarray,
    n: np.ndarray,
    quick: bool,
    least: float = -math.inf,
    weights: np.ndarray | None = None,
) -> Interval | None:
    """Of sum(x) / sum(n) over texts, cut at `least`; linearised if `quick`.

    `weights` as of `ratio_interval`.
    """
    if quick:
        found = RatioMoments(len(x), x.sum(), n.sum(), x @ x, n @ n, x @ n).interval()
    else:
        found = ratio_interval(x, n, weights)
    return found and found.not_below(least)


class Tally:
    """Sums that merge."""

    def merge(self, other: Any) -> None:
        for name, value in vars(other).items():
            own = getattr(self, name)
            if isinstance(own, Tally):
                own.merge(value)
            elif isinstance(own, array | list):
                own.extend(value)
            elif isinstance(own, set):
                own |= value
            elif isinstance(own, dict):
                for key, amount in value.items():
                    own[key] = own.get(key, 0) + amount
            elif isinstance(own, np.ndarray):
                setattr(self, name, own + value)
            elif isinstance(value, Tally):  # without texts so far
                setattr(self, name, value)


class OwnSums(Tally, ABC):
    """Sums that one metric alone has, of one model."""

    @abstractmethod
    def add(self, row: EvaluatedText, scores: TokenScores) -> None: ...

    @abstractmethod
    def figures(self, order: np.ndarray, quick: bool) -> Any:
        """A record of `catalogue.figure`s over texts in `order`, int64 [N]."""

    def right(self, order: np.ndarray) -> np.ndarray:
        """Whether each text came out right, bool [N]; of a metric that `counts_right`."""
        raise NotImplementedError

    def against(self, base: Any, order: np.ndarray) -> Any:  # noqa: ARG002
        """A record of `catalogue.figure`s that set it beside the sums of a baseline, if any."""
        return None


class Largest(Tally):
    """What has the largest values; ties go to the earlier text and position."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._entries: list[tuple[float, int, int, Any]] = []  # -value, id, position, what is kept
        self._least = -math.inf  # what lies below it is not among them

    def add(self, row: EvaluatedText, values: np.ndarray, kept: Callable[[int], Any]) -> None:
        """Consider every token of a text by `values`, float64 [M], -inf for never.

        `kept` makes what is kept of the hidden token at `cols[entry]`.
        """
        for entry in np.flatnonzero((values >= self._least) & (values > -np.inf)).tolist():
            self.put(float(values[entry]), row.id, int(row.cols[entry]), kept(entry))

    def put(self, value: float, text_id: int, position: int, kept: Any) -> None:
        self._keep([(-value, text_id, position, kept)])

    def merge(self, other: Any) -> None:
        self._keep(entry for entry in other._entries if -entry[0] >= self._least)

    def kept(self) -> tuple[Any, ...]:
        """From the largest on."""
        self._cut()
        return tuple(kept for *_, kept in self._entries)

    def _keep(self, entries: Iterable[tuple[float, int, int, Any]]) -> None:
        self._entries += entries
        if len(self._entries) > 1.25 * self.size:
            self._cut()

    def _cut(self) -> None:
        self._entries = sorted(self._entries, key=lambda entry: entry[:3])[: self.size]
        if len(self._entries) == self.size:
            self._least = -self._entries[-1][0]
