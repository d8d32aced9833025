"""Figures of an evaluation as charts: each a plotly figure with the table of what it shows.

Nothing here grows with the texts: a summary holds counts in bins of 0.02 nats and a fair sample of
tokens. Whoever cannot see a chart reads its table; whoever exports it gets numbers unrounded.
"""

from __future__ import annotations

from fillmask_ui.evaluation import ModelFigures, Summary
from fillmask_ui.show.charts.chart import Chart, Names
from fillmask_ui.show.charts.groups import calibration, loss_by_group
from fillmask_ui.show.charts.losses import loss_by_kind, loss_distribution, loss_histogram
from fillmask_ui.show.charts.pairs import differences, scatter
from fillmask_ui.show.charts.running import running_mean

__all__ = [
    "Chart",
    "Names",
    "calibration",
    "charts",
    "differences",
    "loss_by_group",
    "loss_by_kind",
    "loss_distribution",
    "loss_histogram",
    "running_mean",
    "scatter",
]


def charts(summary: Summary, *, names: Names = ("model", "baseline")) -> tuple[Chart, ...]:
    """All charts that a summary has the figures for.

    Args:
        summary: of one model, or of two.
        names: what to call the models.
    """
    models = models_of(summary)
    found = [
        loss_histogram(models, names=names),
        loss_distribution(models, names=names),
        loss_by_kind(models, names=names),
        loss_by_group(models, "position", names=names),
        loss_by_group(models, "frequency", names=names),
        loss_by_group(models, "part", names=names),
        calibration(models, names=names),
    ]
    if summary.comparison is not None and summary.comparison.histogram is not None:
        found.append(scatter(summary.points, names=names))
        found.append(differences(summary.comparison, names=names))
    return tuple(found)


def models_of(summary: Summary) -> tuple[ModelFigures, ...]:
    both = (summary.model, summary.baseline)
    return tuple(figures for figures in both if figures is not None)
