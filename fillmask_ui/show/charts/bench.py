"""The works of a benchmark as bars: one chart per work, a bar per subject."""

from __future__ import annotations

from collections.abc import Sequence

from fillmask_ui.bench.report import Report, Row
from fillmask_ui.show.charts.chart import ACCENT, SECOND, Chart, label, new_figure
from fillmask_ui.show.table import Table

_BAR_PIXELS = 34
_LABEL_CHARACTERS = 40


def bench_charts(report: Report) -> tuple[Chart, ...]:
    """A chart per work, in the order of the report."""
    works = dict.fromkeys(row.work for row in report.rows)
    return tuple(
        bench_chart([row for row in report.rows if row.work == work], f"work-{number}")
        for number, work in enumerate(works)
    )


def bench_chart(rows: Sequence[Row], name: str) -> Chart:
    """The median of each subject at one work with its spread; peers have another colour."""
    work, unit = rows[0].work, rows[0].unit
    told = ", ".join(
        f"{row.subject} {'failed' if row.median is None else format(row.median, ',.4g')}"
        for row in rows
    )
    figure = new_figure(
        f"{work} in {unit}: {told}.",
        unit,
        yaxis_type="category",
        yaxis_autorange="reversed",
        height=100 + _BAR_PIXELS * len(rows),
    )
    half = [(row.spread or 0.0) / 2 for row in rows]
    below = [min(own, row.median or 0.0) for own, row in zip(half, rows, strict=True)]
    figure.add_bar(
        x=[row.median for row in rows],
        y=[label(row.subject, _LABEL_CHARACTERS) for row in rows],
        error_x={"array": half, "arrayminus": below, "thickness": 1.2, "width": 3},
        orientation="h",
        marker={"color": [SECOND if row.peer else ACCENT for row in rows]},
        hovertemplate="%{y}: %{x:,.4r} " + unit + "<extra></extra>",
    )
    columns = ("subject", f"median ({unit})", "spread", "loss (nats)", "failed")
    cells = ((row.subject, row.median, row.spread, row.loss, row.error) for row in rows)
    note = "Bars are medians; the line on each is as long as the interquartile range."
    return Chart(figure, Table.of(columns, cells).filled(), name=name, title=work, note=note)
