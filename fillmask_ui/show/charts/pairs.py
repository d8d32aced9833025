"""Charts of two models on identical masks: scatter, distribution of differences."""

from __future__ import annotations

import itertools

import numpy as np
import plotly.graph_objects as go

from fillmask_ui.evaluation import Comparison
from fillmask_ui.show.charts.bins import bars_of
from fillmask_ui.show.charts.chart import (
    Chart,
    Names,
    Table,
    diagonal,
    figure_layout,
    table_rows,
)
from fillmask_ui.show.charts.explore import ACCENT, MUTED, SECOND

MAX_POINTS = 2000
_BANDS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, np.inf)


def scatter(points: np.ndarray, *, names: Names = ("model", "baseline")) -> Chart:
    """The loss of each token under one model against its loss under the other.

    Args:
        points: float64 [2, n], a fair sample of tokens in random order; the first `MAX_POINTS`
            are drawn.
        names: what to call the models.
    """
    drawn = points[:, :MAX_POINTS]
    end = float(drawn.max()) * 1.03 if drawn.size else 1.0
    worse = float((drawn[0] > drawn[1]).mean()) if drawn.size else 0.0
    layout = figure_layout(
        f"Scatter of the losses of {drawn.shape[1]:,} tokens under both models; "
        f"{worse:.0%} lie below the diagonal, where {names[0]} is worse.",
        f"loss under {names[0]} (nats)",
        f"loss under {names[1]} (nats)",
    )
    for axis in ("xaxis", "yaxis"):
        layout[axis]["range"] = [-end / 60, end]
    figure = go.Figure(diagonal(end), layout)
    figure.add_scatter(
        x=drawn[0],
        y=drawn[1],
        mode="markers",
        marker={"color": ACCENT, "size": 5, "opacity": 0.45},
        hovertemplate="%{x:.3f} and %{y:.3f} nats<extra></extra>",
    )
    return Chart(
        "scatter",
        "Loss of a token under both models",
        f"Below the dashed line {names[0]} is worse. A fair sample of {drawn.shape[1]:,} tokens "
        f"(at most {MAX_POINTS:,}); the table gathers it in bands.",
        figure,
        Table(
            (
                f"loss from, {names[0]} (nats)",
                "to (nats)",
                "tokens of the sample",
                f"mean loss, {names[0]} (nats)",
                f"mean loss, {names[1]} (nats)",
                f"share where {names[0]} is worse",
            ),
            _bands(drawn),
        ),
    )


def _bands(points: np.ndarray) -> tuple[tuple[float | int | None, ...], ...]:
    rows = []
    for low, high in itertools.pairwise(_BANDS):
        own, other = points[:, (points[0] >= low) & (points[0] < high)]
        if len(own):
            worse = float((own > other).mean())
            ends = (low, None if np.isinf(high) else high)
            rows.append((*ends, len(own), float(own.mean()), float(other.mean()), worse))
    return tuple(rows)


def differences(comparison: Comparison, *, names: Names = ("model", "baseline")) -> Chart:
    """How much larger the loss of a token is under the first model, as a histogram.

    Args:
        comparison: by token.
        names: what to call the models.

    Raises:
        ValueError: for a comparison by character, which pairs no tokens.
    """
    if comparison.histogram is None:
        raise ValueError("a comparison by character has no differences of tokens")
    bars = bars_of([comparison.histogram])
    low, high, counts = bars.edges[:-1], bars.edges[1:], bars.counts[0]
    mean = comparison.difference_nats
    layout = figure_layout(
        f"Histogram of the difference of the loss of a token, {names[0]} less {names[1]}; "
        f"mean {mean:+.4f} nats.",
        f"loss under {names[0]} less loss under {names[1]} (nats)",
        "tokens",
    )
    layout |= {"bargap": 0.06, "showlegend": True}
    layout["legend"] = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    layout["margin"]["t"] = 40
    layout["yaxis"]["rangemode"] = "tozero"
    figure = go.Figure(
        go.Bar(
            x=(low + high) / 2,
            y=counts,
            width=high - low,
            # Half of a bar's tokens may be exactly 0: a bar holds its left edge.
            marker={"color": [SECOND if left >= 0 else ACCENT for left in low]},
            showlegend=False,
            customdata=[f"{a:.6g} to {b:.6g}" for a, b in zip(low, high, strict=True)],
            hovertemplate="%{customdata} nats: %{y:,} tokens<extra></extra>",
        ),
        layout,
    )
    figure.add_shape(
        type="line",
        x0=mean,
        x1=mean,
        y0=0,
        y1=1,
        yref="paper",
        line={"color": MUTED, "width": 2},
        showlegend=True,
        name=f"mean {mean:+.4f}",
    )
    return Chart(
        "differences",
        "Difference of the loss of a token",
        f"Right of zero {names[0]} is worse. The first and last bar also hold what lies beyond.",
        figure,
        Table(
            ("from (nats)", "to (nats)", "tokens", "share up to here"),
            table_rows(low, high, counts, np.cumsum(counts) / counts.sum()),
        ),
    )
