"""What is summed over the hidden tokens of one model or of two, and the figures of it.

Sums grow with the vocabulary and by a few numbers per text, not with the tokens. They are equal to
the last digit whatever the order of texts and shards.

Axes: M hidden positions of a text, G groups of tokens, N texts, V vocabulary, C columns.
"""

import itertools
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fillmask_ui.evaluation.chance import Chance
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.evaluation.rows import PARTS, EvaluatedText, TokenScores
from fillmask_ui.evaluation.running_sums import (
    OwnSums,
    Tally,
    interval_of,
    loss_difference,
    total,
)
from fillmask_ui.evaluation.summary import CalibrationBin, GroupFigures, Histogram, ModelFigures
from fillmask_ui.intervals import RatioMoments, effective_number, largest_share, share_interval
from fillmask_ui.masking import KINDS

# Columns of every sum over tokens: their number, these, and the probability of the best guess.
MEANS = ("mean_nll_nats", "top1_accuracy", "top5_accuracy", "mean_rank", "mean_entropy_nats")
COLUMNS = 2 + len(MEANS)
COUNT, NLL, RIGHT, STATED = 0, 1, 2, -1
TEXT_COLUMNS = 5
# A term is a multiple of 1 / COARSE plus a multiple of 1 / FINE, and float64 adds either without
# rounding (up to 10^11, and up to 16 million rests of one sign).
COARSE, FINE = 2.0**16, 2.0**46
COARSE_MOMENT, FINE_MOMENT = 2.0**10, 2.0**44  # of squares and products: up to 8 * 10^12

BIN_NATS = 0.02
LOSS_BINS = 2500  # 0 to 50 nats and beyond
DIFFERENCE_BINS = 2500  # -25 to 25 nats
CALIBRATION_BINS = 10
FEWEST_TEXTS_OF_A_GROUP = 5  # an interval over fewer is too wide to be of use

# First position or count of each group.
POSITION_EDGES = (0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
FREQUENCY_EDGES = (1, 2, 4, 10, 30, 100, 300, 1000, 3000)


def _range_names(edges: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the groups that begin at each edge.

    >>> _range_names((1, 2, 4))
    ('1', '2-3', '4+')
    """
    pairs = itertools.pairwise(edges)
    names = [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairs]
    return (*names, f"{edges[-1]}+")


# Groups that every token is counted in, one of each; those of `calibration` have no names.
GROUPS = {
    "by_kind": KINDS,
    "by_part": PARTS,
    "by_position": _range_names(POSITION_EDGES),
    "calibration": ("",) * CALIBRATION_BINS,
}


def in_two(values: Any, coarse: float = COARSE, fine: float = FINE) -> np.ndarray:
    """Values as two terms, [..., 2], each of which adds up without rounding.

    >>> high, rest = in_two(0.1).tolist()
    >>> high * COARSE, round(high + rest, 13)
    (6554.0, 0.1)
    """
    values = np.asarray(values, np.float64)
    high = np.rint(values * coarse) / coarse
    rest = np.subtract(values, high, out=np.zeros(values.shape), where=np.isfinite(values))
    return np.stack([high, np.rint(rest * fine) / fine], axis=-1)


class ModelTally(Tally):
    """All sums of one model."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.own: OwnSums | None = None  # of the metric alone
        self.texts = array("d")  # TEXT_COLUMNS numbers per text
        self.sums = {name: np.zeros((len(own), COLUMNS, 2)) for name, own in GROUPS.items()}
        # Of each group texts, and sums over them of NLL^2, tokens^2, NLL * tokens.
        self.moments = {name: np.zeros((len(own), 4, 2)) for name, own in GROUPS.items()}
        self.occurrences = Counter[int]()  # of each token of the vocabulary, by its id
        self.by_token: dict[int, np.ndarray] = {}  # sums where it is hidden, float64 [C, 2]
        self.histogram = np.zeros((len(KINDS), LOSS_BINS), np.int64)
        self.cut = np.zeros(2, np.int64)  # texts truncated, tokens left out

    def add(self, row: EvaluatedText, scores: TokenScores) -> None:
        ranks, losses, entropies = scores.ranks, scores.nll_nats, scores.entropy_nats
        stated = scores.top_probabilities
        columns = (np.ones(len(ranks)), losses, ranks == 1, ranks <= 5, ranks, entropies, stated)
        terms = in_two(np.stack(columns, axis=1))  # [M, C, 2]
        sizes = len(ranks), self.metric.units(row), row.characters
        self.texts.extend((losses.sum(), *sizes, entropies.sum()))
        groups = {
            "by_kind": row.kinds,
            "by_part": row.parts,
            "by_position": np.searchsorted(POSITION_EDGES, row.cols, side="right") - 1,
            "calibration": _bins(stated * CALIBRATION_BINS, CALIBRATION_BINS),
        }
        for name, group in groups.items():
            sums = np.zeros_like(self.sums[name])  # [G, C, 2]
            np.add.at(sums, group, terms)
            self.sums[name] += sums
            count, nll = sums.sum(axis=-1)[:, [COUNT, NLL]].T  # [G]
            products = np.stack([count > 0, nll * nll, count * count, nll * count], axis=1)
            self.moments[name] += in_two(products, COARSE_MOMENT, FINE_MOMENT)
        self.occurrences.update(row.ids.tolist())
        for token_id, own in zip(row.true_ids.tolist(), terms, strict=True):
            self.by_token[token_id] = self.by_token.get(token_id, 0) + own
        np.add.at(self.histogram, (row.kinds, _bins(losses / BIN_NATS, LOSS_BINS)), 1)
        if self.own is not None:
            self.own.add(row, scores)
        self.cut += [row.truncated, row.left_out]

    @property
    def mean_nll_nats(self) -> float:
        tokens, nll = self.sums["by_kind"].sum(axis=-1)[:, [COUNT, NLL]].T
        return math.fsum(nll) / int(tokens.sum())

    def chance(self, vocabulary_size: int) -> Chance:
        """What a model would lose on these hidden tokens that reads nothing."""
        hidden = {token_id: int(sums[COUNT].sum()) for token_id, sums in self.by_token.items()}
        return Chance.of(self.occurrences, hidden, vocabulary_size)

    def text_columns(self, order: np.ndarray) -> np.ndarray:
        """Float64 [TEXT_COLUMNS, N]: NLL, tokens, the metric's units, characters, entropy."""
        return np.array(self.texts).reshape(-1, TEXT_COLUMNS)[order].T.copy()

    def figures(self, order: np.ndarray, quick: bool) -> ModelFigures:
        """Over texts in `order`, int64 [N]; `quick` as of `RunningSummary.summary`."""
        x, n, units, characters, entropy = self.text_columns(order)
        metric, own, tokens, covered = self.metric, self.own, int(n.sum()), int(characters.sum())
        mean, per_character = total(x) / tokens, total(x) / covered if covered else math.nan
        mean_interval = interval_of(x, n, quick, least=0.0)
        by_character = interval_of(x, characters, quick, least=0.0) if covered else None
        counted = x * units / n if metric.scaled else x
        value = metric.figure(total(counted) / math.fsum(units))
        metric_interval = mean_interval
        if own is not None and metric.counts_right:
            right = int(own.right(order).sum())
            value, metric_interval = right / len(order), share_interval(right, len(order))
        elif type(metric).units is not Metric.units:
            metric_interval = interval_of(counted, units, quick, least=0.0)
        histogram = Histogram(
            np.arange(LOSS_BINS + 1) * BIN_NATS,
            {name: counts.copy() for name, counts in zip(KINDS, self.histogram, strict=True)},
        )
        calibration = tuple(self._calibration())
        error = sum(
            slot.tokens * abs(slot.mean_probability - slot.accuracy) for slot in calibration
        )
        means = _means(self.sums["by_kind"].sum(axis=-1).sum(axis=0))
        means |= {"mean_nll_nats": mean, "mean_entropy_nats": math.fsum(entropy) / tokens}
        return ModelFigures(
            metric=value,
            metric_interval=metric_interval and metric_interval.map(metric.figure),
            tokens=tokens,
            effective_texts=effective_number(n),
            top_texts_variance_share=largest_share(x, n),
            characters=covered,
            **means,
            interval=mean_interval,
            mean_nll_bits=mean / math.log(2),
            perplexity=exp(mean),
            perplexity_interval=mean_interval and mean_interval.map(exp),
            nll_per_character_nats=per_character,
            nll_per_character_bits=per_character / math.log(2),
            per_character_interval=by_character,
            median_nll_nats=histogram.quantile(0.5),
            by_kind=self._groups("by_kind"),
            by_part=self._groups("by_part"),
            by_position=self._groups("by_position"),
            by_frequency=self._by_frequency(),
            calibration=calibration,
            calibration_error=error / tokens,
            histogram=histogram,
            truncated=int(self.cut[0]),
            left_out=int(self.cut[1]),
            written=own.figures(order, quick) if own else None,
        )

    def _groups(self, split: str) -> tuple[GroupFigures, ...]:
        return tuple(_groups(GROUPS[split], self.sums[split], self.moments[split]))

    def _by_frequency(self) -> tuple[GroupFigures, ...]:
        """Groups of tokens by their occurrences; their texts are not counted."""
        names = _range_names(FREQUENCY_EDGES)
        occurrences = [self.occurrences[token_id] for token_id in self.by_token]
        sums = np.zeros((len(names), COLUMNS, 2))
        group = np.searchsorted(FREQUENCY_EDGES, occurrences, side="right") - 1
        np.add.at(sums, group, np.stack([*self.by_token.values()]))
        return tuple(_groups(names, sums, np.zeros((len(names), 4, 2))))

    def _calibration(self) -> Iterator[CalibrationBin]:
        for index, sums in enumerate(self.sums["calibration"].sum(axis=-1).tolist()):
            low, high = (end / CALIBRATION_BINS for end in (index, index + 1))
            if tokens := sums[COUNT]:
                shares = sums[STATED] / tokens, sums[RIGHT] / tokens
                yield CalibrationBin(low, high, int(tokens), *shares)


class PairTally(Tally):
    """All sums of two models on identical masks."""

    def __init__(self) -> None:
        self.counts = np.zeros(4, np.int64)  # tokens, agreed, lost, won
        # Tokens with logits (none in stored runs), KL, reverse KL, mean |logit difference|.
        self.logit_sums = np.zeros((4, 2))
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
        losses = loss_difference(own.nll_nats, base.nll_nats) / BIN_NATS + DIFFERENCE_BINS / 2
        np.add.at(self.histogram, _bins(np.floor(losses), DIFFERENCE_BINS), 1)

    def figures(self) -> dict[str, Any]:
        """The fields of `Comparison` that need both models at one token."""
        tokens, agreed, lost, won = self.counts.tolist()
        half = DIFFERENCE_BINS * BIN_NATS / 2
        edges = np.linspace(-half, half, DIFFERENCE_BINS + 1)
        figures = {
            "agreement": agreed / tokens,
            "flips": tokens - agreed,
            "lost": lost,
            "won": won,
            "histogram": Histogram(edges, {"difference": self.histogram.copy()}),
        }
        counted, *logit_sums = self.logit_sums.sum(axis=-1).tolist()
        if counted:
            names = ("mean_kl_nats", "mean_kl_reverse_nats", "mean_abs_logit_difference")
            figures |= {name: own / counted for name, own in zip(names, logit_sums, strict=True)}
            figures["max_abs_logit_difference"] = max(self.largest)
        return figures


def _bins(places: np.ndarray, count: int) -> np.ndarray:
    """Int64, the bin of each place; the first and the last are open."""
    return np.clip(places, 0, count - 1).astype(np.int64)


def _means(sums: np.ndarray) -> dict[str, Any]:
    """By the names of `MEANS`; `sums` are float64 [C]."""
    means = sums[NLL:STATED] / sums[COUNT]
    return dict(zip(MEANS, means.tolist(), strict=True))


def _groups(names: Sequence[str], sums: np.ndarray, moments: np.ndarray) -> Iterator[GroupFigures]:
    """Those with tokens; `sums` are [G, C, 2], `moments` [G, 4, 2]."""
    each = zip(names, sums.sum(axis=-1), moments.sum(axis=-1).tolist(), strict=True)
    for name, own, (texts, *products) in each:
        tokens, nll = own[[COUNT, NLL]].tolist()
        if not tokens:
            continue
        interval = None
        if texts >= FEWEST_TEXTS_OF_A_GROUP:
            of_texts = RatioMoments(int(texts), nll, tokens, *products)
            interval = of_texts.interval(positive=True)
        counts = int(tokens), int(texts) or None
        yield GroupFigures(name, *counts, **_means(own), interval=interval)
