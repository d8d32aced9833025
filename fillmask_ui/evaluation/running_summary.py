"""summarize(): rows to figures, in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import fillmask_ui.intervals as intervals
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.alarms import UNCHANGED_ALARM, few_texts_alarm, unspaced_alarm
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import Heartbeat
from fillmask_ui.evaluation.metrics import METRICS, CrossEntropy, Metric
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.running_sums import Largest, TextSums, loss_difference
from fillmask_ui.evaluation.summary import ModelComparison, ModelFigures, Summary
from fillmask_ui.evaluation.tallies import ModelTally, PairTally
from fillmask_ui.records import SkippedText
from fillmask_ui.text_words import is_unspaced

MOST_MEANS = MOST_TOKENS = 200
MOST_POINTS = 3000


@dataclass(frozen=True)
class MeanSoFar:
    """The mean loss after some of the texts: of the model, or of reference and candidate."""

    texts: int  # measured so far
    means: tuple[intervals.Estimate, ...]  # mean NLL in nats; no interval below two texts


def summarize(
    rows: Iterable[EvaluatedText | SkippedText | Heartbeat],
    *,
    config: EvaluationConfig | None = None,
    vocabulary_size: int | None = None,
    limits: intervals.Limits | None = None,
) -> Summary:
    """Figures of what `evaluate` yields, in any order; options as of `RunningSummary`.

    A `DataError` if no text was measured; the message counts the reasons.
    """
    running = RunningSummary(config=config, vocabulary_size=vocabulary_size, limits=limits)
    for row in rows:
        if not isinstance(row, Heartbeat):
            running.add(row)
    return running.summary()


@dataclass(kw_only=True, eq=False)
class RunningSummary:
    """`summarize` step by step: add rows as they come, look at any time."""

    config: EvaluationConfig | None = None  # what was measured; decides what the verdict is about
    vocabulary_size: int | None = None  # V, for the alarm that a model is near chance
    limits: intervals.Limits | None = None  # borders of the verdict

    def __post_init__(self) -> None:
        # Without a config the figure is the cross-entropy, beside what the rows' metric adds.
        self._metric: Metric = self.config.metric if self.config else CrossEntropy()
        self._metric_name = self._metric.name if self.config else ""  # of the rows
        self.skipped: Counter[str] = Counter()  # reason to number of texts
        self._unspaced = 0  # texts in a script without blanks between words
        self._ids: list[int] = []
        self._model = ModelTally(self._metric)
        self._baseline = ModelTally(self._metric)  # empty without a second model
        self._pair = PairTally()  # empty without one of the same tokenizer
        self._worst = Largest(MOST_TOKENS)
        self._most_different = Largest(MOST_TOKENS)
        self._points = Largest(MOST_POINTS)  # a fair sample, by random numbers

    @property
    def texts(self) -> int:
        return len(self._ids)

    @property
    def seen(self) -> int:
        """Texts measured or skipped so far."""
        return self.texts + self.skipped.total()

    @property
    def mean_nll_nats(self) -> float:
        return self._model.mean_nll_nats

    def add(self, row: EvaluatedText | SkippedText) -> None:
        """Count one text; a `DataError` if it was measured by another metric."""
        if isinstance(row, SkippedText):
            self.skipped[row.reason] += 1
            return
        self._metric_name = self._metric_name or row.metric
        if row.metric not in ("", self._metric_name):
            raise DataError(
                f"text {row.id} was measured by {row.metric}, and the figures asked for are of "
                f"{self._metric_name}: give the config that it was measured by"
            )
        if not self._ids:
            for tally in (self._model, self._baseline):
                tally.extra_sums = METRICS.get(self._metric_name, CrossEntropy)().extra_sums()
        self._ids.append(row.id)
        self._unspaced += self._metric.reads_words and is_unspaced(row.text)
        self._model.add(row, row.scores)
        losses = [row.scores.nll_nats]
        self._worst.add(row, losses[0], row.example)
        if row.other is not None:
            self._baseline.add(row.other, row.other.scores)
        elif row.baseline is not None:
            losses.append(row.baseline.nll_nats)
            self._baseline.add(row, row.baseline)
            self._pair.add(row, row.baseline)
            self._most_different.add(row, np.abs(loss_difference(*losses)), row.example)
        order = np.random.default_rng([row.id]).random(len(row.cols))
        self._points.add(row, -order, lambda entry: tuple(float(nll[entry]) for nll in losses))

    def history(self) -> tuple[MeanSoFar, ...]:
        """The mean after ever more texts as they came, at even distances, and after all of them."""
        if not self._ids:
            return ()
        step = 1
        while self.texts // step >= MOST_MEANS:
            step *= 2
        tallies = [tally for tally in (self._baseline, self._model) if tally.texts]
        history = []
        for count in (*range(step, self.texts, step), self.texts):
            sums = [tally.text_sums(np.arange(count)) for tally in tallies]
            history.append(MeanSoFar(count, tuple(texts.mean_nll_nats for texts in sums)))
        return tuple(history)

    def summary(self, *, quick: bool = False) -> Summary:
        """The figures so far; `quick` has linearised intervals in place of resampling.

        A `DataError` if no text was measured (the message counts the reasons), or one twice of one
        config, or if some rows have a baseline and others have none.
        """
        order = self._order()
        texts = self._model.text_sums(order, quick=quick)
        model = self._model.figures(texts)
        baseline = comparison = None
        if self._baseline.texts:
            counts_differ = len(self._baseline.texts) != len(self._model.texts)
            if counts_differ or self._pair.tokens not in (0, model.tokens):
                raise DataError(
                    "not all rows have the same models: give those of one evaluation, without the "
                    "texts where one of two models failed"
                )
            baseline_texts = self._baseline.text_sums(order, quick=quick)
            baseline = self._baseline.figures(baseline_texts)
            comparison = self._comparison(texts, baseline_texts, model)
        return Summary(
            config=self.config,
            texts=self.texts,
            skipped=dict(sorted(self.skipped.items())),
            model=model,
            baseline=baseline,
            comparison=comparison,
            alarms=self._alarms(model),
            worst=self._worst.items(),
            most_different=self._most_different.items(),
            points=np.array(self._points.items()).T,
            limits=self.limits or intervals.Limits(),
            provisional=quick,
        )

    def _order(self) -> np.ndarray:
        """The numbers of the texts in the order of their ids, int64 [N]."""
        if not self._ids:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise DataError(
                f"no text could be measured: {reasons or 'there was none'}; give texts of several "
                "words, hide more of them (--mask-probability), or check how they are read "
                "(--column, --by, --encoding)"
            )
        ids = np.array(self._ids, np.int64)
        order = np.argsort(ids, kind="stable")
        repeated = np.flatnonzero(np.diff(ids[order]) == 0)
        # Without a config the rows may be those of several seeds.
        if self.config and repeated.size:
            raise DataError(
                f"text {ids[order][repeated[0]]} was counted twice: give each row once, and each "
                "text an id of its own"
            )
        return order

    def _comparison(
        self, candidate: TextSums, reference: TextSums, model: ModelFigures
    ) -> ModelComparison:
        change = worse = self._metric.change(candidate, reference)
        effective_texts = model.effective_texts
        if self._metric.higher_is_better:
            worse = change.negative()
            effective_texts = self.texts
        differences = loss_difference(candidate.nll_nats, reference.nll_nats)
        by_token = self._pair.tokens > 0
        units = candidate.tokens if by_token else candidate.characters
        # Corrected as the change of a perplexity is, so that both say the same.
        difference = intervals.estimate_ratio(
            differences, units, candidate.quick, weights=reference.nll_nats
        )
        near_chance = False
        if self.vocabulary_size:
            near_chance = self._model.chance(self.vocabulary_size).is_near(self.mean_nll_nats)
        extra = None
        if self._model.extra_sums is not None:
            extra = self._model.extra_sums.against(self._baseline.extra_sums, candidate.order)
        verdict = intervals.judge(
            worse.value,
            worse.interval,
            self.texts,
            self.limits,
            effective_texts=effective_texts,
            near_chance=near_chance,
            equal=not differences.any(),
        )
        return ModelComparison(
            unit="token" if by_token else "character",
            texts=self.texts,
            relative_change=change.value,
            interval=change.interval,
            difference_nats=difference.value,
            difference_interval=difference.interval,
            verdict=verdict,
            further_texts=verdict.further_texts,
            needed_texts=verdict.needed_texts,
            extra=extra,
            **(self._pair.figures() if by_token else {}),
        )

    def _alarms(self, model: ModelFigures) -> tuple[str, ...]:
        alarms = []
        for name, tally in (("the model", self._model), ("the baseline", self._baseline)):
            if self.vocabulary_size and tally.texts:
                chance = tally.chance(self.vocabulary_size)
                alarms.append(chance.alarm(name, tally.mean_nll_nats))
        if any(group.name == "unchanged" for group in model.by_kind):
            alarms.append(UNCHANGED_ALARM)
        alarms.append(unspaced_alarm(self._unspaced, self.texts))
        shares = model.effective_texts, model.top_texts_variance_share
        alarms.append(few_texts_alarm(self.texts, *shares))
        return tuple(filter(None, alarms))
