"""summarize(): rows to figures, in one pass, and mergeable across shards."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.figures import comparison_figures, model_figures
from fillmask_ui.evaluation.measure import Heartbeat
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.samples import LargestTokens, PointSample
from fillmask_ui.evaluation.schemes import CrossEntropy
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM, ModelFigures, Summary
from fillmask_ui.evaluation.tallies import ModelTally, PairTally, gap
from fillmask_ui.intervals import Limits
from fillmask_ui.records import SkippedText

NEAR_CHANCE = 0.9
# Where texts count as less than this share of them, a reader is told, from so many texts on.
LEAST_EFFECTIVE_SHARE = 0.5
FEWEST_TEXTS_TO_TELL = 10


def few_texts_carry(texts: int, effective_texts: float) -> bool:
    """Whether a few long texts carry most of the tokens."""
    return texts >= FEWEST_TEXTS_TO_TELL and effective_texts < LEAST_EFFECTIVE_SHARE * texts


def few_texts_note(texts: int, effective_texts: float) -> str:
    """What to tell a reader then."""
    return (
        f"a few long texts carry most tokens: {texts:,} texts count as {effective_texts:,.0f}; "
        "what many more texts would show can lie outside the intervals more often than 5 times in "
        "100"
    )


def summarize(
    rows: Iterable[EvaluatedText | SkippedText | Heartbeat],
    *,
    config: EvaluationConfig | None = None,
    vocabulary_size: int | None = None,
    limits: Limits | None = None,
) -> Summary:
    """Figures of what `evaluate` yields, in any order; options as of `RunningSummary`.

    Raises:
        DataError: if no text was measured; the message counts the reasons.
    """
    running = RunningSummary(config=config, vocabulary_size=vocabulary_size, limits=limits)
    for row in rows:
        if not isinstance(row, Heartbeat):
            running.add(row)
    return running.summary()


@dataclass(kw_only=True, eq=False)
class RunningSummary:
    """`summarize` step by step: add rows as they come, merge shards, look at any time."""

    config: EvaluationConfig | None = None  # what was measured; decides what the verdict is about
    vocabulary_size: int | None = None  # V, for the alarm that a model is near chance
    limits: Limits | None = None  # borders of the verdict

    def __post_init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self._ids = array("q")
        self._scheme = self.config.scheme if self.config is not None else CrossEntropy()
        self._model = ModelTally(self._scheme)
        self._baseline: ModelTally | None = None
        self._pair: PairTally | None = None
        self._worst = LargestTokens()
        self._most_different = LargestTokens()
        self._points = PointSample()

    @property
    def texts(self) -> int:
        return len(self._ids)

    @property
    def seen(self) -> int:
        """Texts measured or skipped so far."""
        return len(self._ids) + self.skipped.total()

    @property
    def mean_nll_nats(self) -> float:
        return self._model.mean_nll_nats

    def add(self, row: EvaluatedText | SkippedText) -> None:
        """Count one text.

        Raises:
            ValueError: if some rows have a baseline and others have none.
            DataError: if it was measured by another metric.
        """
        if isinstance(row, SkippedText):
            self.skipped[row.reason] += 1
            return
        metric = self.config.metric if self.config is not None else row.metric
        if row.metric not in ("", metric):
            raise DataError(
                f"text {row.id} was measured by {row.metric}, and the figures asked for are of "
                f"{metric}: give the config that it was measured by"
            )
        paired = row.baseline is not None
        self._expect(f"text {row.id} and those before it", paired or row.other is not None, paired)
        self._ids.append(row.id)
        self._model.add(row, row.scores)
        losses = [row.scores.nll_nats]
        self._worst.add(row, losses[0])
        if self._baseline and row.other:
            self._baseline.add(row.other, row.other.scores)
        if self._baseline and self._pair and row.baseline:
            losses.append(row.baseline.nll_nats)
            self._baseline.add(row, row.baseline)
            self._pair.add(row, row.baseline)
            self._most_different.add(row, np.abs(gap(*losses)))
        self._points.add(row, *losses)

    def _expect(self, what: str, second: bool, paired: bool) -> None:
        """Make the tallies of a second model for the first text, and hold later ones to that."""
        if not self._ids:
            self._baseline = ModelTally(self._scheme) if second else None
            self._pair = PairTally() if paired else None
        if (self._baseline is not None, self._pair is not None) != (second, paired):
            raise ValueError(f"{what} have not the same models")

    def merge(self, other: RunningSummary) -> None:
        """Count all texts of another shard; the figures are those of one run over both."""
        self.skipped += other.skipped
        if not other._ids:
            return
        self._expect("the shards", other._baseline is not None, other._pair is not None)
        self._ids += other._ids
        for name in ("_model", "_baseline", "_pair", "_worst", "_most_different", "_points"):
            if getattr(self, name) is not None:
                getattr(self, name).merge(getattr(other, name))

    def summary(self, *, quick: bool = False) -> Summary:
        """The figures so far; `quick` has linearised intervals in place of resampling.

        Raises:
            DataError: if no text was measured, where the message counts the reasons, or if one was
                counted twice of one config.
        """
        if not self._ids:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise DataError(
                f"no text could be measured: {reasons or 'there was none'}; give texts of several "
                "words, hide more of them (--mask-probability), or check how they are read "
                "(--column, --by, --encoding)"
            )
        ids = np.array(self._ids, np.int64)
        order = np.argsort(ids, kind="stable")
        # Without a config the rows may be those of several seeds.
        if self.config and (twice := np.flatnonzero(np.diff(ids[order]) == 0)).size:
            raise DataError(
                f"text {ids[order][twice[0]]} was counted twice: give each row once, and each text "
                "an id of its own"
            )
        model = model_figures(self._model, order, quick)
        baseline = comparison = None
        if (base := self._baseline) is not None:
            baseline = model_figures(base, order, quick)
            own, pair = self._model, self._pair
            comparison = comparison_figures(own, base, pair, order, quick, self.limits)
        return Summary(
            config=self.config,
            texts=self.texts,
            skipped=dict(sorted(self.skipped.items())),
            model=model,
            baseline=baseline,
            comparison=comparison,
            alarms=tuple(self._alarms(model, baseline)),
            worst=self._worst.examples(),
            most_different=self._most_different.examples(),
            points=self._points.columns(),
            provisional=quick,
        )

    def _alarms(self, model: ModelFigures, baseline: ModelFigures | None) -> Iterable[str]:
        if self.vocabulary_size:
            chance = math.log(self.vocabulary_size)
            for name, figures in (("the model", model), ("the baseline", baseline)):
                if figures is not None and figures.mean_nll_nats >= NEAR_CHANCE * chance:
                    yield (
                        f"{name} is near chance: its mean NLL is {figures.mean_nll_nats:.2f} nats "
                        f"and guessing among {self.vocabulary_size:,} tokens has {chance:.2f}; its "
                        "weights, its quantization or its tokenizer may be broken"
                    )
        if any(group.name == "unchanged" for group in model.by_kind):
            yield UNCHANGED_ALARM
        if few_texts_carry(self.texts, model.effective_texts):
            yield few_texts_note(self.texts, model.effective_texts)
