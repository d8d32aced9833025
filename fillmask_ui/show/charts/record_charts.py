"""Charts of single records, for notebooks: numbers of their data frames as bars.

Their letters are of a grey that can be read on a light and on a dark ground, since a notebook does
not set the colours of a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fillmask_ui.evaluation import Summary
from fillmask_ui.records import ROLES
from fillmask_ui.show.charts import charts, main_chart
from fillmask_ui.show.charts.chart import CANDIDATE, REFERENCE, label, new_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

_INK = "#7a7a7a"
_BAR_PIXELS = 22
_LABEL_CHARACTERS = 60


class Bars(NamedTuple):
    """What is drawn of a data frame: a bar for each row and side."""

    labels: tuple[str, ...]  # columns that name a row: the last one, and others where they vary
    values: tuple[str, ...]  # a column, or those of reference and candidate
    title: str
    form: str = ""  # of the numbers, for plotly
    horizontal: bool = True  # from left to right, one row below the other


def bars_figure(rows: Sequence[Mapping[str, Any]], drawn: Bars) -> go.Figure:
    """The rows that have a value as bars."""
    rows = [row for row in rows if row[drawn.values[0]] is not None]
    columns = [name for name in drawn.labels[:-1] if len({row[name] for row in rows}) > 1]
    columns.append(drawn.labels[-1])
    names = [" · ".join(str(row[name]) for name in columns) for row in rows]
    description = f"{drawn.title} of {len(rows)}: {', '.join(names[:5])}"
    two = len(drawn.values) > 1
    figure = new_figure(description, legend=two)
    value_axis, row_axis = "xy" if drawn.horizontal else "yx"
    numbers = list(range(len(rows)))
    for column, role, colour in zip(drawn.values, ROLES, (REFERENCE, CANDIDATE), strict=False):
        bars = {value_axis: [row[column] for row in rows], row_axis: numbers}
        figure.add_bar(
            **bars,
            orientation="h" if drawn.horizontal else None,
            name=role if two else "",
            marker={"color": colour},
        )
    ticks = [label(name, _LABEL_CHARACTERS) for name in names]
    axes = {
        f"{value_axis}axis": {"title_text": drawn.title, "tickformat": drawn.form},
        f"{row_axis}axis": {"tickvals": numbers, "ticktext": ticks},
    }
    if drawn.horizontal:
        height = 110 + _BAR_PIXELS * len(rows) * len(drawn.values)
        figure.update_layout(height=height, yaxis_autorange="reversed")
    return figure.update_layout(axes, font_color=_INK)


def summary_figure(summary: Summary) -> go.Figure:
    """The chart that stands with the story of an evaluation."""
    figures = {chart.name: chart.figure for chart in charts(summary)}
    figure = figures[main_chart(summary)]
    figure.layout.updatemenus = ()  # whose buttons are light on any ground
    return figure.update_layout(font_color=_INK)
