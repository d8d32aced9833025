"""A chart of several runs over the same texts."""

from collections.abc import Sequence

import fillmask_ui.show.charts.chart as chart
from fillmask_ui.runs.listed import RunBeside
from fillmask_ui.show.charts.chart import Chart, new_figure
from fillmask_ui.show.charts.slice_charts import rows_layout
from fillmask_ui.show.run_tables import beside_table, labels_of


def runs_chart(runs: Sequence[RunBeside]) -> Chart:
    """The figure of each run with its interval, a row each, the reference at the top."""
    metric = runs[0].summary.metric_figure
    names = labels_of(runs)
    values = [run.summary.model.metric for run in runs]
    told = ", ".join(f"{name} {value:.4g}" for name, value in zip(names, values, strict=True))
    figure = new_figure(
        f"{metric.label} of {len(runs)} runs: {told}",
        metric.label,
        **rows_layout(names),
        xaxis={"tickformat": ",.0%"} if metric.share else {},
    )
    figure.add_vline(x=values[0], line={"color": chart.MUTED, "width": 1, "dash": "dash"})
    for index, run in enumerate(runs):
        colour = chart.CANDIDATE if index else chart.REFERENCE
        figure.add_scatter(
            x=[values[index]],
            y=[len(runs) - 1 - index],
            error_x=chart.whiskers(
                [values[index]], [run.summary.model.metric_interval], colour, width=6
            ),
            mode="markers",
            marker={"color": colour, "size": 11},
            showlegend=False,
            name=names[index],
            hovertemplate=f"%{{x:.4f}} on {run.summary.texts:,} texts<extra></extra>",
        )
    return Chart(
        figure,
        beside_table(runs),
        name="runs",
        title="Runs beside each other",
        note="Lines are 95% intervals over texts. The dashed line is the reference, the first run. "
        "The intervals of two runs may overlap although the paired change, in the table, is seen.",
    )
