"""Running sums over measured texts, which merge: the mutable half of `summarize`.

They grow with the vocabulary and, by six numbers per text, with the texts; never with the tokens,
but for the distinct pairs of tokens that unmasking wrote.

Axes: M hidden positions of a text, G groups of a split, V vocabulary.
"""

from __future__ import annotations

import itertools
import math
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.evaluation.rows import PARTS, EvaluatedText, TokenScores, UnmaskedScores
from fillmask_ui.evaluation.schemes import Scheme
from fillmask_ui.intervals import RatioMoments
from fillmask_ui.masking import KINDS

# Columns of every sum: the tokens, then what is averaged over them.
MEANS = ("mean_nll_nats", "top1_accuracy", "top5_accuracy", "mean_rank", "mean_entropy_nats")
COLUMNS = 1 + len(MEANS)
COUNT, NLL = 0, 1
TEXT_COLUMNS = 5

BIN_NATS = 0.02
LOSS_BINS = 2500  # 0 to 50 nats; the last takes what lies beyond
DIFFERENCE_BINS = 2500  # -25 to 25 nats
CALIBRATION_BINS = 10

# First position or count of each group; the last is open.
POSITION_EDGES = (0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
FREQUENCY_EDGES = (1, 2, 4, 10, 30, 100, 300, 1000, 3000)


def gap(own: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Difference of losses of any shape; 0 where both are infinite, as both are equally wrong."""
    return np.subtract(own, base, out=np.zeros(np.shape(own)), where=own != base)


def _range_names(edges: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the groups that begin at each edge.

    >>> _range_names((1, 2, 4))
    ('1', '2-3', '4+')
    """
    names = [
        str(low) if high == low + 1 else f"{low}-{high - 1}"
        for low, high in itertools.pairwise(edges)
    ]
    return (*names, f"{edges[-1]}+")


class Tally:
    """Sums that merge."""

    def add_sums(self, other: Tally) -> None:
        """Those of another shard."""
        for name, value in vars(other).items():
            own = getattr(self, name)
            if isinstance(own, Tally):
                own.add_sums(value)
            elif isinstance(own, array):
                own.extend(value)
            elif isinstance(own, set):
                own |= value
            elif isinstance(own, np.ndarray | int):
                setattr(self, name, own + value)


class SplitTally(Tally):
    """Sums for each of G groups, and the moments that give each its interval."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.sums = np.zeros((len(names), COLUMNS))
        self.moments = np.zeros((len(names), 4))  # texts, xx, nn, xn

    def add(self, group: np.ndarray, values: np.ndarray) -> None:
        """Count one text: int [M], in [0, G), and float64 [M, COLUMNS]."""
        size = len(self.sums)
        sums = np.stack(
            [np.bincount(group, weights=column, minlength=size) for column in values.T], axis=1
        )  # [G, COLUMNS]
        self.sums += sums
        count, nll = sums[:, COUNT], sums[:, NLL]
        self.moments += np.stack([count > 0, nll * nll, count * count, nll * count], axis=1)

    def ratio_moments(self, group: int) -> RatioMoments:
        """NLL a token of one group, with whole texts as the unit."""
        texts, xx, nn, xn = self.moments[group].tolist()
        count, nll = self.sums[group, :2].tolist()
        return RatioMoments(int(texts), nll, count, xx, nn, xn)


class WrittenTally(Tally):
    """What one model wrote where texts were filled step by step; empty for any other metric."""

    def __init__(self) -> None:
        self.texts = array("d")  # per text: tokens that are the true ones, pseudo-perplexity
        self.tokens: set[int] = set()  # different ids
        self.pairs: set[tuple[int, int]] = (
            set()
        )  # different ids of neighbours that were both written

    def text_columns(self, order: np.ndarray) -> np.ndarray:
        """Float64 [2, N]: right tokens, pseudo-perplexity."""
        return np.array(self.texts).reshape(-1, 2)[order].T.copy()

    def add(self, row: EvaluatedText, scores: UnmaskedScores) -> None:
        written = scores.written_ids.tolist()
        right = int((scores.written_ids == row.true_ids).sum())
        self.texts.extend((right, scores.pseudo_perplexity))
        self.tokens.update(written)
        adjacent = np.flatnonzero(np.diff(row.cols) == 1).tolist()
        self.pairs.update((written[place], written[place + 1]) for place in adjacent)


class ModelTally(Tally):
    """Everything that is summed for one model; the metric says what a loss is divided by."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.texts = array("d")  # TEXT_COLUMNS numbers per text
        self.kinds = SplitTally(KINDS)
        self.parts = SplitTally(PARTS)
        self.positions = SplitTally(_range_names(POSITION_EDGES))
        self.tokens = np.zeros((0, COLUMNS + 1))  # [ids seen]; the last column: occurrences
        self.histogram = np.zeros((len(KINDS), LOSS_BINS), np.int64)
        self.calibration = np.zeros((CALIBRATION_BINS, 3))  # tokens, stated probability, right
        self.written = WrittenTally()
        self.truncated = 0
        self.left_out = 0

    @property
    def mean_nll_nats(self) -> float:
        """Token average; a `ZeroDivisionError` before any text was counted."""
        return math.fsum(self.kinds.sums[:, NLL]) / int(self.kinds.sums[:, COUNT].sum())

    def text_columns(self, order: np.ndarray) -> np.ndarray:
        """Float64 [TEXT_COLUMNS, N]: NLL, tokens, the metric's units, characters, entropy."""
        return np.array(self.texts).reshape(-1, TEXT_COLUMNS)[order].T.copy()

    def add(self, row: EvaluatedText, scores: TokenScores) -> None:
        right = scores.ranks == 1
        ones = np.ones(len(right))
        values = np.stack(
            [ones, scores.nll_nats, right, scores.ranks <= 5, scores.ranks, scores.entropy_nats],
            axis=1,
        )  # [M, COLUMNS]
        nll, entropy = scores.nll_nats.sum(), scores.entropy_nats.sum()
        self.texts.extend((nll, len(right), self.scheme.units(row), row.characters, entropy))
        self.kinds.add(row.kinds, values)
        self.parts.add(row.parts, values)
        place = np.searchsorted(POSITION_EDGES, row.cols, side="right") - 1
        self.positions.add(place, values)
        largest = int(row.ids.max())
        if largest >= len(self.tokens):
            # By half more than needed, so that growing is rare.
            self._grow(largest + 1 + largest // 2)
        np.add.at(self.tokens[:, :-1], row.true_ids, values)
        np.add.at(self.tokens[:, -1], row.ids, 1)
        bins = np.minimum(scores.nll_nats / BIN_NATS, LOSS_BINS - 1).astype(np.int64)
        np.add.at(self.histogram, (row.kinds, bins), 1)
        stated = scores.top_probabilities
        slot = np.minimum(stated * CALIBRATION_BINS, CALIBRATION_BINS - 1).astype(np.int64)
        np.add.at(self.calibration, slot, np.stack([values[:, COUNT], stated, right], axis=1))
        if isinstance(scores, UnmaskedScores):
            self.written.add(row, scores)
        self.truncated += row.truncated
        self.left_out += row.left_out

    def by_frequency(self) -> SplitTally:
        """The tokens by their occurrences in the texts; in how many texts is not counted."""
        split = SplitTally(_range_names(FREQUENCY_EDGES))
        group = np.searchsorted(FREQUENCY_EDGES, self.tokens[:, -1], side="right") - 1  # [V]
        for index in range(len(FREQUENCY_EDGES)):
            split.sums[index] = self.tokens[group == index].sum(axis=0)[:-1]
        return split

    def _grow(self, size: int) -> None:
        self.tokens = np.pad(self.tokens, ((0, max(size - len(self.tokens), 0)), (0, 0)))

    def merge(self, other: ModelTally) -> None:
        self._grow(len(other.tokens))
        other._grow(len(self.tokens))
        self.add_sums(other)


class PairTally(Tally):
    """What is summed for two models on identical masks."""

    def __init__(self) -> None:
        self.counts = np.zeros(4, np.int64)  # tokens, agreed, lost, won
        # Tokens with logits (stored runs have none), KL, reverse KL, mean |logit difference|.
        self.apart = np.zeros(4)
        self.max_abs = 0.0
        self.histogram = np.zeros(DIFFERENCE_BINS, np.int64)

    def add(self, row: EvaluatedText, base: TokenScores) -> None:
        own, apart = row.scores, row.difference
        count = len(own.ranks)
        lost = (own.ranks > 1) & (base.ranks == 1)
        won = (own.ranks == 1) & (base.ranks > 1)
        self.counts += [count, (own.top_ids == base.top_ids).sum(), lost.sum(), won.sum()]
        if apart is not None:
            sums = [apart.kl_nats.sum(), apart.kl_reverse_nats.sum(), apart.mean_abs.sum()]
            self.apart += [count, *sums]
            self.max_abs = max(self.max_abs, float(apart.max_abs.max()))
        bins = np.floor(gap(own.nll_nats, base.nll_nats) / BIN_NATS + DIFFERENCE_BINS / 2)
        np.add.at(self.histogram, np.clip(bins, 0, DIFFERENCE_BINS - 1).astype(np.int64), 1)

    def merge(self, other: PairTally) -> None:
        self.add_sums(other)
        self.max_abs = max(self.max_abs, other.max_abs)


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
