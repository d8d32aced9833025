"""Variants of a model: their loss against their size, and against their speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from fillmask_ui.quantizing.frontier import frontier
from fillmask_ui.quantizing.measure import BASELINE, VariantFigures
from fillmask_ui.show.charts.chart import ACCENT, MUTED, SECOND, Chart, label, new_figure
from fillmask_ui.show.figures import INTERVAL
from fillmask_ui.show.table import Table

_LABEL_CHARACTERS = 28
_HEIGHT = 290
# About the pixels that points are drawn on, on a small screen of a laptop.
_CANVAS = (600, 190)
# Pixels of the marker of the fastest; areas go with the speed.
_LARGEST = 26


@dataclass(frozen=True)
class Named:
    """A row under the name that charts and tables call it by."""

    name: str
    figures: VariantFigures


def by_size(rows: Sequence[Named]) -> Chart:
    """Loss against size on disk; the larger a marker, the more tokens per second."""
    return _chart(rows, "size", "size on disk (MB)", lambda own: own.size_bytes / 1e6)


def by_speed(rows: Sequence[Named]) -> Chart:
    """Loss against speed: what is further to the right evaluates more tokens in a second."""
    # Variants are measured one after the other, each in turns with the baseline: its ratio counts.
    axis = "tokens per second, times the baseline's"
    return _chart(rows, "speed", axis, lambda own: own.speedup, better=1)


def _chart(
    every: Sequence[Named],
    against: str,
    axis: str,
    place_of: Callable[[VariantFigures], float],
    better: int = -1,
) -> Chart:
    """Points with their frontier.

    Args:
        every: at least one with a finite loss.
        against: what the loss is drawn against.
        axis: the same with its unit.
        place_of: a row's place along that axis.
        better: 1 where a larger place is better, -1 where a smaller one is.
    """
    rows = [row for row in every if isfinite(row.figures.mean_nll_nats)]
    places = [place_of(row.figures) for row in rows]
    costs = [-better * place for place in places]
    title = f"Loss against {against}"
    losses = [row.figures.mean_nll_nats for row in rows]
    best = frontier(costs, losses)
    told = ", ".join(rows[place].name for place in best)
    figure = new_figure(
        f"{title} of {len(rows)} models; on the frontier: {told}.",
        axis,
        "mean loss (nats)",
        legend=True,
        height=_HEIGHT,
        yaxis_title_standoff=16,
    )
    # As steps: between two of its points one can have the better of either, not what lies between.
    if len(best) > 1:
        figure.add_scatter(
            x=[places[place] for place in best],
            y=[losses[place] for place in best],
            mode="lines",
            line={"color": MUTED, "width": 1.5, "dash": "dot", "shape": "hv"},
            name="frontier",
            hoverinfo="skip",
        )
    most = max(row.figures.speedup for row in rows)
    ranges = _range(places), _loss_range(rows)
    spans = [_span(rows, place) for place in range(len(rows))]
    points = list(zip(places, losses, strict=True))
    sides = _sides(points, [own.name for own in rows], *ranges, spans)
    for kind, symbol, colour in (
        ("on the frontier", "circle", ACCENT),
        ("beaten in both", "circle-open", SECOND),
    ):
        own = [p for p in range(len(rows)) if (p in best) == (symbol == "circle")]
        if not own:
            continue
        figure.add_scatter(
            x=[places[p] for p in own],
            y=[losses[p] for p in own],
            error_y={
                "array": [spans[p][1] for p in own],
                "arrayminus": [spans[p][0] for p in own],
                "color": colour,
                "thickness": 1.2,
                "width": 4,
            },
            mode="markers+text",
            marker={
                "symbol": symbol,
                "color": colour,
                "size": [_LARGEST * (rows[p].figures.speedup / most) ** 0.5 for p in own],
                "line": {"width": 2, "color": colour},
            },
            text=[label(rows[p].name, _LABEL_CHARACTERS) for p in own],
            textposition=[sides[p] for p in own],
            name=kind,
            customdata=[[rows[p].figures.tokens_per_second, rows[p].figures.speedup] for p in own],
            hovertemplate="%{text}: %{y:.4f} nats at %{x:.4~g}, %{customdata[0]:,.0f} tokens/s "
            "(%{customdata[1]:.2f} times the baseline)<extra></extra>",
        )
    figure.update_xaxes(range=ranges[0]).update_yaxes(range=ranges[1])
    return Chart(
        figure, variants_table(every), name=f"variants-by-{against}", title=title, note=_NOTE
    )


_NOTE = (
    "Lower is better. The line on a point is the 95 % interval of its difference from the "
    "baseline, paired by text. The larger a point, the faster. Filled points are on the frontier: "
    "no other is better in both."
)


def _span(rows: Sequence[Named], place: int) -> tuple[float, float]:
    """How far the paired interval reaches below and above the loss, in nats; 0 without one."""
    own = rows[place].figures
    if own.change_interval is None:
        return 0.0, 0.0
    base = own.mean_nll_nats / (1 + own.relative_change)
    return (
        base * (own.relative_change - own.change_interval.low),
        base * (own.change_interval.high - own.relative_change),
    )


def _sides(
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    across: Sequence[float],
    up: Sequence[float],
    spans: Sequence[tuple[float, float]] = (),
) -> list[str]:
    """Where the name of each point goes, as plotly says it: on no marker, line or other name."""
    width, height = _CANVAS
    spots = [
        (
            (x - across[0]) / (across[1] - across[0]) * width,
            (up[1] - y) / (up[1] - up[0]) * height,
        )
        for x, y in points
    ]
    markers = [_Box(x - 13, y - 13, x + 13, y + 13) for x, y in spots]
    scale = height / (up[1] - up[0])
    taken = [
        _Box(x - 4, y - above * scale, x + 4, y + below * scale)
        for (x, y), (below, above) in zip(spots, spans, strict=False)
        if below + above
    ]
    found = []
    for number, (x, y) in enumerate(spots):
        others = [own for place, own in enumerate(markers) if place != number]
        long = 7.0 * len(names[number])
        beside = [("right", 0.0, 14), ("left", -1.0, -14), ("center", -0.5, 0)]
        if x > 0.6 * width:  # towards the middle, on a screen of any width
            beside[:2] = beside[1::-1]
        boxes = {
            f"{row} {side}": _Box(
                x + left * long + shift, y + top, x + (left + 1) * long + shift, y + top + 15
            )
            for row, top in (("top", -28), ("bottom", 13), ("middle", -8))
            for side, left, shift in beside
            if (row, side) != ("middle", "center")
        }

        def cost(side: str, boxes: dict[str, _Box] = boxes, others: list[_Box] = others) -> int:
            box = boxes[side]
            hits = sum(map(box.meets, [*others, *taken]))
            outside = box.left < 0 or box.right > width or box.top < 0 or box.bottom > height
            return hits + outside

        side = min(boxes, key=cost)  # the first of the best
        found.append(side)
        taken.append(boxes[side])
    return found


@dataclass(frozen=True)
class _Box:
    """A rectangle in pixels, from the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def _range(places: Sequence[float]) -> list[float]:
    """From a little before the first to a little behind the last: names have room."""
    low, high = min(places), max(places)
    room = 0.18 * ((high - low) or abs(high) or 1.0)
    return [low - room, high + room]


def _loss_range(rows: Sequence[Named]) -> list[float]:
    ends = [
        end
        for place, row in enumerate(rows)
        for end in (
            row.figures.mean_nll_nats - _span(rows, place)[0],
            row.figures.mean_nll_nats + _span(rows, place)[1],
        )
    ]
    low, high = min(ends), max(ends)
    room = 0.3 * ((high - low) or 0.1)
    return [low - room, high + room]


def variants_table(rows: Sequence[Named]) -> Table:
    """Every figure of each row, unrounded."""
    columns = (
        *("variant", "size (bytes)", "times the baseline's size"),
        *("tokens/s", "times the baseline's", "sentence (ms)"),
        *("mean NLL (nats)", INTERVAL, "relative change", INTERVAL),
        *("verdict", "same best guess", "KL(variant || baseline) (nats)"),
    )
    return Table.of(columns, map(_cells, rows))


def _cells(row: Named) -> tuple[object, ...]:
    own = row.figures
    return (
        *(row.name, own.size_bytes, own.ratio),
        *(own.tokens_per_second, own.speedup, own.sentence_ms),
        *(own.mean_nll_nats, own.interval, own.relative_change, own.change_interval),
        *(own.verdict or BASELINE, own.top1_agreement, own.kl_nats),
    )
