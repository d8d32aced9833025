"""Figures of an evaluation as charts: each a plotly figure with the table of its numbers.

No chart grows with the texts: a summary holds counts in bins of 0.02 nats and a fair sample of
tokens. A new chart is a function of a `ChartSubject` and a row of `CHARTS`.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from fillmask_ui.evaluation import MeanSoFar, Summary
from fillmask_ui.files import printable
from fillmask_ui.show.charts import loss_charts, slice_charts
from fillmask_ui.show.charts.chart import Chart, ChartSubject
from fillmask_ui.show.figures import Names, roles_of

__all__ = ["CHANGES", "CHARTS", "SLICE_CHARTS", "Chart", "chart_library", "charts", "main_chart"]


@dataclass(frozen=True)
class ChartKind:
    draw: Callable[[ChartSubject], Chart | None]  # None if there is nothing to draw
    title: str
    note: str  # how to read it; `{candidate}` names it, `{sample}` counts points
    live: bool = False  # whether it is drawn while an evaluation runs


# By the name in ids and file names; in the order of the page.
CHARTS = {
    "running-mean": ChartKind(
        loss_charts.running_mean,
        "Mean loss over the texts so far",
        "The band is a provisional 95% interval and may be too narrow; the final interval is "
        "computed once all texts are measured. Both treat whole texts as the unit.",
        live=True,
    ),
    "figure-by-group": ChartKind(
        slice_charts.figure_by_group,
        "Figure by group",
        "The line on a point is its 95% interval; none for fewer than 5 texts.",
    ),
    "change-by-group": ChartKind(
        slice_charts.change_by_group,
        "Change by slice of the texts",
        "Lines are 95% intervals, paired by text. About 1 in 20 lies off zero by chance alone.",
    ),
    "loss-histogram": ChartKind(
        loss_charts.loss_histogram,
        "Loss of a token",
        "Solid line: mean; dotted line: median. The first and last bars include the few tokens "
        "beyond them.",
        live=True,
    ),
    "scatter": ChartKind(
        loss_charts.scatter,
        "Loss of a token under both models",
        "Above the dashed line, {candidate} is worse. A random sample of {sample:,} tokens (at "
        f"most {loss_charts.MAX_POINTS:,}); the table groups it in bands.",
    ),
    "differences": ChartKind(
        loss_charts.differences,
        "Difference of the loss of a token",
        "Right of zero, {candidate} is worse. The first and last bars include all beyond them.",
        live=True,
    ),
    "loss-distribution": ChartKind(
        loss_charts.loss_distribution,
        "Empirical distribution of the loss",
        "A curve further to the left is better. Values are exact to 0.02 nats.",
    ),
    "loss-by-kind": ChartKind(
        loss_charts.loss_by_kind,
        "Loss by what the model saw",
        "The model can read unchanged tokens, so they are easier and lower the mean. "
        f"Each violin is drawn from {loss_charts.VIOLIN_POINTS} quantiles; its box spans the "
        "middle half.",
    ),
    "loss-by-position": ChartKind(
        partial(loss_charts.loss_by_group, split="by_position"),
        "Loss by position in the text",
        "Positions count tokens from 0 and include the special token at the start.",
    ),
    "loss-by-frequency": ChartKind(
        partial(loss_charts.loss_by_group, split="by_frequency"),
        "Loss by frequency of the token",
        "How often the hidden token occurs in the measured texts.",
    ),
    "loss-by-part": ChartKind(
        partial(loss_charts.loss_by_group, split="by_part"),
        "Loss by part of the word",
        "A later sub-token is easier where the beginning of its word can be seen.",
    ),
    "calibration": ChartKind(
        loss_charts.calibration,
        "Calibration",
        "On the line, a model is right as often as it predicts; below, it is overconfident. "
        "Larger points hold more tokens.",
    ),
}

# Stands with the story, with the changes beside it; the others are folded.
MAIN_CHART = "loss-histogram"
CHANGES = "differences"
SLICE_CHARTS = ("change-by-group", "figure-by-group")


def main_chart(summary: Summary) -> str:
    """The name of the chart that says most; of pairs the losses say little."""
    by_group = summary.metric.higher_is_better and summary.model.by_group
    return "figure-by-group" if by_group else MAIN_CHART


def chart_library(*, from_cdn: bool = False) -> str:
    """The script element of plotly.js: the whole library, or a link to plotly's server."""
    from plotly.offline import get_plotlyjs, get_plotlyjs_version

    code = str(get_plotlyjs())
    if not from_cdn:
        return f"<script>{code}</script>"
    address = f"https://cdn.plot.ly/plotly-{get_plotlyjs_version()}.min.js"
    digest = b64encode(sha256(code.encode()).digest()).decode()
    return f'<script src="{address}" integrity="sha256-{digest}" crossorigin="anonymous"></script>'


def charts(
    summary: Summary, *, names: Names = (), history: Sequence[MeanSoFar] = (), live: bool = False
) -> tuple[Chart, ...]:
    """All charts that there are figures for; `live` ones while an evaluation runs.

    `names` are of the model, or of reference and candidate; `history` is the mean after more texts.
    """
    names = tuple(map(printable, names or roles_of(summary)))  # plotly takes UTF-8 alone
    subject = ChartSubject(summary, names, history)
    sample = min(summary.points.shape[1], loss_charts.MAX_POINTS)
    drawn_charts = []
    for name, kind in CHARTS.items():
        if (kind.live or not live) and (drawn := kind.draw(subject)):
            note = kind.note.format(candidate=names[-1], sample=sample)
            drawn_charts.append(replace(drawn, name=name, title=kind.title, note=note))
    return tuple(drawn_charts)
