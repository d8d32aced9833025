"""What all charts of an evaluation share: the record, the layout, names and colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fillmask_ui.show.charts.explore import ACCENT, MUTED, SECOND, base_layout, label

HEIGHT = 320
_COLOURS = (ACCENT, SECOND)
# Two lines that lie on each other are both seen.
_DASHES = {ACCENT: "solid", SECOND: "dash"}
Names = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """What a chart shows, in rows.

    Attributes:
        columns: headings.
        rows: of text and unrounded numbers; None where there is no value.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure and the table of what it shows.

    Attributes:
        name: short and stable, for ids and file names.
        title: what it shows.
        note: how to read it, and what is left out.
        figure: without a title of its own.
        table: of its numbers.
    """

    name: str
    title: str
    note: str
    figure: go.Figure
    table: Table


def figure_layout(description: str, x: str, y: str, *, models: int = 1) -> dict:
    """The shared layout with named axes, and a legend where there are two models.

    Args:
        description: the figure in words.
        x: what its horizontal axis is.
        y: what its vertical axis is.
        models: how many are drawn.
    """
    layout = base_layout(height=HEIGHT, description=description)
    layout["margin"] |= {"l": 48, "t": 12, "b": 44}
    font = {"size": 13}
    layout["xaxis"]["title"] = {"text": x, "standoff": 8, "font": font}
    layout["yaxis"]["title"] = {"text": y, "standoff": 8, "font": font}
    if models > 1:
        add_legend(layout)
    return layout


def add_legend(layout: dict) -> None:
    """Make room for a legend above the figure."""
    layout["showlegend"] = True
    layout["legend"] = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    layout["margin"]["t"] = 40


def named(models: Sequence[Any], names: Names) -> list[tuple[Any, str, str]]:
    """Each model with its name as a label, and its colour."""
    return [
        (figures, label(name, 32), colour)
        for figures, name, colour in zip(models, names, _COLOURS, strict=False)
    ]


def headings(heading: str, names: Names, models: int) -> list[str]:
    """A column's heading for each model.

    >>> headings("tokens", ("A", "B"), 2)
    ['tokens, A', 'tokens, B']
    """
    return [heading] if models == 1 else [f"{heading}, {name}" for name in names[:models]]


def table_rows(*columns: np.ndarray) -> tuple[tuple[Any, ...], ...]:
    """Columns of equal length as rows of plain numbers."""
    return tuple(zip(*(column.tolist() for column in columns), strict=True))


def line(colour: str, width: float) -> dict[str, Any]:
    """How a model's line is drawn: the second one dashed."""
    return {"color": colour, "width": width, "dash": _DASHES[colour]}


def diagonal(end: float) -> go.Scatter:
    """The line on which both axes have the same value."""
    return go.Scatter(
        x=[0, end],
        y=[0, end],
        mode="lines",
        line={"color": MUTED, "width": 1, "dash": "dash"},
        showlegend=False,
        hoverinfo="skip",
    )
