"""Figures of an evaluation as charts: each a plotly figure with the table of what it shows.

Nothing here grows with the texts: a summary holds counts in bins of 0.02 nats and a fair sample of
tokens. Whoever cannot see a chart reads its table; whoever exports it gets numbers unrounded.
A new chart is a function of a `Subject` and a row of `CHARTS`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import plotly.offline

from fillmask_ui.evaluation import MeanSoFar, Summary
from fillmask_ui.show.charts.chart import Drawing, Subject
from fillmask_ui.show.charts.groups import calibration, loss_by_group, running_mean
from fillmask_ui.show.charts.losses import (
    VIOLIN_POINTS,
    loss_by_kind,
    loss_distribution,
    loss_histogram,
)
from fillmask_ui.show.charts.pairs import MAX_POINTS, differences, scatter
from fillmask_ui.show.figures import NAMES, Names, Table

__all__ = ["CHARTS", "Chart", "chart_library", "charts"]


@dataclass(frozen=True)
class ChartKind:
    """One row of the catalogue of charts.

    Attributes:
        draw: makes the figure and its table.
        title: what it shows.
        note: how to read it, and what is left out; `{first}` is the name of the first model,
            `{sample}` the number of tokens that are drawn as points.
        needs: attribute of the `Subject` without which there is nothing to draw.
        live: whether it is drawn while an evaluation runs.
    """

    draw: Callable[[Subject], Drawing]
    title: str
    note: str
    needs: str = "models"
    live: bool = False


# By name, which is short and stable, for ids and file names; in the order of the page.
CHARTS = {
    "running-mean": ChartKind(
        running_mean,
        "The mean as it settles",
        "The band is the 95 % interval, which takes whole texts as the unit.",
        "history",
        live=True,
    ),
    "loss-histogram": ChartKind(
        loss_histogram,
        "Loss of a token",
        "The first and last bar also hold the few tokens that lie beyond.",
        live=True,
    ),
    "scatter": ChartKind(
        scatter,
        "Loss of a token under both models",
        "Below the dashed line {first} is worse. A fair sample of {sample:,} tokens (at most "
        f"{MAX_POINTS:,}); the table gathers it in bands.",
        "differences",
    ),
    "differences": ChartKind(
        differences,
        "Difference of the loss of a token",
        "Right of zero {first} is worse. The first and last bar also hold what lies beyond.",
        "differences",
    ),
    "loss-distribution": ChartKind(
        loss_distribution,
        "Empirical distribution of the loss",
        "A curve further to the left is better; values are exact to 0.02 nats.",
    ),
    "loss-by-kind": ChartKind(
        loss_by_kind,
        "Loss by what the model saw",
        "Unchanged tokens stand before the model's eyes and are easier: they flatter the mean. "
        f"Each violin is drawn from {VIOLIN_POINTS} quantiles; its box spans the middle half.",
    ),
    "loss-by-position": ChartKind(
        functools.partial(loss_by_group, split="by_position"),
        "Loss by position in the text",
        "Positions count tokens from 0, the special token at the start included.",
    ),
    "loss-by-frequency": ChartKind(
        functools.partial(loss_by_group, split="by_frequency"),
        "Loss by frequency of the token",
        "How often the token to be found occurs in the texts measured here.",
    ),
    "loss-by-part": ChartKind(
        functools.partial(loss_by_group, split="by_part"),
        "Loss by part of the word",
        "A later sub-token is easier where the beginning of its word can be seen.",
    ),
    "calibration": ChartKind(
        calibration,
        "Calibration",
        "On the line a model is right as often as it says; below it is too sure of itself. Larger "
        "points stand for more tokens.",
    ),
}


@dataclass(frozen=True, eq=False)
class Chart:
    """A row of the catalogue, drawn.

    Attributes:
        name: short and stable, for ids and file names.
        title: what it shows.
        note: how to read it, and what is left out.
        figure: without a title of its own; `layout.meta` has its description in words.
        table: of its numbers.
    """

    name: str
    title: str
    note: str
    figure: go.Figure
    table: Table

    def to_html(self) -> str:
        """The figure as an element that `chart_library` draws, without a server or a network."""
        config = {"displaylogo": False, "displayModeBar": False, "responsive": True}
        return self.figure.to_html(
            full_html=False, include_plotlyjs=False, div_id=f"chart-{self.name}", config=config
        )


def chart_library() -> str:
    """The whole of plotly.js, to be put into one script element."""
    return plotly.offline.get_plotlyjs()


def charts(
    summary: Summary,
    *,
    names: Names = NAMES,
    history: Sequence[MeanSoFar] = (),
    live: bool = False,
) -> tuple[Chart, ...]:
    """All charts that there are figures for, in the order of the page.

    Args:
        summary: of one model, or of two.
        names: what to call the models.
        history: the mean after ever more texts.
        live: only those that are drawn while an evaluation runs.
    """
    subject = Subject(summary, names, history)
    values = {"first": names[0], "sample": min(summary.points.shape[1], MAX_POINTS)}
    found = []
    for name, kind in CHARTS.items():
        if getattr(subject, kind.needs) and (kind.live or not live):
            drawn, note = kind.draw(subject), kind.note.format(**values)
            found.append(Chart(name, kind.title, note, drawn.figure, drawn.table))
    return tuple(found)
