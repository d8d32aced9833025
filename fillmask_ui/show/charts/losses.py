"""Charts of the loss of single tokens: histogram, distribution function, violins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from fillmask_ui.evaluation import ModelFigures
from fillmask_ui.evaluation.summary import Histogram
from fillmask_ui.show.charts.bins import bars_of
from fillmask_ui.show.charts.chart import (
    Chart,
    Names,
    Table,
    add_legend,
    figure_layout,
    headings,
    line,
    named,
    table_rows,
)
from fillmask_ui.show.charts.explore import SECOND
from fillmask_ui.show.charts.groups import group_table

MAX_STEPS = 500
# Quantiles that stand for a distribution in a violin.
VIOLIN_POINTS = 400


def loss_histogram(
    models: Sequence[ModelFigures], *, names: Names = ("model", "baseline"), log: bool = False
) -> Chart:
    """How many tokens have which loss, with the mean and the median.

    Args:
        models: one or two.
        names: what to call them.
        log: counts on a logarithmic axis, which shows the few tokens with a large loss.
    """
    bars = bars_of([figures.histogram for figures in models])
    low, high = bars.edges[:-1], bars.edges[1:]
    first = models[0]
    layout = figure_layout(
        f"Histogram of the loss of {first.tokens:,} tokens; mean {first.mean_nll_nats:.3f}, "
        f"median {first.median_nll_nats:.3f} nats.",
        "loss of a token (nats)",
        "tokens (log scale)" if log else "tokens",
    )
    add_legend(layout)
    layout["yaxis"] |= {"type": "log"} if log else {"rangemode": "tozero"}
    layout |= {"barmode": "overlay", "bargap": 0.06, "dragmode": "select", "selectdirection": "h"}
    layout["modebar"] = {"remove": ["lasso2d", "select2d"]}
    figure = go.Figure(layout=layout)
    for (figures, name, colour), counts in zip(named(models, names), bars.counts, strict=True):
        figure.add_bar(
            x=(low + high) / 2,
            y=counts,
            width=high - low,
            name=name,
            marker={"color": colour, "opacity": 0.85 if len(models) == 1 else 0.55},
            unselected={"marker": {"opacity": 0.2}},
            showlegend=len(models) > 1,
            customdata=_ranges(low, high),
            hovertext=[f"{a:.6g} to {b:.6g}" for a, b in zip(low, high, strict=True)],
            hovertemplate="%{hovertext} nats: %{y:,} tokens<extra></extra>",
        )
        own = "" if len(models) == 1 else f"{name}: "
        for what, value, dash in (
            ("mean", figures.mean_nll_nats, "solid"),
            ("median", figures.median_nll_nats, "dot"),
        ):
            figure.add_shape(
                type="line",
                x0=value,
                x1=value,
                y0=0,
                y1=1,
                yref="paper",
                line={"color": SECOND if len(models) == 1 else colour, "width": 2, "dash": dash},
                showlegend=True,
                name=f"{own}{what} {value:.3f}",
            )
    shares = [np.cumsum(counts) / counts.sum() for counts in bars.counts]
    columns = [
        *("from (nats)", "to (nats)"),
        *headings("tokens", names, len(models)),
        *headings("share up to here", names, len(models)),
    ]
    return Chart(
        "loss-histogram",
        "Loss of a token",
        "The first and last bar also hold the few tokens that lie beyond.",
        figure,
        Table(tuple(columns), table_rows(low, high, *bars.counts, *shares)),
    )


def _ranges(low: np.ndarray, high: np.ndarray) -> list[str]:
    """`from:to` of the losses that each bar counts; the last one ends nowhere.

    Args:
        low: float64 [bars], where each begins, in nats.
        high: where each ends.

    >>> _ranges(np.array([0.5, 1.0]), np.array([1.0, 1.5]))
    ['0:1', '1:']
    """
    starts, ends = [f"{a:.6g}" for a in low], [f"{b:.6g}" for b in high]
    starts[0], ends[-1] = "0", ""
    return [f"{a}:{b}" for a, b in zip(starts, ends, strict=True)]


def loss_distribution(
    models: Sequence[ModelFigures], *, names: Names = ("model", "baseline")
) -> Chart:
    """The empirical distribution function: which share of the tokens has at most this loss."""
    layout = figure_layout(
        "Share of tokens whose loss is at most a value: half of them at most "
        f"{models[0].median_nll_nats:.3f} nats.",
        "loss of a token (nats)",
        "share of tokens with at most this loss",
        models=len(models),
    )
    layout["yaxis"] |= {"range": [0, 1.01], "tickformat": ",.0%"}
    figure = go.Figure(layout=layout)
    for figures, name, colour in named(models, names):
        total = figures.histogram.total
        share = np.cumsum(total) / total.sum()
        end = int(np.searchsorted(share, 1 - 1e-12)) + 1
        kept = np.unique(np.linspace(0, end - 1, min(end, MAX_STEPS)).round().astype(int))
        figure.add_scatter(
            x=np.concatenate([[0.0], figures.histogram.edges[kept + 1]]),
            y=np.concatenate([[0.0], share[kept]]),
            mode="lines",
            line=line(colour, 2.5),
            name=name,
            hovertemplate="%{y:.1%} at most %{x:.2f} nats<extra></extra>",
        )
    levels = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
    quantiles = [np.array([m.histogram.quantile(q) for q in levels]) for m in models]
    return Chart(
        "loss-distribution",
        "Empirical distribution of the loss",
        "A curve further to the left is better; values are exact to 0.02 nats.",
        figure,
        Table(
            ("share of tokens", *headings("loss at most (nats)", names, len(models))),
            table_rows(np.array(levels), *quantiles),
        ),
    )


def loss_by_kind(models: Sequence[ModelFigures], *, names: Names = ("model", "baseline")) -> Chart:
    """Violins of the loss of tokens that the model saw masked, replaced or unchanged."""
    layout = figure_layout(
        "Violins of the loss by what the model saw: "
        + ", ".join(f"{g.name} mean {g.mean_nll_nats:.3f}" for g in models[0].by_kind)
        + " nats.",
        "",
        "loss of a token (nats)",
        models=len(models),
    )
    layout |= {"violinmode": "overlay", "violingap": 0.2}
    layout["yaxis"]["rangemode"] = "tozero"
    layout["margin"]["b"] = 32
    figure = go.Figure(layout=layout)
    for side, (figures, name, colour) in zip(
        ("negative", "positive"), named(models, names), strict=False
    ):
        for group in figures.by_kind:
            own = Histogram(
                figures.histogram.edges, {group.name: figures.histogram.counts[group.name]}
            )
            count = min(group.tokens, VIOLIN_POINTS)
            figure.add_violin(
                x=[group.name] * count,
                y=[own.quantile((place + 0.5) / count) for place in range(count)],
                side=side if len(models) > 1 else "both",
                name=name,
                legendgroup=name,
                scalegroup=f"{name} {group.name}",
                showlegend=len(models) > 1 and group is figures.by_kind[0],
                line={"color": colour, "width": 1.5},
                box={"visible": True, "width": 0.12},
                meanline={"visible": False},
                points=False,
                spanmode="hard",
                scalemode="width",
                hoverinfo="skip",
            )
    return Chart(
        "loss-by-kind",
        "Loss by what the model saw",
        "Unchanged tokens stand before the model's eyes and are easier: they flatter the mean. "
        f"Each violin is drawn from {VIOLIN_POINTS} quantiles; its box spans the middle half.",
        figure,
        group_table("the model saw", models, "kind", names),
    )
