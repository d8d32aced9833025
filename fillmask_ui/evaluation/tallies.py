"""What is summed over the hidden tokens of one model or of two, and the figures of it.

Sums grow with the vocabulary and by a few numbers per text, not with the tokens. They are float64:
in another order of the texts they differ by some 1e-15 of their size.

Axes: M hidden positions of a text, G groups of tokens, N texts, V vocabulary, C columns.
"""

import itertools
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fillmask_ui.evaluation.chance import Chance
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.evaluation.rows import PARTS, EvaluatedText, TokenScores
from fillmask_ui.evaluation.running_sums import ExtraSums, TextSums, loss_difference
from fillmask_ui.evaluation.slices import FEWEST_TEXTS, Partition
from fillmask_ui.evaluation.summary import (
    CalibrationBin,
    GroupChange,
    GroupFigures,
    Histogram,
    ModelFigures,
)
from fillmask_ui.intervals import (
    Interval,
    effective_number,
    estimate_ratio,
    interval_of_positive_ratio,
    largest_share,
)
from fillmask_ui.masking import KINDS

# Columns of every sum over tokens: their number, these, and the probability of the best guess.
MEANS = ("mean_nll_nats", "top1_accuracy", "top5_accuracy", "mean_rank", "mean_entropy_nats")
COLUMNS = 2 + len(MEANS)
COUNT, NLL, RIGHT, STATED = 0, 1, 2, -1
TEXT_COLUMNS = 6
NO_SLICES = Partition()

BIN_NATS = 0.02
LOSS_BINS = 2500  # 0 to 50 nats and beyond
DIFFERENCE_BINS = 2500  # -25 to 25 nats
CALIBRATION_BINS = 10
# Texts are put into blocks by their ids where a sum per text would grow with the tokens: a block
# then counts as a text. It is a prime, so that it meets no rhythm of the data.
BLOCKS = 31

# First position, length or count of each group.
POSITION_EDGES = (0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
LENGTH_EDGES = (1, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
FREQUENCY_EDGES = (1, 2, 4, 10, 30, 100, 300, 1000, 3000)


def _range_names(edges: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the groups that begin at each edge.

    >>> _range_names((1, 2, 4))
    ('1', '2-3', '4+')
    """
    pairs = itertools.pairwise(edges)
    names = [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairs]
    return (*names, f"{edges[-1]}+")


class TokenGroups:
    """Sums over the tokens of each of G groups, the first column their number.

    `ratio` are two columns x and n: the interval is of the sum of x by that of n.
    """

    def __init__(self, names: Sequence[str], columns: int, ratio: tuple[int, int]) -> None:
        self.names, self.ratio = names, ratio
        self.sums = np.zeros((len(names), columns))
        self.texts = np.zeros(len(names), np.int64)  # with such tokens
        self.products = np.zeros((len(names), 3))  # over texts: x^2, n^2, x n

    def add(self, groups: np.ndarray, terms: np.ndarray) -> None:
        """The tokens of one text: int64 [M], the group of each, and float64 [M, C]."""
        sums = np.zeros_like(self.sums)
        np.add.at(sums, groups, terms)
        self.sums += sums
        x, n = (sums[:, column] for column in self.ratio)
        self.texts += sums[:, COUNT] > 0
        self.products += np.stack([x * x, n * n, x * n], axis=1)

    def interval(self, group: int) -> Interval | None:
        """Of a group; None for fewer than 5 texts."""
        texts, sums = int(self.texts[group]), self.sums[group]
        if texts < FEWEST_TEXTS:
            return None
        x, n = (sums[column] for column in self.ratio)
        return interval_of_positive_ratio(texts, x, n, self.products[group].tolist())


class GroupTally(TokenGroups):
    """What one model makes of the tokens of each group."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, COLUMNS, (NLL, COUNT))

    def figures(self) -> tuple[GroupFigures, ...]:
        """Of the groups with tokens."""
        groups = np.flatnonzero(self.sums[:, COUNT]).tolist()
        return tuple(self._figures(group) for group in groups)

    def _figures(self, group: int) -> GroupFigures:
        sums, texts = self.sums[group], int(self.texts[group])
        name, tokens = self.names[group], int(sums[COUNT])
        return GroupFigures(name, tokens, texts, **_means(sums), interval=self.interval(group))


class ChangeTally(TokenGroups):
    """Losses of a candidate and its reference over the tokens of each group."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, 3, (1, 2))

    def changes(self) -> tuple[GroupChange, ...]:
        """Of the groups with tokens: the relative change of the mean loss."""
        return tuple(map(self._change, np.flatnonzero(self.sums[:, COUNT]).tolist()))

    def _change(self, group: int) -> GroupChange:
        tokens, candidate, reference = self.sums[group].tolist()
        change = candidate / reference - 1 if 0 < reference < math.inf else math.nan
        ratio = self.interval(group)
        interval = ratio and ratio.map(lambda factor: factor - 1)
        return GroupChange(self.names[group], int(tokens), int(self.texts[group]), change, interval)


class ModelTally:
    """All sums of one model."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.extra_sums: ExtraSums | None = metric.extra_sums()  # of the metric alone
        self.texts = array("d")  # the last TEXT_COLUMNS fields of `TextSums`, text by text
        self.by_kind = GroupTally(KINDS)
        self.by_part = GroupTally(PARTS)
        self.by_position = GroupTally(_range_names(POSITION_EDGES))
        self.calibration = GroupTally(("",) * CALIBRATION_BINS)
        self.occurrences = Counter[int]()  # of each token of the vocabulary, by its id
        self.by_token: dict[int, np.ndarray] = {}  # sums where it is hidden, float64 [C]
        self.by_token_and_block: dict[int, np.ndarray] = {}  # their number and NLL, [BLOCKS, 2]
        self.histogram = np.zeros((len(KINDS), LOSS_BINS), np.int64)
        self.truncated = self.left_out = 0  # texts, tokens

    def add(self, row: EvaluatedText, scores: TokenScores) -> None:
        ranks, losses, entropies = scores.ranks, scores.nll_nats, scores.entropy_nats
        stated = scores.top_probabilities
        columns = (np.ones(len(ranks)), losses, ranks == 1, ranks <= 5, ranks, entropies, stated)
        terms = np.stack(columns, axis=1).astype(np.float64)  # [M, C]
        contribution = self.metric.contribution(row, scores)
        right = int((ranks == 1).sum())
        self.texts.extend((losses.sum(), len(ranks), row.characters, *contribution, right))
        self.by_kind.add(row.kinds, terms)
        self.by_part.add(row.parts, terms)
        self.by_position.add(_position_groups(row), terms)
        self.calibration.add(_bins(stated * CALIBRATION_BINS, CALIBRATION_BINS), terms)
        self.occurrences.update(row.ids.tolist())
        for token_id, term in zip(row.true_ids.tolist(), terms, strict=True):
            if token_id not in self.by_token:
                self.by_token[token_id] = np.zeros(COLUMNS)
                self.by_token_and_block[token_id] = np.zeros((BLOCKS, 2))
            self.by_token[token_id] += term
            self.by_token_and_block[token_id][row.id % BLOCKS] += term[: NLL + 1]
        np.add.at(self.histogram, (row.kinds, _bins(losses / BIN_NATS, LOSS_BINS)), 1)
        if self.extra_sums is not None:
            self.extra_sums.add(row, scores)
        self.truncated += row.truncated
        self.left_out += row.left_out

    @property
    def sums(self) -> np.ndarray:
        """Over all tokens, float64 [C]."""
        return self.by_kind.sums.sum(axis=0)

    @property
    def mean_nll_nats(self) -> float:
        return float(self.sums[NLL] / self.sums[COUNT])

    def chance(self, vocabulary_size: int) -> Chance:
        """What a model would lose on these hidden tokens that reads nothing."""
        hidden = {token_id: int(sums[COUNT]) for token_id, sums in self.by_token.items()}
        return Chance.of(self.occurrences, hidden, vocabulary_size)

    def text_sums(self, order: np.ndarray, *, quick: bool = True) -> TextSums:
        """Of the texts in `order`, int64 [N]."""
        columns = np.array(self.texts).reshape(-1, TEXT_COLUMNS)[order].T.copy()
        return TextSums(order, quick, *columns)

    def figures(
        self, texts: TextSums, groups: Partition = NO_SLICES, lengths: Partition = NO_SLICES
    ) -> ModelFigures:
        """Of the `text_sums` of all texts, and of slices of them."""
        metric, mean = self.metric.figure(texts), texts.mean_nll_nats
        perplexity = mean.map(exp)
        per_character = estimate_ratio(texts.nll_nats, texts.characters, texts.quick, least=0.0)
        counts = {name: row.copy() for name, row in zip(KINDS, self.histogram, strict=True)}
        histogram = Histogram(np.arange(LOSS_BINS + 1) * BIN_NATS, counts)
        tokens, calibration = int(texts.tokens.sum()), self._calibration()
        errors = [span.tokens * abs(span.mean_probability - span.accuracy) for span in calibration]
        extra = None
        if self.extra_sums is not None:
            extra = self.extra_sums.figures(texts.order, texts.quick)
        return ModelFigures(
            metric=metric.value,
            metric_interval=metric.interval,
            tokens=tokens,
            effective_texts=effective_number(texts.tokens),
            top_texts_variance_share=largest_share(texts.nll_nats, texts.tokens),
            characters=int(texts.characters.sum()),
            **(_means(self.sums) | {"mean_nll_nats": mean.value}),
            interval=mean.interval,
            mean_nll_bits=mean.value / math.log(2),
            perplexity=perplexity.value,
            perplexity_interval=perplexity.interval,
            nll_per_character_nats=per_character.value,
            nll_per_character_bits=per_character.value / math.log(2),
            per_character_interval=per_character.interval,
            median_nll_nats=histogram.quantile(0.5),
            by_group=groups.groups(self.metric, texts),
            by_length=lengths.groups(self.metric, texts),
            by_kind=self.by_kind.figures(),
            by_part=self.by_part.figures(),
            by_position=self.by_position.figures(),
            by_frequency=self._by_frequency(),
            calibration=calibration,
            calibration_error=sum(errors) / tokens,
            histogram=histogram,
            truncated=self.truncated,
            left_out=self.left_out,
            extra=extra,
        )

    def _calibration(self) -> tuple[CalibrationBin, ...]:
        return tuple(
            CalibrationBin(
                low=index / CALIBRATION_BINS,
                high=(index + 1) / CALIBRATION_BINS,
                tokens=int(sums[COUNT]),
                mean_probability=sums[STATED] / sums[COUNT],
                accuracy=sums[RIGHT] / sums[COUNT],
            )
            for index, sums in enumerate(self.calibration.sums.tolist())
            if sums[COUNT]
        )

    def _by_frequency(self) -> tuple[GroupFigures, ...]:
        """Groups of tokens by their occurrences; blocks count as texts, which are not told."""
        tally, groups = GroupTally(_range_names(FREQUENCY_EDGES)), self.frequency_groups()
        blocks = np.stack([*self.by_token_and_block.values()], axis=1)  # [BLOCKS, tokens, 2]
        for block in blocks:
            tally.add(groups, np.pad(block, ((0, 0), (0, COLUMNS - 2))))
        tally.sums[:] = 0.0
        np.add.at(tally.sums, groups, np.stack([*self.by_token.values()]))
        return tuple(replace(group, texts=None) for group in tally.figures())

    def frequency_groups(self) -> np.ndarray:
        """Int64, the index into `FREQUENCY_EDGES` of each token of `by_token`."""
        occurrences = [self.occurrences[token_id] for token_id in self.by_token]
        return np.searchsorted(FREQUENCY_EDGES, occurrences, side="right") - 1

    def frequency_changes(self, reference: "ModelTally") -> tuple[GroupChange, ...]:
        """Of this candidate, on the tokens that its reference was asked for as well."""
        tally, groups = ChangeTally(_range_names(FREQUENCY_EDGES)), self.frequency_groups()
        for block in range(BLOCKS):
            rows = [
                (*blocks[block], reference.by_token_and_block[token_id][block, NLL])
                for token_id, blocks in self.by_token_and_block.items()
            ]
            tally.add(groups, np.array(rows))
        return tuple(replace(change, texts=None) for change in tally.changes())


class PairTally:
    """All sums of two models on identical masks."""

    def __init__(self) -> None:
        self.tokens = self.agreed = self.lost = self.won = 0
        self.tokens_with_logits = 0  # stored runs have no logits
        self.logit_sums = np.zeros(3)  # KL, reverse KL, mean |logit difference|
        self.largest = -math.inf  # |logit difference|
        self.histogram = np.zeros(DIFFERENCE_BINS, np.int64)
        self.by_kind, self.by_part = ChangeTally(KINDS), ChangeTally(PARTS)
        self.by_position = ChangeTally(_range_names(POSITION_EDGES))

    def add(self, row: EvaluatedText, reference: TokenScores) -> None:
        candidate, difference = row.scores, row.difference
        right, reference_right = candidate.ranks == 1, reference.ranks == 1
        self.tokens += len(right)
        self.agreed += int((candidate.top_ids == reference.top_ids).sum())
        self.lost += int((reference_right & ~right).sum())
        self.won += int((right & ~reference_right).sum())
        if difference is not None:
            columns = (difference.kl_nats, difference.kl_reverse_nats, difference.mean_abs)
            self.tokens_with_logits += len(right)
            self.logit_sums += [column.sum() for column in columns]
            self.largest = max(self.largest, float(difference.max_abs.max()))
        losses = loss_difference(candidate.nll_nats, reference.nll_nats)
        bins = np.floor(losses / BIN_NATS + DIFFERENCE_BINS / 2)
        np.add.at(self.histogram, _bins(bins, DIFFERENCE_BINS), 1)
        columns = (np.ones(len(right)), candidate.nll_nats, reference.nll_nats)
        terms = np.stack(columns, axis=1)  # [M, 3]
        self.by_kind.add(row.kinds, terms)
        self.by_part.add(row.parts, terms)
        self.by_position.add(_position_groups(row), terms)

    def figures(self) -> dict[str, Any]:
        """The fields of `ModelComparison` that need both models at one token."""
        half = DIFFERENCE_BINS * BIN_NATS / 2
        edges = np.linspace(-half, half, DIFFERENCE_BINS + 1)
        figures: dict[str, Any] = {
            "agreement": self.agreed / self.tokens,
            "flips": self.tokens - self.agreed,
            "lost": self.lost,
            "won": self.won,
            "histogram": Histogram(edges, {"difference": self.histogram.copy()}),
            "by_kind": self.by_kind.changes(),
            "by_part": self.by_part.changes(),
            "by_position": self.by_position.changes(),
        }
        if self.tokens_with_logits:
            means = (self.logit_sums / self.tokens_with_logits).tolist()
            figures["mean_kl_nats"], figures["mean_kl_reverse_nats"] = means[:2]
            figures["mean_abs_logit_difference"] = means[2]
            figures["max_abs_logit_difference"] = self.largest
        return figures


def _position_groups(row: EvaluatedText) -> np.ndarray:
    """Int64 [M], index into `POSITION_EDGES`."""
    return np.searchsorted(POSITION_EDGES, row.cols, side="right") - 1


def length_slices(lengths: np.ndarray) -> Partition:
    """Slices of texts by their tokens, int64 [N]."""
    bins = np.searchsorted(LENGTH_EDGES, lengths, side="right") - 1
    names = _range_names(LENGTH_EDGES)
    return Partition({names[index]: np.flatnonzero(bins == index) for index in np.unique(bins)})


def _bins(positions: np.ndarray, count: int) -> np.ndarray:
    """Int64, the bin of each position; the first and the last are open."""
    return np.clip(positions, 0, count - 1).astype(np.int64)


def _means(sums: np.ndarray) -> dict[str, Any]:
    """By the names of `MEANS`; `sums` are float64 [C]."""
    means = sums[NLL:STATED] / sums[COUNT]
    return dict(zip(MEANS, means.tolist(), strict=True))
