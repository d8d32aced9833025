"""From sums to figures: one function for each record of `summary`.

Axes: G groups of a split, N texts, V vocabulary.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fillmask_ui.evaluation.rows import PARTS
from fillmask_ui.evaluation.summary import CalibrationBin, GroupFigures, Histogram, ModelFigures
from fillmask_ui.evaluation.tallies import (
    BIN_NATS,
    CALIBRATION_BINS,
    COUNT,
    DIFFERENCE_BINS,
    ENTROPY,
    FREQUENCY_EDGES,
    LOSS_BINS,
    NLL,
    POSITION_EDGES,
    RANK,
    TOP1,
    TOP5,
    ModelTally,
    PairTally,
    SplitTally,
)
from fillmask_ui.intervals import Interval, RatioMoments, ratio_interval
from fillmask_ui.masking import KINDS

# An interval over fewer texts is wider than anybody can use.
FEWEST_TEXTS_OF_A_GROUP = 5


def pair_figures(pair: PairTally | None) -> dict[str, Any]:
    """The fields of `Comparison` that need both models at one token; none by character."""
    if pair is None:
        return {}
    apart = {}
    if pair.apart_tokens:
        kl, kl_reverse, mean_abs = (pair.sums / pair.apart_tokens).tolist()
        apart = {
            "mean_kl_nats": kl,
            "mean_kl_reverse_nats": kl_reverse,
            "mean_abs_logit_difference": mean_abs,
            "max_abs_logit_difference": pair.max_abs,
        }
    half = DIFFERENCE_BINS * BIN_NATS / 2
    return {
        "agreement": pair.agreed / pair.tokens,
        "flips": pair.tokens - pair.agreed,
        "lost": pair.lost,
        "won": pair.won,
        **apart,
        "histogram": Histogram(
            np.linspace(-half, half, DIFFERENCE_BINS + 1), {"difference": pair.histogram.copy()}
        ),
    }


def model_figures(tally: ModelTally, order: np.ndarray, quick: bool) -> ModelFigures:
    """Figures of one model; `order` sorts its texts by id, `quick` spares the resampling."""
    x, n = column(tally.text_nll, order), column(tally.text_tokens, order)
    characters = column(tally.text_characters, order)
    units = column(tally.text_units, order)
    tokens = int(n.sum())
    nll, covered = total(x), int(characters.sum())
    calibration = tuple(_calibration(tally))
    histogram = Histogram(
        np.arange(LOSS_BINS + 1) * BIN_NATS,
        {name: tally.histogram[kind].copy() for kind, name in enumerate(KINDS)},
    )
    scheme = tally.scheme
    mean_interval = _of_losses(x, n, quick)
    by_token = np.array_equal(units, n)
    metric_interval = mean_interval if by_token else _of_losses(x, units, quick)
    return ModelFigures(
        metric=scheme.figure(nll / (tokens if by_token else math.fsum(units))),
        metric_interval=metric_interval and metric_interval.map(scheme.figure),
        tokens=tokens,
        characters=covered,
        mean_nll_nats=nll / tokens,
        interval=mean_interval,
        nll_per_character_nats=nll / covered if covered else math.nan,
        per_character_interval=_of_losses(x, characters, quick) if covered else None,
        median_nll_nats=histogram.quantile(0.5),
        top1_accuracy=float(tally.totals[TOP1] / tokens),
        top5_accuracy=float(tally.totals[TOP5] / tokens),
        mean_rank=float(tally.totals[RANK] / tokens),
        mean_entropy_nats=math.fsum(tally.text_entropy) / tokens,
        by_kind=_split(tally.kinds, KINDS),
        by_part=_split(tally.parts, PARTS),
        by_position=_split(tally.positions, _range_names(POSITION_EDGES)),
        by_frequency=tuple(_by_frequency(tally)),
        calibration=calibration,
        calibration_error=sum(
            slot.tokens * abs(slot.mean_probability - slot.accuracy) for slot in calibration
        )
        / tokens,
        histogram=histogram,
        truncated=tally.truncated,
        left_out=tally.left_out,
    )


def column(values: Sequence[float], order: np.ndarray) -> np.ndarray:
    """Float64 [N], one value per text, in the order of the ids."""
    return np.array(values, np.float64)[order]


def total(values: np.ndarray) -> float:
    """Exact sum, so that shards in any order give the same last digit; inf or nan where it is."""
    if np.isfinite(values).all():
        return math.fsum(values)
    with np.errstate(invalid="ignore"):  # inf - inf is nan, which is the answer
        return float(np.sum(values))


def interval(x: np.ndarray, n: np.ndarray, quick: bool) -> Interval | None:
    """Of sum(x) / sum(n) over texts."""
    if not quick:
        return ratio_interval(x, n)
    return RatioMoments(len(x), x.sum(), n.sum(), x @ x, n @ n, x @ n).interval()


def _of_losses(x: np.ndarray, n: np.ndarray, quick: bool) -> Interval | None:
    found = interval(x, n, quick)
    return found and found.not_below(0.0)


def _split(tally: SplitTally, names: tuple[str, ...]) -> tuple[GroupFigures, ...]:
    return tuple(
        _group(names[group], sums, tally.ratio_moments(group))
        for group, sums in enumerate(tally.sums)
        if sums[COUNT]
    )


def _group(name: str, sums: np.ndarray, moments: RatioMoments | None) -> GroupFigures:
    means = (sums / sums[COUNT]).tolist()
    return GroupFigures(
        name=name,
        tokens=int(sums[COUNT]),
        texts=moments.texts if moments else None,
        mean_nll_nats=means[NLL],
        interval=moments.interval(positive=True)
        if moments and moments.texts >= FEWEST_TEXTS_OF_A_GROUP
        else None,
        top1_accuracy=means[TOP1],
        top5_accuracy=means[TOP5],
        mean_rank=means[RANK],
        mean_entropy_nats=means[ENTROPY],
    )


def _by_frequency(tally: ModelTally) -> Iterable[GroupFigures]:
    group = np.searchsorted(FREQUENCY_EDGES, tally.occurrences, side="right") - 1  # [V]
    for index, name in enumerate(_range_names(FREQUENCY_EDGES)):
        sums = tally.tokens[group == index].sum(axis=0)
        if sums[COUNT]:
            yield _group(name, sums, None)


def _range_names(edges: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the groups that begin at each edge.

    >>> _range_names((1, 2, 4))
    ('1', '2-3', '4+')
    """
    names = [
        str(low) if high == low + 1 else f"{low}-{high - 1}"
        for low, high in itertools.pairwise(edges)
    ]
    return (*names, f"{edges[-1]}+")


def _calibration(tally: ModelTally) -> Iterable[CalibrationBin]:
    for index, (tokens, stated, right) in enumerate(tally.calibration.tolist()):
        if tokens:
            yield CalibrationBin(
                index / CALIBRATION_BINS,
                (index + 1) / CALIBRATION_BINS,
                int(tokens),
                stated / tokens,
                right / tokens,
            )
