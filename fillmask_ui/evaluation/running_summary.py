"""summarize(): rows to figures, in one pass, and mergeable across shards.

Axes: N texts, M hidden positions of a text, V vocabulary.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import Heartbeat
from fillmask_ui.evaluation.metrics import METRICS, CrossEntropy, Metric
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.running_sums import (
    BIN_NATS,
    CALIBRATION_BINS,
    DIFFERENCE_BINS,
    LOSS_BINS,
    MEANS,
    LargestTokens,
    ModelTally,
    PairTally,
    PointSample,
    SplitTally,
    interval_of,
    loss_difference,
    total,
)
from fillmask_ui.evaluation.summary import (
    UNCHANGED_ALARM,
    CalibrationBin,
    Comparison,
    GroupFigures,
    Histogram,
    ModelFigures,
    Summary,
)
from fillmask_ui.intervals import Limits, RatioMoments, effective_number, judge
from fillmask_ui.masking import KINDS
from fillmask_ui.records import SkippedText

NEAR_CHANCE = 0.9
# Where texts count as less than this share of them, a reader is told, from so many texts on.
LEAST_EFFECTIVE_SHARE = 0.5
FEWEST_TEXTS_TO_TELL = 10
# An interval over fewer texts is wider than anybody can use.
FEWEST_TEXTS_OF_A_GROUP = 5
MOST_MEANS = 200


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
        # Without a config the figure is the cross-entropy, beside what the rows' metric adds.
        self._metric: Metric = self.config.scheme if self.config else CrossEntropy()
        self._metric_of_rows = self.config.metric if self.config else ""
        self._model = self._tally()
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
        """Token average of the model; a `ZeroDivisionError` before any text was counted."""
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
        metric = self._metric_of_rows or row.metric
        if row.metric not in ("", metric):
            raise DataError(
                f"text {row.id} was measured by {row.metric}, and the figures asked for are of "
                f"{metric}: give the config that it was measured by"
            )
        paired = row.baseline is not None
        second = paired or row.other is not None
        self._expect(f"text {row.id} and those before it", row.metric, second, paired)
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
            self._most_different.add(row, np.abs(loss_difference(*losses)))
        self._points.add(row, *losses)

    def _expect(self, what: str, metric: str, second: bool, paired: bool) -> None:
        """Make the sums for the first text, by the metric of its row, and hold later ones to it."""
        if not self._ids:
            self._metric_of_rows = self._metric_of_rows or metric
            self._model = self._tally()
            self._baseline = self._tally() if second else None
            self._pair = PairTally() if paired else None
        if (self._baseline is not None, self._pair is not None) != (second, paired):
            raise ValueError(f"{what} have not the same models")

    def _tally(self) -> ModelTally:
        rows = METRICS.get(self._metric_of_rows, CrossEntropy)
        return ModelTally(self._metric.units, rows().own_sums())

    def merge(self, other: RunningSummary) -> None:
        """Count all texts of another shard; the figures are those of one run over both."""
        self.skipped += other.skipped
        if not other._ids:
            return
        second, paired = other._baseline is not None, other._pair is not None
        self._expect("the shards", other._metric_of_rows, second, paired)
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
        own, base, pair = self._model, self._baseline, self._pair
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
        model = _model_figures(own, self._metric, order, quick)
        baseline = comparison = None
        if base is not None:
            limits = self.limits
            baseline = _model_figures(base, self._metric, order, quick)
            comparison = _comparison(own, base, pair, self._metric, order, quick, limits)
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


def _model_figures(
    tally: ModelTally, metric: Metric, order: np.ndarray, quick: bool
) -> ModelFigures:
    """Of one model; `order` sorts its texts by id, `quick` spares the resampling."""
    x, n, units, characters, entropy = tally.text_columns(order)
    tokens = int(n.sum())
    nll, covered = total(x), int(characters.sum())
    calibration = tuple(_calibration(tally))
    error = sum(slot.tokens * abs(slot.mean_probability - slot.accuracy) for slot in calibration)
    histogram = Histogram(
        np.arange(LOSS_BINS + 1) * BIN_NATS,
        {name: tally.histogram[kind].copy() for kind, name in enumerate(KINDS)},
    )
    means = dict(zip(MEANS, (tally.kinds.sums.sum(axis=0)[1:] / tokens).tolist(), strict=True))
    # Exact, so that shards in any order give the same last digit.
    means |= {"mean_nll_nats": nll / tokens, "mean_entropy_nats": math.fsum(entropy) / tokens}
    mean_interval = interval_of(x, n, quick, least=0.0)
    counted, metric_interval = x, mean_interval
    if not metric.per_token:
        counted = x * units / n if metric.scaled else x
        metric_interval = interval_of(counted, units, quick, least=0.0)
    return ModelFigures(
        metric=metric.figure(total(counted) / math.fsum(units)),
        metric_interval=metric_interval and metric_interval.map(metric.figure),
        tokens=tokens,
        effective_texts=effective_number(n),
        characters=covered,
        interval=mean_interval,
        nll_per_character_nats=nll / covered if covered else math.nan,
        per_character_interval=interval_of(x, characters, quick, least=0.0) if covered else None,
        **means,
        median_nll_nats=histogram.quantile(0.5),
        by_kind=_split(tally.kinds),
        by_part=_split(tally.parts),
        by_position=_split(tally.positions),
        by_frequency=_split(tally.by_frequency()),
        calibration=calibration,
        calibration_error=error / tokens,
        histogram=histogram,
        truncated=tally.truncated,
        left_out=tally.left_out,
        written=tally.own.figures(order, n, quick) if tally.own else None,
    )


def _comparison(
    own: ModelTally,
    base: ModelTally,
    pair: PairTally | None,
    metric: Metric,
    order: np.ndarray,
    quick: bool,
    limits: Limits | None,
) -> Comparison:
    """Of two models; `pair` is None where their tokenizers differ."""
    x, tokens, own_units, characters, _ = own.text_columns(order)
    y, _, base_units, _, _ = base.text_columns(order)
    differences = loss_difference(x, y)
    units = tokens if pair else characters
    if metric.exponential:
        # Of two tokenizers both perplexities are taken over the baseline's tokens: e^ of a loss
        # per token means another thing where the tokens are others.
        change = _expm1(total(differences) / math.fsum(base_units))
        difference = interval_of(differences, base_units, quick)
        change_interval = difference and difference.map(_expm1)
    else:
        # One tokenizer where the metric is scaled, so that both models have the same weights.
        weights = own_units / tokens if metric.scaled else np.ones(len(order))
        change_nats, base_loss = weights * differences, weights * y
        whole = total(base_loss)
        change = total(change_nats) / whole if 0 < whole < math.inf else math.nan
        change_interval = interval_of(change_nats, base_loss, quick)
    return Comparison(
        unit="token" if pair else "character",
        texts=len(order),
        relative_change=change,
        interval=change_interval,
        difference_nats=total(differences) / math.fsum(units),
        difference_interval=interval_of(differences, units, quick),
        verdict=judge(change, change_interval, len(order), limits),
        **(_pair_figures(pair) if pair else {}),
    )


def _pair_figures(pair: PairTally) -> dict[str, Any]:
    """The fields of `Comparison` that need both models at one token."""
    tokens, agreed, lost, won = pair.counts.tolist()
    half = DIFFERENCE_BINS * BIN_NATS / 2
    edges = np.linspace(-half, half, DIFFERENCE_BINS + 1)
    figures = {
        "agreement": agreed / tokens,
        "flips": tokens - agreed,
        "lost": lost,
        "won": won,
        "histogram": Histogram(edges, {"difference": pair.histogram.copy()}),
    }
    if pair.logit_sums[0]:
        names = ("mean_kl_nats", "mean_kl_reverse_nats", "mean_abs_logit_difference")
        means = (pair.logit_sums[1:] / pair.logit_sums[0]).tolist()
        figures |= dict(zip(names, means, strict=True))
        figures["max_abs_logit_difference"] = pair.max_abs
    return figures


def _expm1(value: float) -> float:
    # A broken model can lie further behind than e^x holds.
    return math.inf if value > 700 else math.expm1(value)


def _split(tally: SplitTally) -> tuple[GroupFigures, ...]:
    """Figures of the groups that have tokens."""
    groups = []
    for index, name in enumerate(tally.names):
        moments = tally.ratio_moments(index)
        tokens, *sums = tally.sums[index].tolist()
        if not tokens:
            continue
        groups.append(
            GroupFigures(
                name=name,
                tokens=int(tokens),
                texts=moments.texts or None,
                interval=moments.interval(positive=True)
                if moments.texts >= FEWEST_TEXTS_OF_A_GROUP
                else None,
                **{mean: value / tokens for mean, value in zip(MEANS, sums, strict=True)},
            )
        )
    return tuple(groups)


def _calibration(tally: ModelTally) -> Iterable[CalibrationBin]:
    for index, (tokens, stated, right, rest) in enumerate(tally.reliability.tolist()):
        low, high = index / CALIBRATION_BINS, (index + 1) / CALIBRATION_BINS
        if tokens:
            mean = (stated + rest) / tokens
            yield CalibrationBin(low, high, int(tokens), mean, right / tokens)


@dataclass(frozen=True)
class MeanSoFar:
    """The mean loss after some of the texts."""

    texts: int  # measured so far
    means: tuple[float, ...]  # mean NLL in nats, one per model
    lows: tuple[float | None, ...]  # lower end of each 95 % interval; None while there is none
    highs: tuple[float | None, ...]  # upper end of each


class History:
    """The mean after ever more texts, at even distances; of `MOST_MEANS` every second goes."""

    def __init__(self) -> None:
        self._moments: list[RatioMoments] = []
        self._every = 1
        self.entries: list[MeanSoFar] = []

    def add(self, row: EvaluatedText | SkippedText) -> None:
        if isinstance(row, SkippedText):
            return
        other = row.other.scores if row.other is not None else row.baseline
        scores = [row.scores] if other is None else [row.scores, other]
        self._moments = self._moments or [RatioMoments() for _ in scores]
        for moments, own in zip(self._moments, scores, strict=True):
            moments.add(float(own.nll_nats.sum()), len(own.nll_nats))
        if self._moments[0].texts % self._every == 0:
            self.entries.append(self._entry())
        if len(self.entries) >= MOST_MEANS:
            self._every *= 2
            self.entries = self.entries[1::2]

    def _entry(self) -> MeanSoFar:
        intervals = [moments.interval() for moments in self._moments]
        return MeanSoFar(
            self._moments[0].texts,
            tuple(moments.ratio for moments in self._moments),
            tuple(interval.low if interval else None for interval in intervals),
            tuple(interval.high if interval else None for interval in intervals),
        )

    def means(self) -> tuple[MeanSoFar, ...]:
        """All entries, the newest last."""
        if not self._moments or (self.entries and self.entries[-1].texts == self._moments[0].texts):
            return tuple(self.entries)
        return (*self.entries, self._entry())
