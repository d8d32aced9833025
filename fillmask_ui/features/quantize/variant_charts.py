"""Charts and the table of the variants of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

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
    "Lower is better. The lines on a point are 95% intervals of its difference from the baseline, "
    "by text, and of its speed, by turn. The larger a point, the faster. Filled points are on the "
    "frontier: no other is better in both, and they do not merely tie with the baseline."
)


Variants = Mapping[str, VariantFigures]  # by the names that charts and tables give them


def variants_chart(every: Variants, against: str) -> Chart:
    """Loss against `size` or `speed`, with the frontier; at least one loss must be finite.

    Areas of markers grow with the speed.
    """
    known = {name: own for name, own in every.items() if isfinite(own.mean_nll_nats)}
    names, rows = list(known), list(known.values())
    losses, spans = [own.mean_nll_nats for own in rows], list(map(_span, rows))
    by_size = against == "size"
    places = [row.size_bytes / 1e6 if by_size else row.token_times.speedup for row in rows]
    best = worth_having(rows, against)
    title = f"Loss against {against}"
    told = ", ".join(names[place] for place in best)
    figure = new_figure(
        f"{title} of {len(rows)} models; on the frontier: {told}.",
        "size on disk (MB)" if by_size else "speed of an evaluation, times the baseline's",
        "mean loss (nats)",
        legend=True,
        height=_HEIGHT,
        yaxis_title_standoff=16,
    )
    if len(best) > 1:
        figure.add_scatter(
            x=[places[place] for place in best],
            y=[losses[place] for place in best],
            mode="lines",
            line={"color": MUTED, "width": 1.5, "dash": "dot", "shape": "hv"},
            name="frontier",
            hoverinfo="skip",
        )
    most = max(row.token_times.speedup for row in rows)
    intervals = [None if by_size else row.token_times.interval for row in rows]
    widths = [own or Interval(cost, cost, "") for own, cost in zip(intervals, places, strict=True)]
    x = _axis([end for width in widths for end in (width.low, width.high)], 0.18, 0, _CANVAS[0])
    y = _axis(
        [end for own in spans for end in (own.low, own.high)], 0.3, _CANVAS[1], 0, least_axis(4)
    )
    spots = [
        (x(cost), y(loss), y(span.high), y(span.low), x(width.low), x(width.high))
        for cost, loss, span, width in zip(places, losses, spans, widths, strict=True)
    ]
    sides = _sides(names, spots)
    for kind, symbol in (("on the frontier", "circle"), ("not on it", "circle-open")):
        own = [p for p in range(len(rows)) if (p in best) == (symbol == "circle")]
        if not own:
            continue
        # A baseline is the reference of the others; it has no interval to be drawn.
        colours = [CANDIDATE if rows[p].verdict else REFERENCE for p in own]
        figure.add_scatter(
            x=[places[p] for p in own],
            y=[losses[p] for p in own],
            error_y=whiskers([losses[p] for p in own], [spans[p] for p in own], CANDIDATE, 4),
            error_x=whiskers([places[p] for p in own], [widths[p] for p in own], CANDIDATE, 4),
            mode="markers+text",
            marker={
                "symbol": symbol,
                "color": colours,
                "size": [_LARGEST * (rows[p].token_times.speedup / most) ** 0.5 for p in own],
                "line": {"width": 2, "color": colours},
            },
            text=[label(names[p], _LABEL_CHARACTERS) for p in own],
            textposition=[sides[p] for p in own],
            name=kind,
            customdata=[rows[p].token_times.speedup for p in own],
            hovertemplate="%{text}: %{y:.4f} nats at %{x:.4~g}, %{customdata:.2f} times the "
            "baseline's speed<extra></extra>",
        )
    figure.update_xaxes(range=[x.low, x.high]).update_yaxes(range=[y.low, y.high])
    return Chart(
        figure, variants_table(every), name=f"variants-by-{against}", title=title, note=_NOTE
    )


def _span(own: VariantFigures) -> Interval:
    """The paired interval of the loss, in nats; of no length without one."""
    if own.change_interval is None:
        return Interval(own.mean_nll_nats, own.mean_nll_nats, "")
    base = own.mean_nll_nats / (1 + own.relative_change)
    return own.change_interval.map(lambda change: base * (1 + change))


def _axis(
    values: Sequence[float], share: float, start: float, end: float, least: float = 0.0
) -> Scale:
    """The axis of the values in pixels, longer by a `share` of their range on both sides.

    It is at least as long as `least`.
    """
    low, high = min(values), max(values)
    room = max(share * ((high - low) or abs(high) or 1.0), (least - (high - low)) / 2)
    return Scale(low - room, high + room, start, end)


Box = tuple[float, float, float, float]  # in pixels: left, top, right, bottom


def _sides(names: Sequence[str], spots: Sequence[tuple[float, ...]]) -> list[str]:
    """The `textposition` of each name, so that it covers no marker, interval or other name.

    A spot is where the marker stands, across and up, then the ends of its intervals: the upper, the
    lower, the left and the right one.
    """
    width, height = _CANVAS
    taken = [(x - 13, y - 13, x + 13, y + 13) for x, y, *_ in spots]
    taken += [(x - 4, high, x + 4, low) for x, _, high, low, *_ in spots]
    taken += [(left, y - 4, right, y + 4) for _, y, *_, left, right in spots]
    found = []
    for name, (x, y, *_) in zip(names, spots, strict=True):
        long = 7.0 * len(name)
        beside = [("right", x + 14), ("left", x - 14 - long)]
        if x > 0.6 * width:  # towards the middle, on a screen of any width
            beside.reverse()
        boxes = {
            f"{level} {side}": (left, top, left + long, top + 15)
            for level, top in (("top", y - 28), ("bottom", y + 13), ("middle", y - 8))
            for side, left in (*beside, ("center", x - long / 2))
            if (level, side) != ("middle", "center")
        }

        def faults(side: str, boxes: Mapping[str, Box] = boxes) -> int:
            """How many a name covers, and whether it leaves the drawing."""
            left, top, right, bottom = boxes[side]
            hits = (a < right and left < c and b < bottom and top < d for a, b, c, d in taken)
            return sum(hits) + (left < 0 or top < 0 or right > width or bottom > height)

        found.append(min(boxes, key=faults))  # the first of the best
        taken.append(boxes[found[-1]])
    return found


def variants_table(rows: Variants) -> Table:
    """Every figure of each row, unrounded."""
    columns = (
        *("variant", "size (bytes)", "times the baseline's size"),
        *("speed, times the baseline's", INTERVAL, "of a sentence", INTERVAL),
        *("mean NLL (nats)", INTERVAL, "relative change", INTERVAL),
        *("verdict", "same best guess", "KL(variant || baseline) (nats)"),
    )
    return Table.of(columns, [_cells(name, row) for name, row in rows.items()])


def _cells(name: str, row: VariantFigures) -> tuple[Any, ...]:
    tokens, sentence = row.token_times, row.sentence_times
    return (
        *(name, row.size_bytes, row.ratio, tokens.speedup, tokens.interval),
        *((sentence.speedup, sentence.interval) if sentence else (None, None)),
        *(row.mean_nll_nats, row.interval, row.relative_change, row.change_interval),
        *(row.verdict or BASELINE, row.top1_agreement, row.kl_nats),
    )
