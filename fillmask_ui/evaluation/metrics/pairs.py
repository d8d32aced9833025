"""Minimal pairs: how often a model finds the better of two sentences more likely.

Definition: hide one token of a sentence at a time and sum ln P(token | all others), its
pseudo-log-likelihood. A pair is right if the sum of the better sentence is strictly higher; the
figure is the share of the pairs that are right. A tie says that the model cannot tell them apart
and counts as wrong, also where the tokenizer makes both sentences the same tokens. `within_word`
also hides the later sub-tokens of the same word, which else give a long word away.

A text may be given before both sentences: it is read with each, and its tokens are not scored
(`conditional_score` of minicons, by the sum).

Rivals: a mean over tokens prefers sentences of long words; losses of the differing words alone need
sentences that are aligned. CrowS-Pairs' own score leaves out the words that differ.

Two tokenizers may be compared: each model sees both sentences by its own one.

Source:
    Warstadt et al. 2020, arXiv:1912.00582, where a tie is no success either; Salazar et al. 2020,
    arXiv:1910.14659; within-word: Kauf and Ivanova 2023, arXiv:2305.10588; Nangia et al. 2020,
    arXiv:2010.00133.

Axes: N pairs.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.catalogue import NATS, figure
from fillmask_ui.evaluation.metrics.each_token import EachToken
from fillmask_ui.evaluation.metrics.metric import Contribution
from fillmask_ui.evaluation.rows import EvaluatedText, TokenScores
from fillmask_ui.evaluation.running_sums import ExtraSums, Largest, TextSums, loss_difference
from fillmask_ui.intervals import (
    Estimate,
    Interval,
    estimate_ratio,
    paired_ratio_interval,
    paired_share_interval,
    share_interval,
)
from fillmask_ui.options import option

MOST_EXAMPLES = 50


@dataclass(frozen=True)
class Pairs(EachToken):
    """Share of pairs whose better sentence has the higher pseudo-log-likelihood."""

    name = "pairs"
    label = "Minimal pairs"
    note = "Two sentences a row, all tokens hidden in turn: is the better one the more likely one?"
    figure_label = "Pairs in which the better sentence is more likely"
    figure_key = "pair_accuracy"
    unit = ""
    higher_is_better = True

    better_column: str | None = option(None, "Column of the better sentence.", metavar="NAME")
    worse_column: str | None = option(None, "Column of the worse sentence.", metavar="NAME")
    given_column: str | None = option(
        None, "Column of a text before both, which is read and not scored.", metavar="NAME"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = self.better_column, self.worse_column
        if columns.count(None) == 1 or (columns[0] and columns[0] == columns[1]):
            named = " and ".join(map(repr, columns)).replace("None", "none")
            raise OptionError(
                f"a pair has two columns (--better-column, --worse-column); they were {named}"
            )

    @property
    def columns(self) -> tuple[str | None, str | None, str | None]:
        return self.better_column, self.worse_column, self.given_column

    def contribution(self, row: EvaluatedText, scores: TokenScores) -> Contribution:
        """1 for a pair that is right."""
        return Contribution(margin_nats(row, scores) > 0, 1)

    def figure(self, texts: TextSums) -> Estimate:
        right, pairs = int(texts.numerators.sum()), len(texts.numerators)
        return Estimate(right / pairs, share_interval(right, pairs))

    def change(self, candidate: TextSums, reference: TextSums) -> Estimate:
        won, lost = _won_and_lost(candidate.numerators > 0, reference.numerators > 0)
        right = int(reference.numerators.sum())
        value = (won - lost) / right if right else math.nan
        return Estimate(value, paired_ratio_interval(won, lost, right))

    def extra_sums(self) -> ExtraSums:
        return PairSums()


@dataclass(frozen=True)
class PairExample:
    """One pair; a margin is how much more likely its better sentence is, in nats."""

    id: int
    group: str
    text: str  # the better sentence
    worse: str
    margin_nats: float
    reference_margin_nats: float | None = None  # of the reference; None for one model

    @property
    def change_nats(self) -> float | None:
        if self.reference_margin_nats is None:
            return None
        return float(loss_difference(self.margin_nats, self.reference_margin_nats))


@dataclass(frozen=True, kw_only=True)
class PairFigures:
    """What one model makes of the pairs; token averages beside it are of the better sentences."""

    pairs: int = figure("pairs")
    pair_accuracy: float = figure("share of pairs right", "", "pair_accuracy_interval", share=True)
    ties: int = figure("ties, counted as wrong", key="pair_ties", note="ties, counted as wrong")
    mean_margin_nats: float = figure("mean margin", NATS, "mean_margin_interval")
    pair_accuracy_interval: Interval
    mean_margin_interval: Interval | None
    # Pairs to look at: those whose margin changed most, or the largest margins the wrong way.
    examples: tuple[PairExample, ...]


@dataclass(frozen=True, kw_only=True)
class PairsCompared:
    """A candidate beside its reference on the same pairs."""

    pair_accuracy_difference: float = figure(
        "difference of the share right",
        "",
        "pair_accuracy_difference_interval",
        share=True,
        note="candidate − reference",
    )
    pairs_lost: int = figure(
        "pairs right in the reference only", note="right in the reference only"
    )
    pairs_won: int = figure("pairs right in the candidate only", note="right in the candidate only")
    pair_accuracy_difference_interval: Interval


def margin_nats(row: EvaluatedText, scores: TokenScores) -> float:
    """How much more likely the better sentence of a row is, by one of its models."""
    worse = row.worse
    if worse is None:
        raise ValueError(f"row {row.id} is no pair")
    if np.array_equal(row.ids, worse.ids):  # batches round the same tokens differently
        return 0.0
    worse_scores = worse.scores
    if scores is not row.scores and worse.reference is not None:
        worse_scores = worse.reference
    return float(loss_difference(worse_scores.nll_nats.sum(), scores.nll_nats.sum()))


def _won_and_lost(candidate: np.ndarray, reference: np.ndarray) -> tuple[int, int]:
    """Pairs right in the candidate only, and in the reference only; bool [N] each."""
    return int((candidate & ~reference).sum()), int((reference & ~candidate).sum())


class PairSums(ExtraSums):
    """The sums behind `PairFigures`."""

    def __init__(self) -> None:
        self.margins = array("d")  # per pair, in nats
        self.largest = Largest(MOST_EXAMPLES)

    def add(self, row: EvaluatedText, scores: TokenScores) -> None:
        margin = margin_nats(row, scores)
        self.margins.append(margin)
        if scores is not row.scores or row.worse is None:
            return
        reference = None
        if row.reference is not None:
            reference = margin_nats(row, row.reference)
        elif row.reference_text is not None:
            reference = margin_nats(row.reference_text, row.reference_text.scores)
        example = PairExample(row.id, row.group, row.text, row.worse.text, margin, reference)
        size = -margin if example.change_nats is None else abs(example.change_nats)
        self.largest.put(size, row.id, 0, example)

    def figures(self, order: np.ndarray, quick: bool) -> PairFigures:
        margins = np.array(self.margins)[order]
        right = margins > 0
        pairs, count = len(order), int(right.sum())
        mean = estimate_ratio(margins, np.ones(pairs), quick)
        return PairFigures(
            pairs=pairs,
            pair_accuracy=count / pairs,
            pair_accuracy_interval=share_interval(count, pairs),
            ties=int((margins == 0).sum()),
            mean_margin_nats=mean.value,
            mean_margin_interval=mean.interval,
            examples=self.largest.items(),
        )

    def against(self, reference: Any, order: np.ndarray) -> PairsCompared:
        margins, reference_margins = (np.array(pairs.margins)[order] for pairs in (self, reference))
        won, lost = _won_and_lost(margins > 0, reference_margins > 0)
        return PairsCompared(
            pair_accuracy_difference=(won - lost) / len(order),
            pair_accuracy_difference_interval=paired_share_interval(won, lost, len(order)),
            pairs_lost=lost,
            pairs_won=won,
        )
