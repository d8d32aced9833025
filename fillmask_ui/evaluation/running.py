"""summarize(): rows to figures, in one pass, and mergeable across shards."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.figures import column, interval, model_figures, pair_figures, total
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.schemes import CrossEntropy
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM, Comparison, ModelFigures, Summary
from fillmask_ui.evaluation.tallies import (
    COUNT,
    NLL,
    LargestTokens,
    ModelTally,
    PairTally,
    PointSample,
    gap,
)
from fillmask_ui.intervals import Limits, judge
from fillmask_ui.records import SkippedText

NEAR_CHANCE = 0.9


def summarize(
    rows: Iterable[EvaluatedText | SkippedText],
    *,
    config: EvaluationConfig | None = None,
    vocabulary_size: int | None = None,
    limits: Limits | None = None,
) -> Summary:
    """Figures of measured texts.

    Args:
        rows: from `evaluate`, in any order.
        config: what was measured; decides which figure the verdict is about.
        vocabulary_size: V, for the alarm that a model is near chance.
        limits: borders of the verdict.

    Raises:
        DataError: if no text was measured; the message counts the reasons.
    """
    running = RunningSummary(config=config, vocabulary_size=vocabulary_size, limits=limits)
    for row in rows:
        running.add(row)
    return running.summary()


class RunningSummary:
    """`summarize` step by step: add rows as they come, merge shards, look at any time.

    Args:
        config: what was measured; decides which figure the verdict is about.
        vocabulary_size: V, for the alarm that a model is near chance.
        limits: borders of the verdict.
    """

    def __init__(
        self,
        *,
        config: EvaluationConfig | None = None,
        vocabulary_size: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.limits = limits
        self.skipped: Counter[str] = Counter()
        self._ids = array("q")
        self._scheme = config.scheme if config is not None else CrossEntropy()
        self._model = ModelTally(self._scheme)
        self._baseline: ModelTally | None = None
        self._pair: PairTally | None = None
        self._worst = LargestTokens()
        self._most_different = LargestTokens()
        self._points = PointSample()

    @property
    def texts(self) -> int:
        """Texts measured so far."""
        return len(self._ids)

    @property
    def seen(self) -> int:
        """Texts measured or skipped so far."""
        return len(self._ids) + self.skipped.total()

    @property
    def tokens(self) -> int:
        """Hidden tokens so far."""
        return int(self._model.totals[COUNT])

    @property
    def mean_nll_nats(self) -> float:
        """Token average so far.

        Raises:
            ZeroDivisionError: before any text was measured.
        """
        return float(self._model.totals[NLL]) / self.tokens

    def add(self, row: EvaluatedText | SkippedText) -> None:
        """Count one text.

        Raises:
            ValueError: if some rows have a baseline and others have none.
        """
        if isinstance(row, SkippedText):
            self.skipped[row.reason] += 1
            return
        self._check_alike(row)
        self._ids.append(row.id)
        self._model.add(row, row.scores)
        self._worst.add(row, row.scores.nll_nats)
        if row.other is not None:
            self._baseline = self._baseline or ModelTally(self._scheme)
            self._baseline.add(row.other, row.other.scores)
        if row.baseline is not None:
            self._baseline = self._baseline or ModelTally(self._scheme)
            self._pair = self._pair or PairTally()
            self._baseline.add(row, row.baseline)
            self._pair.add(row)
            self._most_different.add(row, np.abs(gap(row.scores.nll_nats, row.baseline.nll_nats)))
            self._points.add(row, row.scores.nll_nats, row.baseline.nll_nats)
        else:
            self._points.add(row, row.scores.nll_nats)

    def _check_alike(self, row: EvaluatedText) -> None:
        own = (row.baseline is not None, row.other is not None)
        paired = self._pair is not None
        if self._ids and own != (paired, self._baseline is not None and not paired):
            raise ValueError(f"text {row.id} and those before it have not the same models")

    def merge(self, other: RunningSummary) -> None:
        """Count all texts of another shard; the figures are those of one run over both."""
        self.skipped += other.skipped
        if not other._ids:
            return
        if not self._ids:
            # Nothing here yet: what the other has decides whether there is a baseline.
            self._baseline = ModelTally(self._scheme) if other._baseline else None
            self._pair = PairTally() if other._pair else None
        if (self._baseline is None, self._pair is None) != (
            other._baseline is None,
            other._pair is None,
        ):
            raise ValueError("the shards have not the same models")
        self._ids += other._ids
        for name in ("_model", "_baseline", "_pair", "_worst", "_most_different", "_points"):
            if getattr(self, name) is not None:
                getattr(self, name).merge(getattr(other, name))

    def summary(self, *, quick: bool = False) -> Summary:
        """The figures so far.

        Args:
            quick: linearised intervals in place of resampling, for figures shown as they grow.

        Raises:
            DataError: if no text was measured; the message counts the reasons.
        """
        if not self._ids:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise DataError(
                f"no text could be measured: {reasons}"
                if reasons
                else "no text could be measured: there was none"
            )
        order = np.argsort(np.array(self._ids, np.int64), kind="stable")
        model = model_figures(self._model, order, quick)
        baseline = comparison = None
        if self._baseline is not None:
            baseline = model_figures(self._baseline, order, quick)
            comparison = self._compare(self._baseline, order, quick)
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
        )

    def _compare(self, base: ModelTally, order: np.ndarray, quick: bool) -> Comparison:
        by_token = self._pair is not None
        own = self._model
        x, y = column(own.text_nll, order), column(base.text_nll, order)
        gaps = gap(x, y)
        units = column(own.text_tokens if by_token else own.text_characters, order)
        difference_nats = total(gaps) / math.fsum(units)
        difference_interval = interval(gaps, units, quick)
        if self._scheme.exponential:
            # Of two tokenizers both perplexities are taken over the baseline's tokens: e^ of a loss
            # per token means another thing where the tokens are others.
            base_units = column(base.text_units, order)
            change = _expm1(total(gaps) / math.fsum(base_units))
            difference = interval(gaps, base_units, quick)
            change_interval = difference and difference.map(_expm1)
        else:
            whole = total(y)
            change = total(gaps) / whole if 0 < whole < math.inf else math.nan
            change_interval = interval(gaps, y, quick)
        return Comparison(
            unit="token" if by_token else "character",
            texts=len(order),
            relative_change=change,
            interval=change_interval,
            difference_nats=difference_nats,
            difference_interval=difference_interval,
            verdict=judge(change, change_interval, len(order), self.limits),
            **pair_figures(self._pair),
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


def _expm1(value: float) -> float:
    # A broken model can lie further behind than e^x holds.
    return math.inf if value > 700 else math.expm1(value)
