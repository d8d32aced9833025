"""summarize(): rows to figures, in one pass, and mergeable across shards."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fillmask_ui.evaluation.running_sums as running_sums
import fillmask_ui.intervals as intervals
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.measure import Heartbeat
from fillmask_ui.evaluation.metrics import METRICS, CrossEntropy, Metric
from fillmask_ui.evaluation.metrics.metric import exp, expm1
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.summary import (
    UNCHANGED_ALARM,
    CalibrationBin,
    Comparison,
    GroupFigures,
    Histogram,
    ModelFigures,
    Summary,
)
from fillmask_ui.masking import KINDS
from fillmask_ui.records import SkippedText

NEAR_CHANCE = 0.9  # share of the loss of a uniform guess
# Where texts count as less than this share of them, a reader is told, from so many texts on.
LEAST_EFFECTIVE_SHARE = 0.5
FEWEST_TEXTS_TO_TELL = 10
FEWEST_TEXTS_OF_A_GROUP = 5  # an interval over fewer is too wide to be of use
MOST_MEANS = MOST_TOKENS = 200
MOST_POINTS = 3000


def few_texts_note(texts: int, effective_texts: float) -> str:
    """What to tell a reader where a few long texts carry most of the tokens; else blank."""
    if texts < FEWEST_TEXTS_TO_TELL or effective_texts >= LEAST_EFFECTIVE_SHARE * texts:
        return ""
    return (
        f"a few long texts carry most tokens: {texts:,} texts count as {effective_texts:,.0f}; "
        "what many more texts would show can lie outside the intervals more often than 5 times in "
        "100"
    )


def chance_alarms(name: str, mean_nll_nats: float, vocabulary_size: int) -> Iterable[str]:
    """What to tell a reader of a model whose loss is nearly that of a uniform guess, if it is."""
    chance = math.log(vocabulary_size)
    if mean_nll_nats >= NEAR_CHANCE * chance:
        yield (
            f"{name} is near chance: its mean NLL is {mean_nll_nats:.2f} nats and guessing among "
            f"{vocabulary_size:,} tokens has {chance:.2f}; its weights, its quantization or its "
            "tokenizer may be broken"
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
        self._ids = array("q")
        self._model = running_sums.ModelTally(self._metric.units)
        self._baseline = running_sums.ModelTally(self._metric.units)  # empty without a second model
        self._pair = running_sums.PairTally()  # empty without one of the same tokenizer
        self._worst = running_sums.LargestTokens(MOST_TOKENS)
        self._most_different = running_sums.LargestTokens(MOST_TOKENS)
        self._points = running_sums.PointSample(MOST_POINTS)

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
        self._model.add(row, row.scores)
        losses = [row.scores.nll_nats]
        self._worst.add(row, losses[0])
        if row.other is not None:
            self._baseline.add(row.other, row.other.scores)
        elif row.baseline is not None:
            losses.append(row.baseline.nll_nats)
            self._baseline.add(row, row.baseline)
            self._pair.add(row, row.baseline)
            self._most_different.add(row, np.abs(running_sums.loss_difference(*losses)))
        self._points.add(row, *losses)

    def history(self) -> tuple[MeanSoFar, ...]:
        """The mean after ever more texts as they came, at even distances, and after all of them."""
        texts, every = self.texts, 1
        while texts // every >= MOST_MEANS:
            every *= 2
        counts = dict.fromkeys([*range(every, texts + 1, every), texts] if texts else [])
        tallies = [own for own in (self._baseline, self._model) if own.texts]
        # Of each model float64 [5, N]: what `RatioMoments` sums, so far.
        sums = [
            np.cumsum([x, n, x * x, n * n, x * n], axis=1)
            for x, n in (own.text_columns(np.arange(texts))[:2] for own in tallies)
        ]
        found = []
        for count in counts:
            moments = [intervals.RatioMoments(count, *own[:, count - 1].tolist()) for own in sums]
            spans = [own.interval() for own in moments]
            ends = ([getattr(s, end) if s else None for s in spans] for end in ("low", "high"))
            found.append(MeanSoFar(count, tuple(own.ratio for own in moments), *map(tuple, ends)))
        return tuple(found)

    def merge(self, other: RunningSummary) -> None:
        """Count all texts of another shard; the figures are those of one run over both."""
        self._name = self._name or other._name
        super().merge(other)

    def summary(self, *, quick: bool = False) -> Summary:
        """The figures so far; `quick` has linearised intervals in place of resampling.

        A `DataError` if no text was measured (the message counts the reasons), or one twice of one
        config; a `ValueError` if some rows have a baseline and others have none.
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
        model = _model_figures(self._model, self._metric, order, quick)
        baseline = comparison = None
        if self._baseline.texts:
            paired = self._pair.counts[0]
            if len(self._baseline.texts) != len(self._model.texts) or (
                paired and paired != model.tokens
            ):
                raise ValueError("not all rows have the same models: give those of one evaluation")
            baseline = _model_figures(self._baseline, self._metric, order, quick)
            comparison = self._comparison(order, quick)
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
            limits=self.limits or intervals.Limits(),
            provisional=quick,
        )

    def _comparison(self, order: np.ndarray, quick: bool) -> Comparison:
        x, tokens, own_units, characters, _ = self._model.text_columns(order)
        y, _, base_units, _, _ = self._baseline.text_columns(order)
        differences = running_sums.loss_difference(x, y)
        same_tokens = bool(self._pair.counts[0])
        units = tokens if same_tokens else characters
        written = self._model.own and self._model.own.against(self._baseline.own, order)
        sums, others = self._model.own, self._baseline.own
        if sums is not None and others is not None and self._metric.counts_right:
            own, base = sums.right(order), others.right(order)
            won, lost, right = (int(of.sum()) for of in (own & ~base, base & ~own, base))
            change = (won - lost) / right if right else math.nan
            interval = intervals.paired_ratio_interval(won, lost, right)
        elif self._metric.exponential:
            # Of two tokenizers both perplexities are taken over the baseline's tokens: e^ of a
            # loss per token means another thing where the tokens are others.
            change = expm1(running_sums.total(differences) / math.fsum(base_units))
            difference = running_sums.interval_of(differences, base_units, quick)
            interval = difference and difference.map(expm1)
        else:
            # One tokenizer where the metric is scaled, so that both models have the same weights.
            weights = own_units / tokens if self._metric.scaled else np.ones(len(order))
            change_nats, base_loss = weights * differences, weights * y
            whole = running_sums.total(base_loss)
            change = running_sums.total(change_nats) / whole if 0 < whole < math.inf else math.nan
            interval = running_sums.interval_of(change_nats, base_loss, quick)
        worse = change, interval
        if self._metric.counts_right:
            worse = (
                -change,
                interval and intervals.Interval(-interval.high, -interval.low, interval.method),
            )
        return Comparison(
            unit="token" if same_tokens else "character",
            texts=len(order),
            relative_change=change,
            interval=interval,
            difference_nats=running_sums.total(differences) / math.fsum(units),
            difference_interval=running_sums.interval_of(differences, units, quick),
            verdict=intervals.judge(*worse, len(order), self.limits),
            written=written,
            **(_pair_figures(self._pair) if same_tokens else {}),
        )

    def _alarms(self, model: ModelFigures, baseline: ModelFigures | None) -> Iterable[str]:
        if self.vocabulary_size:
            for name, figures in (("the model", model), ("the baseline", baseline)):
                if figures is not None:
                    yield from chance_alarms(name, figures.mean_nll_nats, self.vocabulary_size)
        if any(group.name == "unchanged" for group in model.by_kind):
            yield UNCHANGED_ALARM
        if note := few_texts_note(self.texts, model.effective_texts):
            yield note


def _model_figures(
    tally: running_sums.ModelTally, metric: Metric, order: np.ndarray, quick: bool
) -> ModelFigures:
    """Figures of one model; `order` sorts its texts by id."""
    x, n, units, characters, entropy = tally.text_columns(order)
    tokens = int(n.sum())
    nll, covered = running_sums.total(x), int(characters.sum())
    calibration = tuple(_calibration(tally))
    error = sum(slot.tokens * abs(slot.mean_probability - slot.accuracy) for slot in calibration)
    histogram = Histogram(
        np.arange(running_sums.LOSS_BINS + 1) * running_sums.BIN_NATS,
        {name: tally.histogram[kind].copy() for kind, name in enumerate(KINDS)},
    )
    # Exact, so that shards in any order give the same last digit.
    mean, per_character = nll / tokens, nll / covered if covered else math.nan
    mean_interval = running_sums.interval_of(x, n, quick, least=0.0)
    by_character = running_sums.interval_of(x, characters, quick, least=0.0) if covered else None
    own = tally.own
    counted, metric_interval = x, mean_interval
    if type(metric).units is not Metric.units:
        counted = x * units / n if metric.scaled else x
        metric_interval = running_sums.interval_of(counted, units, quick, least=0.0)
    value = metric.figure(running_sums.total(counted) / math.fsum(units))
    if own is not None and metric.counts_right:
        right = int(own.right(order).sum())
        value, metric_interval = right / len(order), intervals.share_interval(right, len(order))
    return ModelFigures(
        metric=value,
        metric_interval=metric_interval and metric_interval.map(metric.figure),
        tokens=tokens,
        effective_texts=intervals.effective_number(n),
        characters=covered,
        **_means(tally.sums)
        | {"mean_nll_nats": mean, "mean_entropy_nats": math.fsum(entropy) / tokens},
        interval=mean_interval,
        mean_nll_bits=mean / math.log(2),
        perplexity=exp(mean),
        perplexity_interval=mean_interval and mean_interval.map(exp),
        nll_per_character_nats=per_character,
        nll_per_character_bits=per_character / math.log(2),
        per_character_interval=by_character,
        median_nll_nats=histogram.quantile(0.5),
        by_kind=_groups(tally.kinds),
        by_part=_groups(tally.parts),
        by_position=_groups(tally.positions),
        by_frequency=_groups(tally.by_frequency()),
        calibration=calibration,
        calibration_error=error / tokens,
        histogram=histogram,
        truncated=int(tally.cut[0]),
        left_out=int(tally.cut[1]),
        written=own.figures(order, quick) if own else None,
    )


def _pair_figures(pair: running_sums.PairTally) -> dict[str, Any]:
    """The fields of `Comparison` that need both models at one token."""
    tokens, agreed, lost, won = pair.counts.tolist()
    half = running_sums.DIFFERENCE_BINS * running_sums.BIN_NATS / 2
    edges = np.linspace(-half, half, running_sums.DIFFERENCE_BINS + 1)
    figures = {
        "agreement": agreed / tokens,
        "flips": tokens - agreed,
        "lost": lost,
        "won": won,
        "histogram": Histogram(edges, {"difference": pair.histogram.copy()}),
    }
    counted, *logit_sums = pair.logit_sums.sum(axis=0).tolist()
    if counted:
        names = ("mean_kl_nats", "mean_kl_reverse_nats", "mean_abs_logit_difference")
        figures |= {name: own / counted for name, own in zip(names, logit_sums, strict=True)}
        figures["max_abs_logit_difference"] = max(pair.largest)
    return figures


def _means(sums: np.ndarray) -> dict[str, Any]:
    tokens, *values = sums.tolist()
    return {name: value / tokens for name, value in zip(running_sums.MEANS, values, strict=True)}


def _groups(tally: running_sums.SplitTally) -> tuple[GroupFigures, ...]:
    sums = tally.sums.sum(axis=0)  # [G, C]
    groups = []
    for index in np.flatnonzero(sums[:, running_sums.COUNT]).tolist():
        moments = tally.ratio_moments(index)
        enough = moments.texts >= FEWEST_TEXTS_OF_A_GROUP
        groups.append(
            GroupFigures(
                name=tally.names[index],
                tokens=int(sums[index, running_sums.COUNT]),
                texts=moments.texts or None,
                interval=moments.interval(positive=True) if enough else None,
                **_means(sums[index]),
            )
        )
    return tuple(groups)


def _calibration(tally: running_sums.ModelTally) -> Iterable[CalibrationBin]:
    for index, (tokens, stated, right) in enumerate(tally.reliability.sum(axis=0).tolist()):
        low, high = (end / running_sums.CALIBRATION_BINS for end in (index, index + 1))
        if tokens:
            yield CalibrationBin(low, high, int(tokens), stated / tokens, right / tokens)


@dataclass(frozen=True)
class MeanSoFar:
    """The mean loss after some of the texts: of the model, or of reference and candidate."""

    texts: int  # measured so far
    means: tuple[float, ...]  # mean NLL in nats
    lows: tuple[float | None, ...]  # ends of the 95 % interval; None below two texts
    highs: tuple[float | None, ...]
