"""Sums over measured texts, and what is largest among their tokens.

Axes: M hidden positions of a text, N texts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fillmask_ui.evaluation.rows import EvaluatedText, TokenScores
from fillmask_ui.intervals import Estimate, estimate_ratio


def loss_difference(candidate: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """`candidate - reference`; 0 where both are infinite: the models are equally wrong."""
    zeros = np.zeros(np.shape(candidate))
    return np.subtract(candidate, reference, out=zeros, where=candidate != reference)


@dataclass(frozen=True, eq=False)
class TextSums:
    """Sums of one model over each text, float64 [N], in the order of the texts' ids."""

    order: np.ndarray  # int64 [N], the number of each text as it came
    quick: bool  # whether intervals are linearised, not resampled
    nll_nats: np.ndarray
    tokens: np.ndarray
    characters: np.ndarray
    numerators: np.ndarray  # of `Metric.contribution`
    denominators: np.ndarray
    right: np.ndarray  # tokens that the model ranks first

    def part(self, indices: np.ndarray) -> TextSums:
        """Of some of the texts; int64, ascending, in [0, N)."""
        columns = (column[indices] for name, column in vars(self).items() if name in _COLUMNS)
        return TextSums(self.order[indices], self.quick, *columns)

    @cached_property
    def mean_nll_nats(self) -> Estimate:
        """Over all tokens."""
        return estimate_ratio(self.nll_nats, self.tokens, self.quick, least=0.0)

    @property
    def ratio(self) -> Estimate:
        """All numerators by all denominators."""
        is_mean = np.array_equal(self.numerators, self.nll_nats)
        if is_mean and np.array_equal(self.denominators, self.tokens):
            return self.mean_nll_nats  # resampling takes its time
        return estimate_ratio(self.numerators, self.denominators, self.quick, least=0.0)


_COLUMNS = [column.name for column in fields(TextSums)[2:]]


class ExtraSums(ABC):
    """Sums of one model that one metric alone needs."""

    @abstractmethod
    def add(self, row: EvaluatedText, scores: TokenScores) -> None: ...

    @abstractmethod
    def figures(self, order: np.ndarray, quick: bool) -> Any:
        """A record of `catalogue.figure`s over texts in `order`, int64 [N]."""

    def against(self, reference: Any, order: np.ndarray) -> Any:  # noqa: ARG002
        """A record of `catalogue.figure`s that set it beside the sums of a reference, if any."""
        return None


class Largest:
    """The items with the largest values; ties go to the earlier text and position."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._ranked: list[tuple[tuple[float, int, int], Any]] = []  # (-value, id, position), item
        self._least = -math.inf  # what lies below it is not among them

    def add(self, row: EvaluatedText, values: np.ndarray, make: Callable[[int], Any]) -> None:
        """Consider every token of a text by `values`, float64 [M], -inf for never.

        `make` makes the item of the hidden token at `cols[entry]`.
        """
        for entry in np.flatnonzero((values >= self._least) & (values > -np.inf)).tolist():
            self.put(float(values[entry]), row.id, int(row.cols[entry]), make(entry))

    def put(self, value: float, text_id: int, position: int, item: Any) -> None:
        self._ranked.append(((-value, text_id, position), item))
        if len(self._ranked) > 2 * self.size:
            self.items()

    def items(self) -> tuple[Any, ...]:
        """From the largest on."""
        self._ranked = sorted(self._ranked, key=lambda ranked: ranked[0])[: self.size]
        if len(self._ranked) == self.size:
            self._least = -self._ranked[-1][0][0]
        return tuple(item for _, item in self._ranked)
