"""Single tokens that a summary keeps: the largest losses and differences, a fair sample for plots.

Axes: M hidden positions of a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.masking import KINDS


@dataclass(frozen=True)
class TokenExample:
    """One hidden token in its sentence."""

    id: int  # of the text
    position: int  # of the token
    text: str  # the sentence
    start: int  # first character of the token in `text`
    end: int  # one past its last
    token: str  # vocabulary string to be found
    kind: str  # what the model saw: `mask`, `random` or `unchanged`
    nll_nats: float  # of the true token
    rank: int  # of the true token
    top_token: str  # the model's best guess
    top_probability: float  # its probability
    # The same of the second model; None without one.
    baseline_nll_nats: float | None = None
    baseline_rank: int | None = None
    baseline_top_token: str | None = None

    @property
    def difference_nats(self) -> float | None:
        """How much larger the loss is than the baseline's."""
        base = self.baseline_nll_nats
        return None if base is None else self.nll_nats - base


def token_example(row: EvaluatedText, index: int) -> TokenExample:
    """The hidden token at `cols[index]`."""
    own, base = row.scores, row.baseline
    start, end = row.spans[index].tolist()
    return TokenExample(
        id=row.id,
        position=int(row.cols[index]),
        text=row.text,
        start=start,
        end=end,
        token=row.tokens[index],
        kind=KINDS[row.kinds[index]],
        nll_nats=float(own.nll_nats[index]),
        rank=int(own.ranks[index]),
        top_token=own.top_tokens[index],
        top_probability=float(own.top_probabilities[index]),
        baseline_nll_nats=None if base is None else float(base.nll_nats[index]),
        baseline_rank=None if base is None else int(base.ranks[index]),
        baseline_top_token=None if base is None else base.top_tokens[index],
    )


class _Smallest:
    """The entries with the smallest keys, the same for any order of the texts, not keeping all."""

    usual_size: int

    def __init__(self, size: int | None = None) -> None:
        self.size = size or self.usual_size
        self._entries: list[tuple[Any, ...]] = []  # the key first

    def merge(self, other: _Smallest) -> None:
        self._entries += other._entries
        self._entries = self.first()

    def first(self) -> list[tuple[Any, ...]]:
        return sorted(self._entries, key=lambda entry: entry[:3])[: self.size]


class LargestTokens(_Smallest):
    """The tokens with the largest values."""

    usual_size = 200

    def add(self, row: EvaluatedText, values: np.ndarray) -> None:
        """Consider every token of a text; of `values`, float64 [M], -inf is never shown."""
        full = len(self._entries) == self.size
        least = -self._entries[-1][0] if full else -np.inf
        # Ties go to the earlier text and position, whatever came first.
        self._entries += (
            (-float(values[index]), row.id, int(row.cols[index]), token_example(row, int(index)))
            for index in np.flatnonzero((values >= least) & (values > -np.inf))
        )
        self._entries = self.first()

    def examples(self) -> tuple[TokenExample, ...]:
        """Largest first."""
        return tuple(entry[3] for entry in self.first())


class PointSample(_Smallest):
    """A fair sample of tokens, for scatter plots."""

    usual_size = 3000

    def add(self, row: EvaluatedText, *columns: np.ndarray) -> None:
        """Consider every token of a text; `columns` are float64 [M]."""
        keys = np.random.default_rng([row.id]).random(len(row.cols))
        self._entries += zip(keys.tolist(), *(column.tolist() for column in columns), strict=True)
        if len(self._entries) > 2 * self.size:
            self._entries = self.first()

    def columns(self) -> np.ndarray:
        """float64 [columns, at most size]."""
        points = [entry[1:] for entry in self.first()]
        return np.array(points).T if points else np.zeros((0, 0))
