"""Sums over measured texts, and the single tokens that a summary keeps; all merge.

They grow with the vocabulary and by a few numbers per text, not with the tokens, except for the
distinct pairs of tokens that unmasking wrote.

Axes: M hidden positions of a text, G groups of a split, N texts, V vocabulary, C columns.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fillmask_ui.evaluation.rows import PARTS, EvaluatedText, MaskedText, TokenScores
from fillmask_ui.intervals import Interval, RatioMoments, ratio_interval
from fillmask_ui.masking import KINDS

# Columns of every sum over tokens: their number, then these sums.
MEANS = ("mean_nll_nats", "top1_accuracy", "top5_accuracy", "mean_rank", "mean_entropy_nats")
COLUMNS = 1 + len(MEANS)
COUNT, NLL = 0, 1
TEXT_COLUMNS = 5
# Sums are equal to the last digit whatever the order of texts and shards: a term is a multiple of
# 1 / COARSE plus a multiple of 1 / FINE, and float64 adds either without rounding (up to 10^11, and
# up to 16 million rests of one sign).
COARSE, FINE = 2.0**16, 2.0**46
COARSE_MOMENT, FINE_MOMENT = 2.0**10, 2.0**44  # of squares and products: up to 8 * 10^12

BIN_NATS = 0.02
LOSS_BINS = 2500  # 0 to 50 nats and beyond
DIFFERENCE_BINS = 2500  # -25 to 25 nats
CALIBRATION_BINS = 10

# First position or count of each group.
POSITION_EDGES = (0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
FREQUENCY_EDGES = (1, 2, 4, 10, 30, 100, 300, 1000, 3000)


def loss_difference(own: ArrayLike, base: ArrayLike) -> np.ndarray:
    """`own - base`; 0 where both are infinite: the models are equally wrong."""
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


def in_two(values: Any, coarse: float = COARSE, fine: float = FINE) -> np.ndarray:
    """Values as two terms, [2, ...], each of which adds up without rounding.

    >>> high, rest = in_two([0.1])
    >>> high.item() * COARSE, round((high + rest).item(), 13)
    (6554.0, 0.1)
    """
    values = np.asarray(values, np.float64)
    high = np.rint(values * coarse) / coarse
    rest = np.subtract(values, high, out=np.zeros(values.shape), where=np.isfinite(values))
    return np.stack([high, np.rint(rest * fine) / fine])


def total(values: np.ndarray) -> float:
    """Exact sum, so that shards in any order give the same last digit."""
    if np.isfinite(values).all():
        return math.fsum(values)
    with np.errstate(invalid="ignore"):  # inf - inf is nan, which is the answer
        return float(np.sum(values))


def interval_of(
    x: np.ndarray, n: np.ndarray, quick: bool, least: float = -math.inf
) -> Interval | None:
    """Of sum(x) / sum(n) over texts, cut at `least`; linearised if `quick`."""
    if quick:
        found = RatioMoments(len(x), x.sum(), n.sum(), x @ x, n @ n, x @ n).interval()
    else:
        found = ratio_interval(x, n)
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


class SplitTally(Tally):
    """Sums for each of G groups of tokens, and the moments behind their intervals."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.sums = np.zeros((2, len(names), COLUMNS))
        self.moments = np.zeros((2, len(names), 4))  # texts, xx, nn, xn

    def add(self, group: np.ndarray, terms: np.ndarray) -> None:
        """Count one text: int [M] in [0, G), and float64 [2, M, C]."""
        sums = np.zeros_like(self.sums)  # [2, G, C]
        np.add.at(sums.swapaxes(0, 1), group, terms.swapaxes(0, 1))
        self.sums += sums
        count, nll = sums.sum(axis=0)[:, [COUNT, NLL]].T  # [G]
        products = np.stack([count > 0, nll * nll, count * count, nll * count], axis=1)
        self.moments += in_two(products, COARSE_MOMENT, FINE_MOMENT)

    def ratio_moments(self, group: int) -> RatioMoments:
        """NLL per token of one group, with whole texts as the unit."""
        texts, xx, nn, xn = self.moments.sum(axis=0)[group].tolist()
        count, nll = self.sums.sum(axis=0)[group, [COUNT, NLL]].tolist()
        return RatioMoments(int(texts), nll, count, xx, nn, xn)


class ModelTally(Tally):
    """All sums of one model; `units` is what the loss of a text is divided by."""

    def __init__(self, units: Callable[[MaskedText], float]) -> None:
        self.units = units
        self.own: OwnSums | None = None  # of the metric alone
        self.texts = array("d")  # TEXT_COLUMNS numbers per text
        self.kinds = SplitTally(KINDS)
        self.parts = SplitTally(PARTS)
        self.positions = SplitTally(_range_names(POSITION_EDGES))
        self.occurrences = Counter[int]()  # of each token of the vocabulary, by its id
        self.by_token: dict[int, np.ndarray] = {}  # sums where it is hidden, float64 [2, C]
        self.histogram = np.zeros((len(KINDS), LOSS_BINS), np.int64)
        # Of each bin of stated probability: tokens, sum of the probabilities, right ones.
        self.reliability = np.zeros((2, CALIBRATION_BINS, 3))
        self.cut = np.zeros(2, np.int64)  # texts truncated, tokens left out

    @property
    def sums(self) -> np.ndarray:
        """Float64 [C], over all tokens."""
        return self.kinds.sums.sum(axis=0).sum(axis=0)

    @property
    def mean_nll_nats(self) -> float:
        return math.fsum(self.kinds.sums.sum(axis=0)[:, NLL]) / int(self.sums[COUNT])

    def by_frequency(self) -> SplitTally:
        """Groups of tokens by their occurrences; their texts are not counted."""
        split = SplitTally(_range_names(FREQUENCY_EDGES))
        for token_id, own in self.by_token.items():
            group = bisect_right(FREQUENCY_EDGES, self.occurrences[token_id]) - 1
            split.sums[:, group] += own
        return split

    def text_columns(self, order: np.ndarray) -> np.ndarray:
        """Float64 [TEXT_COLUMNS, N]: NLL, tokens, the metric's units, characters, entropy."""
        return np.array(self.texts).reshape(-1, TEXT_COLUMNS)[order].T.copy()

    def add(self, row: EvaluatedText, scores: TokenScores) -> None:
        ranks, losses, entropies = scores.ranks, scores.nll_nats, scores.entropy_nats
        ones, right = np.ones(len(ranks)), ranks == 1
        terms = in_two(np.stack([ones, losses, right, ranks <= 5, ranks, entropies], axis=1))
        sizes = len(ranks), self.units(row), row.characters
        self.texts.extend((losses.sum(), *sizes, entropies.sum()))
        self.kinds.add(row.kinds, terms)
        self.parts.add(row.parts, terms)
        self.positions.add(np.searchsorted(POSITION_EDGES, row.cols, side="right") - 1, terms)
        self.occurrences.update(row.ids.tolist())
        for token_id, own in zip(row.true_ids.tolist(), terms.swapaxes(0, 1), strict=True):
            self.by_token[token_id] = self.by_token.get(token_id, 0) + own
        bins = np.minimum(losses / BIN_NATS, LOSS_BINS - 1).astype(np.int64)
        np.add.at(self.histogram, (row.kinds, bins), 1)
        stated = scores.top_probabilities
        slot = np.minimum(stated * CALIBRATION_BINS, CALIBRATION_BINS - 1).astype(np.int64)
        reliability = in_two(np.stack([ones, stated, right], axis=1))
        np.add.at(self.reliability.swapaxes(0, 1), slot, reliability.swapaxes(0, 1))
        if self.own is not None:
            self.own.add(row, scores)
        self.cut += [row.truncated, row.left_out]


class PairTally(Tally):
    """All sums of two models on identical masks."""

    def __init__(self) -> None:
        self.counts = np.zeros(4, np.int64)  # tokens, agreed, lost, won
        # Tokens with logits (none in stored runs), KL, reverse KL, mean |logit difference|.
        self.logit_sums = np.zeros((2, 4))
        self.largest = array("d")  # |logit difference| of each text with logits
        self.histogram = np.zeros(DIFFERENCE_BINS, np.int64)

    def add(self, row: EvaluatedText, base: TokenScores) -> None:
        own, difference = row.scores, row.difference
        lost = (own.ranks > 1) & (base.ranks == 1)
        won = (own.ranks == 1) & (base.ranks > 1)
        agreed = own.top_ids == base.top_ids
        self.counts += [len(own.ranks), agreed.sum(), lost.sum(), won.sum()]
        if difference is not None:
            each = (difference.kl_nats, difference.kl_reverse_nats, difference.mean_abs)
            self.logit_sums += in_two([len(own.ranks), *(values.sum() for values in each)])
            self.largest.append(difference.max_abs.max())
        losses = loss_difference(own.nll_nats, base.nll_nats)
        bins = np.floor(losses / BIN_NATS + DIFFERENCE_BINS / 2)
        np.add.at(self.histogram, np.clip(bins, 0, DIFFERENCE_BINS - 1).astype(np.int64), 1)


@dataclass(frozen=True)
class TokenExample:
    """One hidden token in its sentence."""

    id: int  # of the text
    position: int  # of the token
    text: str
    start: int  # first character of the token in `text`
    end: int  # one past its last
    token: str  # vocabulary string to be found
    kind: str  # what the model saw: `mask`, `random` or `unchanged`
    nll_nats: float  # of the true token
    rank: int  # of the true token
    top_token: str  # the model's best guess
    top_probability: float
    baseline_nll_nats: float | None = None  # of the second model, as below
    baseline_rank: int | None = None
    baseline_top_token: str | None = None

    @property
    def difference_nats(self) -> float | None:
        """How much larger the loss is than the baseline's."""
        base = self.baseline_nll_nats
        return None if base is None else self.nll_nats - base


def token_example(row: EvaluatedText, entry: int) -> TokenExample:
    """The hidden token at `cols[entry]`."""

    def said(scores: TokenScores) -> dict[str, Any]:
        nll, rank = float(scores.nll_nats[entry]), int(scores.ranks[entry])
        return {"nll_nats": nll, "rank": rank, "top_token": scores.top_tokens[entry]}

    start, end = row.spans[entry].tolist()
    base = said(row.baseline) if row.baseline is not None else {}
    return TokenExample(
        id=row.id,
        position=int(row.cols[entry]),
        text=row.text,
        start=start,
        end=end,
        token=row.tokens[entry],
        kind=KINDS[row.kinds[entry]],
        **said(row.scores),
        top_probability=float(row.scores.top_probabilities[entry]),
        **{f"baseline_{name}": value for name, value in base.items()},
    )


class Smallest(Tally):
    """What sorts first, as (key, id, position, ...); ties go to the earlier text and position."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._entries: list[tuple[Any, ...]] = []  # the key first

    def merge(self, other: Any) -> None:
        self.keep(other._entries)

    def keep(self, entries: Iterable[tuple[Any, ...]]) -> None:
        self._entries = self._first(entries)

    def examples(self) -> tuple[Any, ...]:
        """The fourth part of each entry."""
        return tuple(entry[3] for entry in self._entries)

    def _first(self, more: Iterable[tuple[Any, ...]] = ()) -> list[tuple[Any, ...]]:
        return sorted([*self._entries, *more], key=lambda entry: entry[:3])[: self.size]


class LargestTokens(Smallest):
    """The tokens with the largest values."""

    def add(self, row: EvaluatedText, values: np.ndarray) -> None:
        """Consider every token of a text; of `values`, float64 [M], -inf is never shown."""
        full = len(self._entries) == self.size
        least = -self._entries[-1][0] if full else -np.inf
        self.keep(
            (-float(values[entry]), row.id, int(row.cols[entry]), token_example(row, int(entry)))
            for entry in np.flatnonzero((values >= least) & (values > -np.inf))
        )


class PointSample(Smallest):
    """A fair sample of tokens, for scatter plots."""

    def add(self, row: EvaluatedText, *columns: np.ndarray) -> None:
        """Consider every token of a text; `columns` are float64 [M]."""
        keys = np.random.default_rng([row.id]).random(len(row.cols))
        self._entries += zip(keys.tolist(), *(column.tolist() for column in columns), strict=True)
        if len(self._entries) > 2 * self.size:
            self._entries = self._first()

    def columns(self) -> np.ndarray:
        """Float64 [columns, at most size]."""
        points = [entry[1:] for entry in self._first()]
        return np.array(points).T if points else np.zeros((0, 0))
