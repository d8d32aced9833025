"""Charts of two models on identical masks: scatter, distribution of differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fillmask_ui.show.charts.bins import bars_of
from fillmask_ui.show.charts.chart import (
    ACCENT,
    MUTED,
    SECOND,
    Drawing,
    Subject,
    add_diagonal,
    new_figure,
)
from fillmask_ui.show.figures import Table

MAX_POINTS = 2000
_BANDS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf)


def scatter(subject: Subject) -> Drawing:
    """The loss of each token under one model against its loss under the other."""
    first, second = subject.names
    # A fair sample in random order: the first of it are one as well.
    drawn = subject.summary.points[:, :MAX_POINTS]
    end = float(drawn.max()) * 1.03 if drawn.size else 1.0
    worse = float((drawn[0] > drawn[1]).mean()) if drawn.size else 0.0
    figure = new_figure(
        f"Scatter of the losses of {drawn.shape[1]:,} tokens under both models; "
        f"{worse:.0%} lie below the diagonal, where {first} is worse.",
        f"loss under {first} (nats)",
        f"loss under {second} (nats)",
        xaxis_range=[-end / 60, end],
        yaxis_range=[-end / 60, end],
    )
    add_diagonal(figure, end)
    figure.add_scatter(
        x=drawn[0],
        y=drawn[1],
        mode="markers",
        marker={"color": ACCENT, "size": 5, "opacity": 0.45},
        hovertemplate="%{x:.3f} and %{y:.3f} nats<extra></extra>",
    )
    columns = (
        *(f"loss from, {first} (nats)", "to (nats)", "tokens of the sample"),
        *(f"mean loss, {first} (nats)", f"mean loss, {second} (nats)"),
        f"share where {first} is worse",
    )
    return Drawing(figure, Table(columns, tuple(_bands(drawn))))


def _bands(points: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """The points gathered by the first model's loss; the last band has no upper end."""
    for low, high in itertools.pairwise(_BANDS):
        own, other = points[:, (points[0] >= low) & (points[0] < high)]
        if len(own):
            figures = (float(own.mean()), float(other.mean()), float((own > other).mean()))
            yield (low, high if math.isfinite(high) else None, len(own), *figures)


def differences(subject: Subject) -> Drawing:
    """How much larger the loss of a token is under the first model, as a histogram.

    Raises:
        ValueError: for a comparison by character, which pairs no tokens.
    """
    comparison, (first, second) = subject.summary.comparison, subject.names
    if comparison is None or comparison.histogram is None:
        raise ValueError("a comparison by character has no differences of tokens")
    bars, mean = bars_of([comparison.histogram]), comparison.difference_nats
    figure = new_figure(
        f"Histogram of the difference of the loss of a token, {first} less {second}; "
        f"mean {mean:+.4f} nats.",
        f"loss under {first} less loss under {second} (nats)",
        "tokens",
        legend=True,
        bargap=0.06,
        yaxis_rangemode="tozero",
    )
    # Half of a bar's tokens may be exactly 0: a bar holds its left edge.
    colours = [SECOND if left >= 0 else ACCENT for left in bars.edges[:-1]]
    figure.add_bar(**bars.places(), y=bars.counts[0], marker={"color": colours}, showlegend=False)
    line = {"color": MUTED, "width": 2}
    figure.add_vline(mean, line=line, showlegend=True, name=f"mean {mean:+.4f}")
    return Drawing(figure, bars.table(subject.names))
