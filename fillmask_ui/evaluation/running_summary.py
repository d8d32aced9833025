"""summarize(): rows to figures, in one pass, and mergeable across shards."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import fillmask_ui.evaluation.running_sums as running_sums
import fillmask_ui.intervals as intervals
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import Heartbeat
from fillmask_ui.evaluation.metrics import METRICS, CrossEntropy, Metric
from fillmask_ui.evaluation.metrics.metric import expm1
from fillmask_ui.evaluation.rows import EvaluatedText
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
    means: tuple[float, ...]  # mean NLL in nats
    lows: tuple[float | None, ...]  # ends of the 95 % interval; None below two texts
    highs: tuple[float | None, ...]


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
class RunningSummary(running_sums.Tally):
    """`summarize` step by step: add rows as they come, `merge` shards, look at any time."""

    config: EvaluationConfig | None = None  # what was measured; decides what the verdict is about
    vocabulary_size: int | None = None  # V, for the alarm that a model is near chance
    limits: intervals.Limits | None = None  # borders of the verdict

    def __post_init__(self) -> None:
        # Without a config the figure is the cross-entropy, beside what the rows' metric adds.
        self._metric: Metric = self.config.metric if self.config else CrossEntropy()
        self._name = self._metric.name if self.config else ""  # of the metric of the rows
        self.skipped: Counter[str] = Counter()  # reason to number of texts
        self._scripts: Counter[str] = Counter()  # `unspaced` to number of texts
        self._ids = array("q")
        self._model = ModelTally(self._metric)
        self._baseline = ModelTally(self._metric)  # empty without a second model
        self._pair = PairTally()  # empty without one of the same tokenizer
        self._worst = running_sums.Largest(MOST_TOKENS)
        self._most_different = running_sums.Largest(MOST_TOKENS)
        self._points = running_sums.Largest(MOST_POINTS)  # a fair sample, by random numbers

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
                tally.own = METRICS.get(self._name, CrossEntropy)().own_sums()
        self._ids.append(row.id)
        if self._metric.reads_words and is_unspaced(row.text):
            self._scripts["unspaced"] += 1
        self._model.add(row, row.scores)
        losses = [row.scores.nll_nats]
        self._worst.add(row, losses[0], row.example)
        if row.other is not None:
            self._baseline.add(row.other, row.other.scores)
        elif row.baseline is not None:
            losses.append(row.baseline.nll_nats)
            self._baseline.add(row, row.baseline)
            self._pair.add(row, row.baseline)
            difference = np.abs(running_sums.loss_difference(*losses))
            self._most_different.add(row, difference, row.example)
        chance = np.random.default_rng([row.id]).random(len(row.cols))
        self._points.add(row, -chance, lambda entry: tuple(float(own[entry]) for own in losses))

    def history(self) -> tuple[MeanSoFar, ...]:
        """The mean after ever more texts as they came, at even distances, and after all of them."""
        texts, every = self.texts, 1
        while texts // every >= MOST_MEANS:
            every *= 2
        # Of each model float64 [5, N]: what `RatioMoments` sums, so far.
        sums = [
            np.cumsum([x, n, x * x, n * n, x * n], axis=1)
            for tally in (self._baseline, self._model)
            if tally.texts
            for x, n in [tally.text_columns(np.arange(texts))[:2]]
        ]
        found = []
        for count in [*range(every, texts, every), texts] if texts else []:
            moments = [intervals.RatioMoments(count, *own[:, count - 1].tolist()) for own in sums]
            spans = [own.interval() for own in moments]
            means = tuple(own.ratio for own in moments)
            lows = tuple(span.low if span else None for span in spans)
            highs = tuple(span.high if span else None for span in spans)
            found.append(MeanSoFar(count, means, lows, highs))
        return tuple(found)

    def merge(self, other: RunningSummary) -> None:
        """Count all texts of another shard; the figures are those of one run over both."""
        self._name = self._name or other._name
        super().merge(other)

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
        model = self._model.figures(order, quick)
        baseline = comparison = None
        if self._baseline.texts:
            paired = self._pair.counts[0]
            if len(self._baseline.texts) != len(self._model.texts) or (
                paired and paired != model.tokens
            ):
                raise DataError(
                    "not all rows have the same models: give those of one evaluation, without the "
                    "texts where one of two models failed"
                )
            baseline = self._baseline.figures(order, quick)
            comparison = self._comparison(order, quick, model)
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

    def _comparison(self, order: np.ndarray, quick: bool, model: ModelFigures) -> Comparison:
        x, tokens, own_units, characters, _ = self._model.text_columns(order)
        y, _, base_units, _, _ = self._baseline.text_columns(order)
        metric, own, base = self._metric, self._model.own, self._baseline.own
        differences = running_sums.loss_difference(x, y)
        same_tokens = bool(self._pair.counts[0])
        units = tokens if same_tokens else characters
        if own is not None and base is not None and metric.counts_right:
            first, second = own.right(order), base.right(order)
            won, lost, right = (
                int(one.sum()) for one in (first & ~second, second & ~first, second)
            )
            change = (won - lost) / right if right else math.nan
            interval = intervals.paired_ratio_interval(won, lost, right)
        elif metric.exponential:
            # Of two tokenizers both perplexities are taken over the baseline's tokens: e^ of a
            # loss per token means another thing where the tokens are others.
            change = expm1(running_sums.total(differences) / math.fsum(base_units))
            difference = running_sums.interval_of(differences, base_units, quick, weights=y)
            interval = difference and difference.map(expm1)
        else:
            # One tokenizer where the metric is scaled, so that both models have the same weights.
            weights = own_units / tokens if metric.scaled else np.ones(len(order))
            change_nats, base_loss = weights * differences, weights * y
            whole = running_sums.total(base_loss)
            change = running_sums.total(change_nats) / whole if 0 < whole < math.inf else math.nan
            interval = running_sums.interval_of(change_nats, base_loss, quick)
        worse, worse_interval = change, interval
        chance = self._model.chance(self.vocabulary_size) if self.vocabulary_size else None
        if metric.counts_right and interval:
            worse, worse_interval = -change, interval.negative()
        return Comparison(
            unit="token" if same_tokens else "character",
            texts=len(order),
            relative_change=change,
            interval=interval,
            difference_nats=running_sums.total(differences) / math.fsum(units),
            # Corrected as the relative change is, so that both say the same.
            difference_interval=running_sums.interval_of(differences, units, quick, weights=y),
            verdict=intervals.judge(
                worse,
                worse_interval,
                len(order),
                self.limits,
                effective_texts=len(order) if metric.counts_right else model.effective_texts,
                near_chance=bool(chance and chance.is_near(model.mean_nll_nats)),
                equal=not differences.any(),
            ),
            written=own and own.against(base, order),
            **(self._pair.figures() if same_tokens else {}),
        )

    def _alarms(self, model: ModelFigures, baseline: ModelFigures | None) -> Iterable[str]:
        if self.vocabulary_size:
            chance = self._model.chance(self.vocabulary_size)
            yield from chance.alarms("the model", model.mean_nll_nats)
            if baseline is not None:
                chance = self._baseline.chance(self.vocabulary_size)
                yield from chance.alarms("the baseline", baseline.mean_nll_nats)
        if any(group.name == "unchanged" for group in model.by_kind):
            yield UNCHANGED_ALARM
        if unspaced := self._scripts["unspaced"]:
            yield (
                f"{unspaced:,} of {self.texts:,} texts are in a script without blanks between "
                "words: each of its tokens counts as a word"
            )
        shares = model.effective_texts, model.top_texts_variance_share
        if note := few_texts_note(self.texts, *shares):
            yield note
