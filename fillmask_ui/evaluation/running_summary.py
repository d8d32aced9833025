"""summarize(): rows to figures, in one pass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

import fillmask_ui.intervals as intervals
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import Heartbeat
from fillmask_ui.evaluation.metrics import METRICS, CrossEntropy, Metric
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.running_sums import (
    Estimate,
    Largest,
    TextSums,
    loss_difference,
    ratio_of,
)
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM, Comparison, ModelFigures, Summary
from fillmask_ui.evaluation.tallies import ModelTally, PairTally
from fillmask_ui.records import SkippedText
from fillmask_ui.text_words import is_unspaced

# Where texts count as less than this share of them, a reader is told, from so many texts on.
LEAST_EFFECTIVE_SHARE = 0.5
FEWEST_TEXTS_TO_TELL = 10
# Told too where 5 % of the texts carry more than this share of the variance of the mean.
MOST_VARIANCE_OF_A_FEW = 2 / 3
MOST_MEANS = MOST_TOKENS = 200
MOST_POINTS = 3000


@dataclass(frozen=True)
class MeanSoFar:
    """The mean loss after some of the texts: of the model, or of reference and candidate."""

    texts: int  # measured so far
    means: tuple[Estimate, ...]  # mean NLL in nats; without an interval below two texts


def few_texts_note(texts: int, effective_texts: float, variance_share: float) -> str:
    """What to tell a reader where a few texts decide: by their length, or their loss; else blank.

    `variance_share` is `ModelFigures.top_texts_variance_share`.
    """
    if texts < FEWEST_TEXTS_TO_TELL:
        return ""
    if effective_texts < LEAST_EFFECTIVE_SHARE * texts:
        reason = f"long texts carry most tokens: {texts:,} texts count as {effective_texts:,.0f}"
    elif variance_share > MOST_VARIANCE_OF_A_FEW:
        few = math.ceil(intervals.LARGEST * texts)
        reason = (
            f"texts have far larger or smaller losses than the others: {few:,} of {texts:,} carry "
            f"{variance_share:.0%} of the variance"
        )
    else:
        return ""
    return (
        f"a few {reason}; what many more texts would show can lie outside the intervals more often "
        "than 5 times in 100"
    )


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
        self._name = self._metric.name if self.config else ""  # of the metric of the rows
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
        self._name = self._name or row.metric
        if row.metric not in ("", self._name):
            raise DataError(
                f"text {row.id} was measured by {row.metric}, and the figures asked for are of "
                f"{self._name}: give the config that it was measured by"
            )
        if not self._ids:
            for tally in (self._model, self._baseline):
                tally.metric_sums = METRICS.get(self._name, CrossEntropy)().own_sums()
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
        chance = np.random.default_rng([row.id]).random(len(row.cols))
        self._points.add(row, -chance, lambda entry: tuple(float(nll[entry]) for nll in losses))

    def history(self) -> tuple[MeanSoFar, ...]:
        """The mean after ever more texts as they came, at even distances, and after all of them."""
        texts, every = self.texts, 1
        while texts // every >= MOST_MEANS:
            every *= 2
        tallies = [tally for tally in (self._baseline, self._model) if tally.texts]
        history = []
        for count in [*range(every, texts, every), texts] if texts else []:
            first = [tally.text_sums(np.arange(count)) for tally in tallies]
            history.append(MeanSoFar(count, tuple(texts.mean_nll_nats for texts in first)))
        return tuple(history)

    def summary(self, *, quick: bool = False) -> Summary:
        """The figures so far; `quick` has linearised intervals in place of resampling.

        A `DataError` if no text was measured (the message counts the reasons), or one twice of one
        config, or if some rows have a baseline and others have none.
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
        model_texts = self._model.text_sums(order, quick=quick)
        model = self._model.figures(model_texts)
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
            comparison = self._comparison(model_texts, baseline_texts, model)
        return Summary(
            config=self.config,
            texts=self.texts,
            skipped=dict(sorted(self.skipped.items())),
            model=model,
            baseline=baseline,
            comparison=comparison,
            alarms=tuple(self._alarms(model, baseline)),
            worst=self._worst.kept(),
            most_different=self._most_different.kept(),
            points=np.array(self._points.kept()).T,
            limits=self.limits or intervals.Limits(),
            provisional=quick,
        )

    def _comparison(
        self, candidate: TextSums, reference: TextSums, model: ModelFigures
    ) -> Comparison:
        change = worse = self._metric.change(candidate, reference)
        effective_texts = model.effective_texts
        if self._metric.higher_is_better:
            worse = Estimate(-change.value, change.interval and change.interval.negative())
            effective_texts = self.texts
        differences = loss_difference(candidate.nll_nats, reference.nll_nats)
        by_token = self._pair.tokens > 0
        units = candidate.tokens if by_token else candidate.characters
        # Corrected as the change of a perplexity is, so that both say the same.
        difference = ratio_of(differences, units, candidate.quick, weights=reference.nll_nats)
        chance = self._model.chance(self.vocabulary_size) if self.vocabulary_size else None
        written, other = self._model.metric_sums, self._baseline.metric_sums
        return Comparison(
            unit="token" if by_token else "character",
            texts=self.texts,
            relative_change=change.value,
            interval=change.interval,
            difference_nats=difference.value,
            difference_interval=difference.interval,
            verdict=intervals.judge(
                worse.value,
                worse.interval,
                self.texts,
                self.limits,
                effective_texts=effective_texts,
                near_chance=bool(chance and chance.is_near(model.mean_nll_nats)),
                equal=not differences.any(),
            ),
            written=written and written.against(other, candidate.order),
            **(self._pair.figures() if by_token else {}),
        )

    def _alarms(self, model: ModelFigures, baseline: ModelFigures | None) -> Iterator[str]:
        if self.vocabulary_size:
            chance = self._model.chance(self.vocabulary_size)
            yield from chance.alarms("the model", model.mean_nll_nats)
            if baseline is not None:
                chance = self._baseline.chance(self.vocabulary_size)
                yield from chance.alarms("the baseline", baseline.mean_nll_nats)
        if any(group.name == "unchanged" for group in model.by_kind):
            yield UNCHANGED_ALARM
        if self._unspaced:
            yield (
                f"{self._unspaced:,} of {self.texts:,} texts are in a script without blanks "
                "between words: each of its tokens counts as a word"
            )
        shares = model.effective_texts, model.top_texts_variance_share
        if note := few_texts_note(self.texts, *shares):
            yield note
