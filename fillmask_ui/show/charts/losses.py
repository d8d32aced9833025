"""Charts of the loss of single tokens under one model or two, most of a histogram's fine bins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fillmask_ui.evaluation.summary import Histogram
from fillmask_ui.show.charts.chart import ACCENT, MUTED, SECOND, Chart, Subject, new_figure
from fillmask_ui.show.figures import Names, groups_table, headings
from fillmask_ui.show.table import Table

MAX_BARS = 50
# Bars have one of these widths, all multiples of the fine bins' 0.02 nats.
BAR_NATS = (0.1, 0.2, 0.5, 1.0)
MAX_STEPS = 500
# Quantiles that stand for a distribution in a violin.
VIOLIN_POINTS = 400
# Points of a scatter plot.
MAX_POINTS = 2000
_BANDS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf)
_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# A logarithmic axis shows the few tokens with a large loss.
_AXES = (("linear", "tokens"), ("log", "tokens (log scale)"))


@dataclass(frozen=True, eq=False)
class Bars:
    """Bins of equal width; the first and last hold all that lies beyond."""

    edges: np.ndarray  # float64 [bars + 1], in nats
    counts: list[np.ndarray]  # int64 [bars], one per histogram

    def places(self) -> dict[str, Any]:
        """Where plotly draws the bars, and what it calls each."""
        return {
            "x": (self.edges[:-1] + self.edges[1:]) / 2,
            "width": np.diff(self.edges),
            "hovertext": [f"{low:.6g} to {high:.6g}" for low, high in pairwise(self.edges)],
            "hovertemplate": "%{hovertext} nats: %{y:,} tokens<extra></extra>",
        }

    def ranges(self) -> list[str]:
        """`from:to` of what each bar counts of the losses, which begin at 0; the last is open.

        >>> Bars(np.array([0.5, 1.0, 1.5]), []).ranges()
        ['0:1', '1:']
        """
        inner = [f"{edge:.6g}" for edge in self.edges[1:-1]]
        return [f"{low}:{high}" for low, high in pairwise(["0", *inner, ""])]

    def table(self, names: Names) -> Table:
        """A row per bar; for each histogram its count, and the share of all up to this bar."""
        columns = [self.edges[:-1], self.edges[1:]]
        for counts in self.counts:
            columns += [counts, np.cumsum(counts) / counts.sum()]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        own = headings(["tokens", "share up to here"], names)
        return Table.of(("from (nats)", "to (nats)", *own), rows)


def bars_of(histograms: Sequence[Histogram]) -> Bars:
    """Fine bins gathered to at most `MAX_BARS` that hold 99.8 % of the tokens."""
    fine = histograms[0].edges
    low = min(histogram.quantile(0.001) for histogram in histograms)
    high = max(histogram.quantile(0.999) for histogram in histograms)
    width = next((w for w in BAR_NATS if (high - low) / w <= MAX_BARS - 2), BAR_NATS[-1])
    # Edges are multiples of the width, so that zero is one of them where there are differences.
    least, most = np.round(fine[[0, -1]] / width)
    first = min(max(np.floor(low / width), least), most - 1)
    last = min(max(np.ceil(high / width), first + 1), most)
    edges = np.round(np.arange(first, last + 1) * width, 9)
    # What lies beyond the outer edges goes to the outer bars.
    inner = np.round((edges[1:-1] - fine[0]) / (fine[1] - fine[0])).astype(int)
    starts = np.concatenate([[0], inner])
    return Bars(edges, [np.add.reduceat(histogram.total, starts) for histogram in histograms])


def loss_histogram(subject: Subject) -> Chart:
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
        centres = {"mean": (model.mean_nll_nats, "solid"), "median": (model.median_nll_nats, "dot")}
        for what, (value, dash) in centres.items():
            line = {"color": colour, "width": 2, "dash": dash}
            figure.add_vline(value, line=line, showlegend=True, name=f"{own}{what} {value:.3f}")
    return Chart(figure, bars.table(subject.names))


def loss_distribution(subject: Subject) -> Chart:
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
            x=np.append(0.0, model.histogram.edges[kept + 1]),
            y=np.append(0.0, share[kept]),
            mode="lines",
            **style.trace(2.5),
            hovertemplate="%{y:.1%} at most %{x:.2f} nats<extra></extra>",
        )
    columns = headings(["loss at most (nats)"], subject.names)
    rows = ((q, *(model.histogram.quantile(q) for model in subject.models)) for q in _LEVELS)
    return Chart(figure, Table.of(("share of tokens", *columns), rows))


def loss_by_kind(subject: Subject) -> Chart:
    """Violins of the loss of tokens that the model saw masked, replaced or unchanged."""
    kinds = subject.models[0].by_kind
    means = (f"{group.name} mean {group.mean_nll_nats:.3f}" for group in kinds)
    figure = new_figure(
        f"Violins of the loss by what the model saw: {', '.join(means)} nats.",
        y="loss of a token (nats)",
        legend=subject.two,
        violinmode="overlay",
        violingap=0.2,
        xaxis_range=[-0.6, len(kinds) - 0.4],  # plotly's own range cuts the outer halves off
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
    return Chart(figure, groups_table(subject.models, "by_kind", subject.names))


def scatter(subject: Subject) -> Chart | None:
    """The loss of each token under one model against its loss under the other."""
    # A fair sample in random order: the first of it are one as well.
    drawn = subject.summary.points[:, :MAX_POINTS]
    if len(drawn) < 2:
        return None
    first, second = subject.names
    end = float(drawn.max()) * 1.03
    worse = float((drawn[0] > drawn[1]).mean())
    figure = new_figure(
        f"Scatter of the losses of {drawn.shape[1]:,} tokens under both models; "
        f"{worse:.0%} lie below the diagonal, where {first} is worse.",
        f"loss under {first} (nats)",
        f"loss under {second} (nats)",
        diagonal=end,
        xaxis_range=[-end / 60, end],
        yaxis_range=[-end / 60, end],
    )
    figure.add_scatter(
        x=drawn[0],
        y=drawn[1],
        mode="markers",
        marker={"color": ACCENT, "size": 5, "opacity": 0.45},
        hovertemplate="%{x:.3f} and %{y:.3f} nats<extra></extra>",
    )
    columns = (
        *(f"loss from, {first} (nats)", "to (nats)", "tokens of the sample"),
        *(f"mean loss, {first} (nats)", f"mean loss, {second} (nats)"),
        f"share where {first} is worse",
    )
    rows = []
    for low, high in pairwise(_BANDS):  # of the first model's loss; the last has no upper end
        own, other = drawn[:, (drawn[0] >= low) & (drawn[0] < high)]
        if len(own):
            means = (float(own.mean()), float(other.mean()), float((own > other).mean()))
            rows.append((low, high if math.isfinite(high) else None, len(own), *means))
    return Chart(figure, Table.of(columns, rows))


def differences(subject: Subject) -> Chart | None:
    """How much larger the loss of a token is under the first model, as a histogram."""
    pair = subject.summary.comparison
    if pair is None or pair.histogram is None:  # by character there are no pairs of tokens
        return None
    first, second = subject.names
    bars, mean = bars_of([pair.histogram]), pair.difference_nats
    figure = new_figure(
        f"Histogram of the difference of the loss of a token, {first} less {second}; "
        f"mean {mean:+.4f} nats.",
        f"loss under {first} less loss under {second} (nats)",
        "tokens",
        legend=True,
        bargap=0.06,
        yaxis_rangemode="tozero",
    )
    # Half of a bar's tokens may be exactly 0: a bar holds its left edge.
    colours = [SECOND if left >= 0 else ACCENT for left in bars.edges[:-1]]
    figure.add_bar(**bars.places(), y=bars.counts[0], marker={"color": colours}, showlegend=False)
    line = {"color": MUTED, "width": 2}
    figure.add_vline(mean, line=line, showlegend=True, name=f"mean {mean:+.4f}")
    return Chart(figure, bars.table(subject.names[:1]))
