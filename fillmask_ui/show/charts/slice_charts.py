"""Charts of slices of the texts: the metric's figure of each, and how it changes."""

from collections.abc import Sequence
from typing import Any

import fillmask_ui.show.charts.chart as chart
from fillmask_ui.evaluation.catalogue import TEXT_SPLITS
from fillmask_ui.evaluation.summary import GroupChange
from fillmask_ui.show.charts.chart import Chart, ChartSubject, new_figure
from fillmask_ui.show.numbers import is_zero, signed_percent
from fillmask_ui.show.slice_tables import text_slices_table

_ROW_PIXELS = 44


def figure_by_group(subject: ChartSubject) -> Chart | None:
    """The metric's figure of each group of the texts, with its interval; None without a column."""
    groups = subject.models[-1].by_group
    if not groups:
        return None
    metric = subject.summary.metric_figure
    names = [group.name for group in groups]
    told = ", ".join(f"{group.name} {group.value:.3g}" for group in groups)
    axis = {"range": [0, 1.03], "tickformat": ",.0%"} if metric.share else {}
    figure = subject.figure(
        f"{metric.name.capitalize()} by group: {told}",
        metric.label,
        **rows_layout(names),
        xaxis=axis,
    )
    if metric.share:  # of pairs, where guessing gets half
        figure.add_vline(x=0.5, line={"color": chart.MUTED, "width": 1, "dash": "dash"})
    for index, (model, style) in enumerate(subject.drawn):
        values = [group.value for group in model.by_group]
        spans = [group.interval for group in model.by_group]
        shift = 0.12 - 0.24 * index if subject.two else 0.0  # not one on another
        figure.add_scatter(
            x=values,
            y=[len(names) - 1 - at + shift for at in range(len(names))],
            error_x=chart.whiskers(values, spans, style.colour),
            mode="markers",
            marker={"color": style.colour, "size": 9},
            name=style.name,
            customdata=[[group.name, group.texts] for group in model.by_group],
            hovertemplate="%{customdata[0]}: %{x} of %{customdata[1]:,}<extra></extra>",
        )
    return Chart(figure, text_slices_table(subject.summary, ("by_group",)))


def change_by_group(subject: ChartSubject) -> Chart | None:
    """Bars of the change in each group of the texts, or by their length; None for one model."""
    pair = subject.summary.comparison
    if pair is None:
        return None
    split = "by_group" if pair.by_group else "by_length"
    changes = sorted(
        (change for change in getattr(pair, split) if change.relative_change_interval),
        key=lambda change: -abs(change.relative_change),
    )
    if not changes:
        return None
    told = (f"{change.name} {signed_percent(change.relative_change)}" for change in changes)
    figure = new_figure(
        f"Change by {TEXT_SPLITS[split]}: {', '.join(told)}",
        f"change of the {subject.summary.metric_figure.name}",
        None if pair.by_group else TEXT_SPLITS[split],
        **rows_layout([change.name for change in changes]),
        xaxis={"tickformat": "+.2%"},
    )
    lower_is_worse = subject.summary.metric.higher_is_better
    values = [_printed(change) for change in changes]
    spans = [change.relative_change_interval for change in changes]
    figure.add_bar(
        x=values,
        y=[len(changes) - 1 - at for at in range(len(changes))],
        orientation="h",
        width=0.55,
        error_x=chart.whiskers(values, spans, chart.MUTED),
        # In the colour of the model that did worse.
        marker={
            "color": [
                chart.CANDIDATE if (value < 0) == lower_is_worse else chart.REFERENCE
                for value in values
            ]
        },
        customdata=[change.name for change in changes],
        hovertemplate="%{customdata}: %{x:+.2%}<extra></extra>",
    )
    figure.add_vline(x=0, line={"color": chart.MUTED, "width": 1})
    return Chart(figure, text_slices_table(subject.summary, (split,)))


def _printed(change: GroupChange) -> float:
    """Equal as printed is equal."""
    return 0.0 if is_zero(change.relative_change, 4) else change.relative_change


def rows_layout(names: Sequence[str]) -> dict[str, Any]:
    """The layout of a row per name, the first at the top."""
    return {
        "height": 120 + _ROW_PIXELS * len(names),
        "yaxis": {
            "tickvals": [*range(len(names))],
            "ticktext": [chart.label(name, 28) for name in reversed(names)],
            "range": [-0.5, len(names) - 0.5],
        },
    }
