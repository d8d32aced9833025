"""From sums to figures: one function for each record of `summary`; N texts, V vocabulary."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fillmask_ui.evaluation.summary import (
    CalibrationBin,
    Comparison,
    GroupFigures,
    Histogram,
    ModelFigures,
    WrittenFigures,
)
from fillmask_ui.evaluation.tallies import (
    BIN_NATS,
    CALIBRATION_BINS,
    DIFFERENCE_BINS,
    LOSS_BINS,
    MEANS,
    ModelTally,
    PairTally,
    SplitTally,
    gap,
)
from fillmask_ui.intervals import (
    Interval,
    Limits,
    RatioMoments,
    effective_number,
    judge,
    ratio_interval,
    share_interval,
)
from fillmask_ui.masking import KINDS

# An interval over fewer texts is wider than anybody can use.
FEWEST_TEXTS_OF_A_GROUP = 5


def model_figures(tally: ModelTally, order: np.ndarray, quick: bool) -> ModelFigures:
    """Figures of one model; `order` sorts its texts by id, `quick` spares the resampling."""
    x, n, units, characters, entropy = tally.text_columns(order)
    tokens = int(n.sum())
    nll, covered = _total(x), int(characters.sum())
    calibration = tuple(_calibration(tally))
    error = sum(slot.tokens * abs(slot.mean_probability - slot.accuracy) for slot in calibration)
    histogram = Histogram(
        np.arange(LOSS_BINS + 1) * BIN_NATS,
        {name: tally.histogram[kind].copy() for kind, name in enumerate(KINDS)},
    )
    scheme = tally.scheme
    means = dict(zip(MEANS, (tally.kinds.sums.sum(axis=0)[1:] / tokens).tolist(), strict=True))
    # Exact, so that shards in any order give the same last digit.
    means |= {"mean_nll_nats": nll / tokens, "mean_entropy_nats": math.fsum(entropy) / tokens}
    mean_interval = _of_losses(x, n, quick)
    by_token = np.array_equal(units, n)
    counted = x * units / n if scheme.scaled else x
    metric_interval = mean_interval if by_token else _of_losses(counted, units, quick)
    return ModelFigures(
        metric=scheme.figure(_total(counted) / math.fsum(units)),
        metric_interval=metric_interval and metric_interval.map(scheme.figure),
        tokens=tokens,
        effective_texts=effective_number(n),
        characters=covered,
        interval=mean_interval,
        nll_per_character_nats=nll / covered if covered else math.nan,
        per_character_interval=_of_losses(x, characters, quick) if covered else None,
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
        written=_written(tally, order, quick) if tally.written.texts else None,
    )


def _written(tally: ModelTally, order: np.ndarray, quick: bool) -> WrittenFigures:
    right, perplexity = tally.written.text_columns(order)
    hidden = tally.text_columns(order)[1]
    tokens, each = int(hidden.sum()), np.ones(len(order))
    exact = int((right == hidden).sum())
    spread = _interval(perplexity, each, quick)
    return WrittenFigures(
        exact_match=exact / len(order),
        exact_match_interval=share_interval(exact, len(order)),
        infill_token_accuracy=_total(right) / tokens,
        infill_token_accuracy_interval=_of_shares(right, hidden, quick),
        mean_pseudo_perplexity=_total(perplexity) / len(order),
        mean_pseudo_perplexity_interval=spread and spread.not_below(1.0),
        distinct_1=len(tally.written.tokens) / tokens,
        distinct_2=len(tally.written.pairs) / tokens,
    )


def comparison_figures(
    own: ModelTally,
    base: ModelTally,
    pair: PairTally | None,
    order: np.ndarray,
    quick: bool,
    limits: Limits | None,
) -> Comparison:
    """Figures of two models; `pair` is None where their tokenizers differ."""
    x, tokens, own_units, characters, _ = own.text_columns(order)
    y, _, base_units, _, _ = base.text_columns(order)
    gaps = gap(x, y)
    units = tokens if pair else characters
    if own.scheme.exponential:
        # Of two tokenizers both perplexities are taken over the baseline's tokens: e^ of a loss
        # per token means another thing where the tokens are others.
        change = _expm1(_total(gaps) / math.fsum(base_units))
        difference = _interval(gaps, base_units, quick)
        change_interval = difference and difference.map(_expm1)
    else:
        # One tokenizer where the metric is scaled, so that both models have the same weights.
        weights = own_units / tokens if own.scheme.scaled else np.ones(len(order))
        apart, base_loss = weights * gaps, weights * y
        whole = _total(base_loss)
        change = _total(apart) / whole if 0 < whole < math.inf else math.nan
        change_interval = _interval(apart, base_loss, quick)
    return Comparison(
        unit="token" if pair else "character",
        texts=len(order),
        relative_change=change,
        interval=change_interval,
        difference_nats=_total(gaps) / math.fsum(units),
        difference_interval=_interval(gaps, units, quick),
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
    if pair.apart[0]:
        names = ("mean_kl_nats", "mean_kl_reverse_nats", "mean_abs_logit_difference")
        figures |= dict(zip(names, (pair.apart[1:] / pair.apart[0]).tolist(), strict=True))
        figures["max_abs_logit_difference"] = pair.max_abs
    return figures


def _expm1(value: float) -> float:
    # A broken model can lie further behind than e^x holds.
    return math.inf if value > 700 else math.expm1(value)


def _total(values: np.ndarray) -> float:
    """Exact sum, so that shards in any order give the same last digit; inf or nan where it is."""
    if np.isfinite(values).all():
        return math.fsum(values)
    with np.errstate(invalid="ignore"):  # inf - inf is nan, which is the answer
        return float(np.sum(values))


def _interval(x: np.ndarray, n: np.ndarray, quick: bool) -> Interval | None:
    """Of sum(x) / sum(n) over texts."""
    if not quick:
        return ratio_interval(x, n)
    return RatioMoments(len(x), x.sum(), n.sum(), x @ x, n @ n, x @ n).interval()


def _of_losses(x: np.ndarray, n: np.ndarray, quick: bool) -> Interval | None:
    found = _interval(x, n, quick)
    return found and found.not_below(0.0)


def _of_shares(x: np.ndarray, n: np.ndarray, quick: bool) -> Interval | None:
    """Of a share; None where it is 0 or 1 in every text, which has no spread to judge by."""
    if not x.any() or np.array_equal(x, n):
        return None
    found = _of_losses(x, n, quick)
    return found and found.map(lambda share: min(share, 1.0))


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
    for index, (tokens, stated, right) in enumerate(tally.calibration.tolist()):
        low, high = index / CALIBRATION_BINS, (index + 1) / CALIBRATION_BINS
        if tokens:
            yield CalibrationBin(low, high, int(tokens), stated / tokens, right / tokens)
