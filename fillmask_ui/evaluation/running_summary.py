"""summarize(): rows to figures, in one pass."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

import fillmask_ui.intervals as intervals
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.alarms import UNCHANGED_ALARM, few_texts_alarm, unspaced_alarm
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import Heartbeat
from fillmask_ui.evaluation.metrics import CrossEntropy, Metric
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.running_sums import Largest, TextSums, loss_difference
from fillmask_ui.evaluation.slices import partition
from fillmask_ui.evaluation.summary import ModelComparison, ModelFigures, Summary
from fillmask_ui.evaluation.tallies import ModelTally, PairTally, length_slices
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

    config: EvaluationConfig | None = None  # what was measured; by default as the rows say
    vocabulary_size: int | None = None  # V, for the alarm that a model is near chance
    limits: intervals.Limits | None = None  # borders of the verdict

    def __post_init__(self) -> None:
        self.skipped: Counter[str] = Counter()  # reason to number of texts
        self._unspaced = 0  # texts in a script without blanks between words
        self._ids: list[int] = []
        self._lengths, self._groups = array("q"), list[str]()  # of each text
        self._measure_by(self.config.metric if self.config else CrossEntropy())
        self._pair = PairTally()  # empty without one of the same tokenizer
        self._worst = Largest(MOST_TOKENS)
        self._most_different = Largest(MOST_TOKENS)
        self._points = Largest(MOST_POINTS)  # a fair sample, by random numbers

    def _measure_by(self, metric: Metric) -> None:
        """Begin to count for the figure of a metric."""
        self._metric = metric
        self._model = ModelTally(metric)  # of the only model, or of the candidate
        self._reference = ModelTally(metric)  # empty without a second model

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
        if self.config is None and not self._ids and row.metric is not None:
            self._measure_by(row.metric)
        if row.metric not in (None, self._metric):
            raise DataError(
                f"text {row.id} was measured by {row.metric}, and the figures are those of "
                f"{self._metric}: give the config that it was measured by, and the rows of one "
                "metric at a time"
            )
        self._ids.append(row.id)
        self._lengths.append(len(row.ids))
        self._groups.append(sys.intern(row.group))
        self._unspaced += self._metric.reads_words and is_unspaced(row.text)
        self._model.add(row, row.scores)
        losses = [row.scores.nll_nats]
        self._worst.add(row, losses[0], row.example)
        if row.reference_text is not None:
            self._reference.add(row.reference_text, row.reference_text.scores)
        elif row.reference is not None:
            losses.append(row.reference.nll_nats)
            self._reference.add(row, row.reference)
            self._pair.add(row, row.reference)
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
        tallies = [tally for tally in (self._reference, self._model) if tally.texts]
        history = []
        for count in (*range(step, self.texts, step), self.texts):
            sums = [tally.text_sums(np.arange(count)) for tally in tallies]
            history.append(MeanSoFar(count, tuple(texts.mean_nll_nats for texts in sums)))
        return tuple(history)

    def summary(self, *, quick: bool = False) -> Summary:
        """The figures so far; `quick` has linearised intervals in place of resampling.

        A `DataError` if no text was measured (the message counts the reasons), or one twice of one
        config, or if some rows have a reference and others have none.
        """
        order = self._order()
        groups = partition([self._groups[index] for index in order.tolist()])
        lengths = length_slices(np.array(self._lengths)[order])
        texts = self._model.text_sums(order, quick=quick)
        model = self._model.figures(texts, groups, lengths)
        reference = comparison = None
        if self._reference.texts:
            counts_differ = len(self._reference.texts) != len(self._model.texts)
            if counts_differ or self._pair.tokens not in (0, model.tokens):
                raise DataError(
                    "not all rows have the same models: give those of one evaluation, without the "
                    "texts where one of two models failed"
                )
            reference_texts = self._reference.text_sums(order, quick=quick)
            reference = self._reference.figures(reference_texts, groups, lengths)
            comparison = replace(
                self._comparison(texts, reference_texts, model),
                by_group=groups.changes(self._metric, texts, reference_texts),
                by_length=lengths.changes(self._metric, texts, reference_texts),
            )
        return Summary(
            metric=self._metric,
            config=self.config,
            texts=self.texts,
            skipped=dict(sorted(self.skipped.items())),
            model=model,
            reference=reference,
            comparison=comparison,
            alarms=self._alarms(model),
            group_notes=groups.notes,
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
            extra = self._model.extra_sums.against(self._reference.extra_sums, candidate.order)
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
            by_frequency=self._model.frequency_changes(self._reference) if by_token else (),
        )

    def _alarms(self, model: ModelFigures) -> tuple[str, ...]:
        alarms = []
        for name, tally in (("the model", self._model), ("the reference", self._reference)):
            if self.vocabulary_size and tally.texts:
                chance = tally.chance(self.vocabulary_size)
                alarms.append(chance.alarm(name, tally.mean_nll_nats))
        if any(group.name == "unchanged" for group in model.by_kind):
            alarms.append(UNCHANGED_ALARM)
        alarms.append(unspaced_alarm(self._unspaced, self.texts))
        shares = model.effective_texts, model.top_texts_variance_share
        alarms.append(few_texts_alarm(self.texts, *shares))
        return tuple(filter(None, alarms))
