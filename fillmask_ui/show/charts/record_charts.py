"""Charts of single records, for notebooks: numbers of their data frames as bars.

Their letters are of a grey that can be read on a light and on a dark ground, since a notebook does
not set the colours of a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fillmask_ui.evaluation import Summary
from fillmask_ui.records import ROLES
from fillmask_ui.show.charts import MAIN_CHARTS, charts
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
    across: bool = True  # from left to right, one row below the other


def bars_figure(rows: Sequence[Mapping[str, Any]], drawn: Bars) -> go.Figure:
    """The rows that have a value as bars."""
    rows = [row for row in rows if row[drawn.values[0]] is not None]
    kept = [name for name in drawn.labels[:-1] if len({row[name] for row in rows}) > 1]
    kept.append(drawn.labels[-1])
    names = [" · ".join(str(row[name]) for name in kept) for row in rows]
    description = f"{drawn.title} of {len(rows)}: {', '.join(names[:5])}"
    sides = zip(ROLES if drawn.values[1:] else ("",), drawn.values, strict=True)
    figure = new_figure(description, legend=len(drawn.values) > 1)
    along, beside = "xy" if drawn.across else "yx"  # the axis of the values, that of the rows
    places = list(range(len(rows)))
    for (side, column), colour in zip(sides, (REFERENCE, CANDIDATE), strict=False):
        ends = {along: [row[column] for row in rows], beside: places}
        look = {"name": side, "marker": {"color": colour}}
        figure.add_bar(**ends, orientation="h" if drawn.across else None, **look)
    ticks = [label(name, _LABEL_CHARACTERS) for name in names]
    axes = {
        f"{along}axis": {"title_text": drawn.title, "tickformat": drawn.form},
        f"{beside}axis": {"tickvals": places, "ticktext": ticks},
    }
    if drawn.across:
        height = 110 + _BAR_PIXELS * len(rows) * len(drawn.values)
        figure.update_layout(height=height, yaxis_autorange="reversed")
    return figure.update_layout(axes, font_color=_INK)


def summary_figure(summary: Summary) -> go.Figure:
    """The chart that stands with the story of an evaluation."""
    found = {chart.name: chart.figure for chart in charts(summary)}
    figure = next(found[name] for name in MAIN_CHARTS if name in found)
    figure.layout.updatemenus = ()  # whose buttons are light on any ground
    return figure.update_layout(font_color=_INK)
