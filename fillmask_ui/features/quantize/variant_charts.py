"""Charts and the table of the variants of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from fillmask_ui.features.quantize.measure_variants import (
    BASELINE,
    VariantFigures,
    worth_having,
)
from fillmask_ui.intervals import Interval
from fillmask_ui.show.charts.chart import (
    CANDIDATE,
    MUTED,
    REFERENCE,
    Chart,
    label,
    new_figure,
    whiskers,
)
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.figures import INTERVAL
from fillmask_ui.show.numbers import least_axis
from fillmask_ui.show.table import Table

_LABEL_CHARACTERS = 28
_HEIGHT = 290
# About the pixels that points are drawn on, on a small screen of a laptop.
_CANVAS = (600, 190)
# Pixels of the marker of the fastest; areas go with the speed.
_LARGEST = 26
_NOTE = (
    "Lower is better. Lines are 95% intervals: of the difference from the baseline over texts, and "
    "of the speed over rounds. Larger points are faster. Filled points are on the frontier: no "
    "other model beats them in both, and they do not merely tie with the baseline."
)


Variants = Mapping[str, VariantFigures]  # by the names that charts and tables give them


def variants_chart(variants: Variants, against: str) -> Chart:
    """Loss against `size` or `speed`, with the frontier; at least one loss must be finite.

    Areas of markers grow with the speed.
    """
    measured = {name: row for name, row in variants.items() if isfinite(row.mean_nll_nats)}
    names, rows = list(measured), list(measured.values())
    losses = [row.mean_nll_nats for row in rows]
    spans = [_span(row) for row in rows]
    by_size = against == "size"
    costs = [row.size_bytes / 1e6 if by_size else row.token_times.speedup for row in rows]
    best = worth_having(rows, against)
    title = f"Loss against {against}"
    best_names = ", ".join(names[index] for index in best)
    figure = new_figure(
        f"{title} of {len(rows)} models; on the frontier: {best_names}.",
        "size on disk (MB)" if by_size else "speed of an evaluation (× the baseline)",
        "mean loss (nats)",
        legend=True,
        height=_HEIGHT,
        yaxis_title_standoff=16,
    )
    if len(best) > 1:
        figure.add_scatter(
            x=[costs[index] for index in best],
            y=[losses[index] for index in best],
            mode="lines",
            line={"color": MUTED, "width": 1.5, "dash": "dot", "shape": "hv"},
            name="frontier",
            hoverinfo="skip",
        )
    most = max(row.token_times.speedup for row in rows)
    intervals = [None if by_size else row.token_times.interval for row in rows]
    widths = [
        interval or Interval(cost, cost, "")
        for interval, cost in zip(intervals, costs, strict=True)
    ]
    x = _axis([limit for width in widths for limit in (width.low, width.high)], 0.18, 0, _CANVAS[0])
    y = _axis(
        [limit for span in spans for limit in (span.low, span.high)],
        0.3,
        _CANVAS[1],
        0,
        least_axis(4),
    )
    spots = [
        _Spot(x(cost), y(loss), y(span.high), y(span.low), x(width.low), x(width.high))
        for cost, loss, span, width in zip(costs, losses, spans, widths, strict=True)
    ]
    positions = _label_positions(names, spots)
    for kind, symbol in (("on the frontier", "circle"), ("not on the frontier", "circle-open")):
        drawn = [index for index in range(len(rows)) if (index in best) == (symbol == "circle")]
        if not drawn:
            continue
        # A baseline is the reference of the others; it has no interval to be drawn.
        colours = [CANDIDATE if rows[index].verdict else REFERENCE for index in drawn]
        figure.add_scatter(
            x=[costs[index] for index in drawn],
            y=[losses[index] for index in drawn],
            error_y=whiskers(
                [losses[index] for index in drawn], [spans[index] for index in drawn], CANDIDATE, 4
            ),
            error_x=whiskers(
                [costs[index] for index in drawn], [widths[index] for index in drawn], CANDIDATE, 4
            ),
            mode="markers+text",
            marker={
                "symbol": symbol,
                "color": colours,
                "size": [
                    _LARGEST * (rows[index].token_times.speedup / most) ** 0.5 for index in drawn
                ],
                "line": {"width": 2, "color": colours},
            },
            text=[label(names[index], _LABEL_CHARACTERS) for index in drawn],
            textposition=[positions[index] for index in drawn],
            name=kind,
            customdata=[rows[index].token_times.speedup for index in drawn],
            hovertemplate="%{text}: %{y:.4f} nats at %{x:.4~g}, %{customdata:.2f} times the "
            "baseline's speed<extra></extra>",
        )
    figure.update_xaxes(range=[x.low, x.high]).update_yaxes(range=[y.low, y.high])
    return Chart(
        figure, variants_table(variants), name=f"variants-by-{against}", title=title, note=_NOTE
    )


def _span(row: VariantFigures) -> Interval:
    """The paired interval of the loss, in nats; of no length without one."""
    if row.change_interval is None:
        return Interval(row.mean_nll_nats, row.mean_nll_nats, "")
    base = row.mean_nll_nats / (1 + row.relative_change)
    return row.change_interval.map(lambda change: base * (1 + change))


def _axis(
    values: Sequence[float], share: float, start: float, stop: float, least: float = 0.0
) -> Scale:
    """The axis of the values in pixels, longer by a `share` of their range on both sides.

    It is at least as long as `least`.
    """
    low, high = min(values), max(values)
    room = max(share * ((high - low) or abs(high) or 1.0), (least - (high - low)) / 2)
    return Scale(low - room, high + room, start, stop)


class _Spot(NamedTuple):
    """A marker and the limits of its intervals, in pixels."""

    x: float
    y: float
    top: float
    bottom: float
    left: float
    right: float


class _Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def _label_positions(names: Sequence[str], spots: Sequence[_Spot]) -> list[str]:
    """The `textposition` of each name, so that it covers no marker, interval or other name."""
    width, height = _CANVAS
    obstacles = []
    for x, y, top, bottom, left, right in spots:
        obstacles.append(_Box(x - 13, y - 13, x + 13, y + 13))
        obstacles.append(_Box(x - 4, top, x + 4, bottom))
        obstacles.append(_Box(left, y - 4, right, y + 4))
    positions = []
    for name, spot in zip(names, spots, strict=True):
        best, fewest = "", len(obstacles) + 2
        for position, box in _label_boxes(spot, 7.0 * len(name)):
            faults = sum(box.overlaps(obstacle) for obstacle in obstacles)
            faults += box.left < 0 or box.top < 0 or box.right > width or box.bottom > height
            if faults < fewest:
                best, best_box, fewest = position, box, faults
        positions.append(best)
        obstacles.append(best_box)
    return positions


def _label_boxes(spot: _Spot, length: float) -> Iterator[tuple[str, _Box]]:
    """Each `textposition` of a name so long, the preferred first, and the box that it takes."""
    lefts = {"right": spot.x + 14, "left": spot.x - 14 - length, "center": spot.x - length / 2}
    # Towards the middle, on a screen of any width.
    beside = ["left", "right"] if spot.x > 0.6 * _CANVAS[0] else ["right", "left"]
    for level, top in (("top", spot.y - 28), ("bottom", spot.y + 13), ("middle", spot.y - 8)):
        for side in beside if level == "middle" else [*beside, "center"]:
            left = lefts[side]
            yield f"{level} {side}", _Box(left, top, left + length, top + 15)


def variants_table(rows: Variants) -> Table:
    """Every figure of each row, unrounded."""
    columns = (
        "variant",
        "size (bytes)",
        "size (× the baseline)",
        "speed (× the baseline)",
        INTERVAL,
        "speed for a sentence (× the baseline)",
        INTERVAL,
        "mean NLL (nats)",
        INTERVAL,
        "relative change",
        INTERVAL,
        "verdict",
        "same top prediction",
        "KL(variant || baseline) (nats)",
    )
    return Table.of(columns, [_cells(name, row) for name, row in rows.items()])


def _cells(name: str, row: VariantFigures) -> tuple[Any, ...]:
    tokens, sentence = row.token_times, row.sentence_times
    return (
        name,
        row.size_bytes,
        row.ratio,
        tokens.speedup,
        tokens.interval,
        sentence.speedup if sentence else None,
        sentence.interval if sentence else None,
        row.mean_nll_nats,
        row.interval,
        row.relative_change,
        row.change_interval,
        row.verdict or BASELINE,
        row.top1_agreement,
        row.kl_nats,
    )
