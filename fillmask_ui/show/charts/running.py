"""The mean as it settles while texts are measured."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from fillmask_ui.evaluation import MeanSoFar
from fillmask_ui.show.charts.chart import Chart, Names, Table, figure_layout, line, named


def running_mean(history: Sequence[MeanSoFar], *, names: Names = ("model", "baseline")) -> Chart:
    """The mean loss over the texts measured, with its interval narrowing.

    Args:
        history: in the order of the texts, with at least one entry.
        names: what to call the models.
    """
    last = history[-1]
    texts = [entry.texts for entry in history]
    layout = figure_layout(
        f"The mean loss settles: {last.means[0]:.3f} nats after {last.texts:,} texts.",
        "texts measured",
        "mean loss so far (nats)",
        models=len(last.means),
    )
    figure = go.Figure(layout=layout)
    for index, (_, name, colour) in enumerate(named(last.means, names)):
        known = [entry for entry in history if entry.lows[index] is not None]
        figure.add_scatter(
            x=[entry.texts for entry in known] + [entry.texts for entry in reversed(known)],
            y=[entry.highs[index] for entry in known]
            + [entry.lows[index] for entry in reversed(known)],
            fill="toself",
            mode="lines",
            line={"color": colour, "width": 0},
            opacity=0.25,
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=texts,
            y=[entry.means[index] for entry in history],
            mode="lines+markers" if len(history) < 3 else "lines",
            line=line(colour, 2.5),
            name=name,
            hovertemplate="%{y:.4f} nats after %{x:,} texts<extra></extra>",
        )
    # The first texts swing widely; what matters is the end.
    settled = history[len(history) // 4 :]
    values = [v for entry in settled for v in _cells(entry)[1:] if v is not None]
    figure.update_yaxes(range=[min(values) - 0.02, max(values) + 0.02])
    columns = ["texts"]
    for name in names[: len(last.means)]:
        own = "" if len(last.means) == 1 else f", {name}"
        columns += [f"mean loss (nats){own}", f"95 % from{own}", f"95 % to{own}"]
    return Chart(
        "running-mean",
        "The mean as it settles",
        "The band is the 95 % interval, which takes whole texts as the unit.",
        figure,
        Table(tuple(columns), tuple(_cells(entry) for entry in history)),
    )


def _cells(entry: MeanSoFar) -> tuple[int | float | None, ...]:
    models = zip(entry.means, entry.lows, entry.highs, strict=True)
    return (entry.texts, *(value for model in models for value in model))
