"""Charts of the loss of single tokens: histogram, distribution function, violins."""

from __future__ import annotations

import numpy as np

from fillmask_ui.evaluation.summary import Histogram
from fillmask_ui.show.charts.bins import bars_of
from fillmask_ui.show.charts.chart import SECOND, Drawing, Subject, new_figure
from fillmask_ui.show.figures import Table, groups_table, headings

MAX_STEPS = 500
# Quantiles that stand for a distribution in a violin.
VIOLIN_POINTS = 400
_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# A logarithmic axis shows the few tokens with a large loss.
_AXES = (("linear", "tokens"), ("log", "tokens (log scale)"))


def loss_histogram(subject: Subject) -> Drawing:
    """How many tokens have which loss, with the mean and the median; buttons switch the axis."""
    first, two = subject.models[0], subject.two
    bars = bars_of([model.histogram for model in subject.models])
    buttons = [
        {"label": kind, "method": "relayout", "args": [{"yaxis.type": kind, "yaxis.title.text": y}]}
        for kind, y in _AXES
    ]
    # In the corner where bars are low: above the chart stands the legend.
    places = {"x": 1, "xanchor": "right", "y": 1, "yanchor": "top", "pad": {"t": 4}}
    menu = {"type": "buttons", "direction": "right", "buttons": buttons, "bgcolor": "rgba(0,0,0,0)"}
    figure = new_figure(
        f"Histogram of the loss of {first.tokens:,} tokens; mean {first.mean_nll_nats:.3f}, "
        f"median {first.median_nll_nats:.3f} nats.",
        "loss of a token (nats)",
        "tokens",
        legend=True,
        barmode="overlay",
        bargap=0.06,
        dragmode="select",
        selectdirection="h",
        modebar_remove=["lasso2d", "select2d"],
        yaxis_rangemode="tozero",
        updatemenus=[{**menu, **places}],
    )
    for model, style, counts in zip(subject.models, subject.styles, bars.counts, strict=True):
        figure.add_bar(
            **bars.places(),
            y=counts,
            name=style.name,
            marker={"color": style.colour, "opacity": 0.55 if two else 0.85},
            unselected={"marker": {"opacity": 0.2}},
            showlegend=two,
            customdata=bars.ranges(),
        )
        colour, own = (style.colour, f"{style.name}: ") if two else (SECOND, "")
        for what, value, dash in (
            ("mean", model.mean_nll_nats, "solid"),
            ("median", model.median_nll_nats, "dot"),
        ):
            line = {"color": colour, "width": 2, "dash": dash}
            figure.add_vline(value, line=line, showlegend=True, name=f"{own}{what} {value:.3f}")
    return Drawing(figure, bars.table(subject.names))


def loss_distribution(subject: Subject) -> Drawing:
    """The empirical distribution function: which share of the tokens has at most this loss."""
    figure = new_figure(
        "Share of tokens whose loss is at most a value: half of them at most "
        f"{subject.models[0].median_nll_nats:.3f} nats.",
        "loss of a token (nats)",
        "share of tokens with at most this loss",
        legend=subject.two,
        yaxis_range=[0, 1.01],
        yaxis_tickformat=",.0%",
    )
    for model, style in zip(subject.models, subject.styles, strict=True):
        share = np.cumsum(model.histogram.total) / model.tokens
        end = int(np.searchsorted(share, 1 - 1e-12))
        kept = np.unique(np.linspace(0, end, min(end + 1, MAX_STEPS)).round().astype(int))
        figure.add_scatter(
            x=np.concatenate([[0.0], model.histogram.edges[kept + 1]]),
            y=np.concatenate([[0.0], share[kept]]),
            mode="lines",
            **style.trace(2.5),
            hovertemplate="%{y:.1%} at most %{x:.2f} nats<extra></extra>",
        )
    columns = headings(["loss at most (nats)"], subject.names, len(subject.models))
    rows = ((q, *(model.histogram.quantile(q) for model in subject.models)) for q in _LEVELS)
    return Drawing(figure, Table(("share of tokens", *columns), tuple(rows)))


def loss_by_kind(subject: Subject) -> Drawing:
    """Violins of the loss of tokens that the model saw masked, replaced or unchanged."""
    means = (f"{g.name} mean {g.mean_nll_nats:.3f}" for g in subject.models[0].by_kind)
    figure = new_figure(
        f"Violins of the loss by what the model saw: {', '.join(means)} nats.",
        y="loss of a token (nats)",
        legend=subject.two,
        violinmode="overlay",
        violingap=0.2,
        # Plotly's own range cuts the outer halves off.
        xaxis_range=[-0.6, len(subject.models[0].by_kind) - 0.4],
        yaxis_rangemode="tozero",
        margin_b=32,
    )
    sides = ("negative", "positive") if subject.two else ("both",)
    for side, model, style in zip(sides, subject.models, subject.styles, strict=True):
        for group in model.by_kind:
            own = Histogram(model.histogram.edges, {"": model.histogram.counts[group.name]})
            count = min(group.tokens, VIOLIN_POINTS)
            figure.add_violin(
                x=[group.name] * count,
                y=[own.quantile((place + 0.5) / count) for place in range(count)],
                side=side,
                name=style.name,
                legendgroup=style.name,
                scalegroup=f"{style.name} {group.name}",
                showlegend=subject.two and group is model.by_kind[0],
                line={"color": style.colour, "width": 1.5},
                box={"visible": True, "width": 0.12},
                points=False,
                spanmode="hard",
                scalemode="width",
                hoverinfo="skip",
            )
    return Drawing(figure, groups_table(subject.models, "by_kind", subject.names))
