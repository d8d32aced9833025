"""Charts of the loss: of single tokens, of groups of them, as it settles, and of calibration."""

import math
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

import fillmask_ui.show.charts.chart as chart
import fillmask_ui.show.figures as figures
from fillmask_ui.evaluation.catalogue import SPLITS
from fillmask_ui.evaluation.summary import CALIBRATION_FIGURES, Histogram
from fillmask_ui.intervals import Estimate
from fillmask_ui.show.charts.chart import Chart, ChartSubject, new_figure
from fillmask_ui.show.numbers import is_zero, signed
from fillmask_ui.show.table import Table

MAX_BARS = 50
BAR_NATS = (0.1, 0.2, 0.5, 1.0)  # widths of bars, multiples of the fine bins' 0.02 nats
MAX_STEPS = 500
VIOLIN_POINTS = 400  # quantiles that stand for a distribution
MAX_POINTS = 2000  # of a scatter plot
_BANDS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf)
_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# A logarithmic axis shows the few tokens with a large loss.
_AXES = (("linear", "tokens"), ("log", "tokens (log scale)"))


def _gathered(histograms: Sequence[Histogram]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Fine bins gathered to at most `MAX_BARS` of equal width that hold 99.8% of the tokens.

    Edges in nats, float64 [bars + 1], and the counts of each histogram, int64 [bars]; the first and
    last bar hold all that lies beyond.
    """
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
    return edges, [np.add.reduceat(histogram.total, starts) for histogram in histograms]


def _bars(edges: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    return {
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": counts,
        "width": np.diff(edges),
        "hovertext": [f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges)],
        "hovertemplate": "%{hovertext} nats: %{y:,} tokens<extra></extra>",
    }


def _bars_table(edges: np.ndarray, every: Sequence[np.ndarray], names: figures.Names) -> Table:
    """A row per bar: for each histogram its count and the share of all up to this bar."""
    shares = ((counts, np.cumsum(counts) / counts.sum()) for counts in every)
    columns = (edges[:-1], edges[1:], *chain(*shares))
    headings = figures.headings(["tokens", "share up to here"], names)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return Table.of(("from (nats)", "to (nats)", *headings), rows)


def loss_histogram(subject: ChartSubject) -> Chart:
    """Histogram of the loss with mean and median; buttons switch the axis of counts."""
    first, two = subject.models[0], subject.two
    edges, every = _gathered([model.histogram for model in subject.models])
    # What each bar counts of the losses, which begin at 0, as `from:to`; the last is open.
    ranges = [
        f"{low}:{high}" for low, high in pairwise(["0", *map("{:.6g}".format, edges[1:-1]), ""])
    ]
    buttons = [
        {"label": kind, "method": "relayout", "args": [{"yaxis.type": kind, "yaxis.title.text": y}]}
        for kind, y in _AXES
    ]
    # In the corner where bars are low.
    corner = {"x": 1, "xanchor": "right", "y": 1, "yanchor": "top", "pad": {"t": 4}}
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
        updatemenus=[menu | corner],
    )
    for (model, style), counts in zip(subject.drawn, every, strict=True):
        mean, median = model.mean_nll_nats, model.median_nll_nats
        # Of two models the candidate is drawn as an outline, through which the reference is seen.
        outlined = two and model is subject.models[1]
        figure.add_bar(
            **_bars(edges, counts),
            name=f"{style.name}: mean {mean:.3f}, median {median:.3f}",
            marker={
                "color": "rgba(0,0,0,0)" if outlined else style.colour,
                "opacity": 1.0 if outlined else 0.7 if two else 0.85,
                "line": {"color": style.colour, "width": 2 * outlined},
            },
            unselected={"marker": {"opacity": 0.2}},
            showlegend=two,
            customdata=ranges,
        )
        for average, value, dash in (("mean", mean, "solid"), ("median", median, "dot")):
            line = {"color": style.colour if two else chart.LOSS, "width": 2, "dash": dash}
            figure.add_vline(value, line=line, showlegend=not two, name=f"{average} {value:.3f}")
    return Chart(figure, _bars_table(edges, every, subject.names))


def loss_distribution(subject: ChartSubject) -> Chart:
    """The empirical distribution function of the loss."""
    figure = subject.figure(
        "Share of tokens whose loss is at most a value: half of them at most "
        f"{subject.models[0].median_nll_nats:.3f} nats.",
        "loss of a token (nats)",
        "share of tokens with at most this loss",
        yaxis_range=[0, 1.01],
        yaxis_tickformat=",.0%",
    )
    for model, style in subject.drawn:
        share = np.cumsum(model.histogram.total) / model.tokens
        last = int(np.searchsorted(share, 1 - 1e-12))
        steps = np.unique(np.linspace(0, last, min(last + 1, MAX_STEPS)).round().astype(int))
        figure.add_scatter(
            x=np.append(0.0, model.histogram.edges[steps + 1]),
            y=np.append(0.0, share[steps]),
            mode="lines",
            **style.trace(2.5),
            hovertemplate="%{y:.1%} at most %{x:.2f} nats<extra></extra>",
        )
    columns = figures.headings(["loss at most (nats)"], subject.names)
    rows = ((q, *(model.histogram.quantile(q) for model in subject.models)) for q in _LEVELS)
    return Chart(figure, Table.of(("share of tokens", *columns), rows))


def loss_by_kind(subject: ChartSubject) -> Chart:
    """Violins of the loss of tokens that the model saw masked, replaced or unchanged."""
    kinds = subject.models[0].by_kind
    means = (f"{group.name} mean {group.mean_nll_nats:.3f}" for group in kinds)
    figure = subject.figure(
        f"Violins of the loss by what the model saw: {', '.join(means)} nats.",
        y="loss of a token (nats)",
        violinmode="overlay",
        violingap=0.2,
        xaxis_range=[-0.6, len(kinds) - 0.4],  # plotly's own range cuts the outer halves off
        yaxis_rangemode="tozero",
        margin_b=32,
    )
    halves = ("negative", "positive") if subject.two else ("both",)
    for half, (model, style) in zip(halves, subject.drawn, strict=True):
        for group in model.by_kind:
            histogram = Histogram(model.histogram.edges, {"": model.histogram.counts[group.name]})
            count = min(group.tokens, VIOLIN_POINTS)
            figure.add_violin(
                x=[group.name] * count,
                y=[histogram.quantile((point + 0.5) / count) for point in range(count)],
                side=half,
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
    return Chart(figure, figures.groups_table(subject.models, "by_kind", subject.names))


def scatter(subject: ChartSubject) -> Chart | None:
    """The loss of each token under the candidate against its loss under the reference."""
    # A fair sample in random order: the first of it are one as well.
    points = subject.summary.points[:, :MAX_POINTS]
    if len(points) < 2:
        return None
    reference, candidate = subject.names
    candidate_losses, reference_losses = points
    worse = np.round(candidate_losses - reference_losses, 3) > 0  # equal as printed is equal
    longest = float(points.max()) * 1.03
    figure = new_figure(
        f"Scatter of the losses of {len(worse):,} tokens under both models; "
        f"{float(worse.mean()):.0%} lie above the diagonal, where {candidate} is worse.",
        f"loss under {reference} (nats)",
        f"loss under {candidate} (nats)",
        diagonal=longest,
        xaxis_range=[-longest / 60, longest],
        yaxis_range=[-longest / 60, longest],
    )
    figure.add_scatter(
        x=reference_losses,
        y=candidate_losses,
        mode="markers",
        marker={"color": chart.CANDIDATE, "size": 5, "opacity": 0.45},
        hovertemplate="%{x:.3f} and %{y:.3f} nats<extra></extra>",
    )
    columns = (
        *(f"loss from, {reference} (nats)", "to (nats)", "tokens of the sample"),
        *(f"mean loss, {reference} (nats)", f"mean loss, {candidate} (nats)"),
        f"share where {candidate} is worse",
    )
    rows = []
    for low, high in pairwise(_BANDS):  # of the reference's loss; the last has no upper end
        inside = (reference_losses >= low) & (reference_losses < high)
        if inside.any():
            means = [
                values[inside].mean() for values in (reference_losses, candidate_losses, worse)
            ]
            upper = high if math.isfinite(high) else None
            rows.append((low, upper, int(inside.sum()), *map(float, means)))
    return Chart(figure, Table.of(columns, rows))


def differences(subject: ChartSubject) -> Chart | None:
    """Histogram of the candidate's loss of a token less the reference's; None if all are equal."""
    pair = subject.summary.comparison
    if pair is None or pair.histogram is None:  # by character there are no pairs of tokens
        return None
    changes = [token.difference_nats or 0.0 for token in subject.summary.most_different]
    if changes and all(is_zero(change, 2) for change in changes):
        return None
    reference, candidate = subject.names
    (edges, every), mean = _gathered([pair.histogram]), pair.difference_nats
    figure = new_figure(
        f"Histogram of the difference of the loss of a token, {candidate} less {reference}; "
        f"mean {signed(mean, 4)} nats.",
        f"{candidate} − {reference} loss (nats)",
        "tokens",
        legend=True,
        bargap=0.06,
        yaxis_rangemode="tozero",
    )
    # In the colour of the model that lost more. Half of a bar's tokens may be exactly 0: a bar
    # holds its left edge.
    colours = [chart.CANDIDATE if left >= 0 else chart.REFERENCE for left in edges[:-1]]
    figure.add_bar(**_bars(edges, *every), marker={"color": colours}, showlegend=False)
    line = {"color": chart.MUTED, "width": 2}
    figure.add_vline(mean, line=line, showlegend=True, name=f"mean {signed(mean, 4)}")
    return Chart(figure, _bars_table(edges, every, subject.names[1:]))


def loss_by_group(subject: ChartSubject, split: str) -> Chart:
    """Mean loss of each group of tokens of a split, with its interval."""
    groups = getattr(subject.models[0], split)
    figure = subject.figure(
        f"Mean loss by {SPLITS[split]}: {groups[0].name} {groups[0].mean_nll_nats:.3f}, "
        f"{groups[-1].name} {groups[-1].mean_nll_nats:.3f} nats.",
        SPLITS[split],
        "mean loss (nats)",
        xaxis_type="category",
        xaxis_categoryorder="array",
        xaxis_categoryarray=figures.group_names(subject.models, split),
        yaxis_rangemode="tozero",
    )
    for model, style in subject.drawn:
        groups = getattr(model, split)
        means = [group.mean_nll_nats for group in groups]
        figure.add_scatter(
            x=[group.name for group in groups],
            y=means,
            error_y=chart.whiskers(means, [group.interval for group in groups], style.colour),
            mode="markers" if split == "by_part" else "lines+markers",
            marker={"color": style.colour, "size": 9},
            **style.trace(1.5),
            customdata=[group.tokens for group in groups],
            hovertemplate="%{x}: %{y:.3f} nats over %{customdata:,} tokens<extra></extra>",
        )
    return Chart(figure, figures.groups_table(subject.models, split, subject.names))


def calibration(subject: ChartSubject) -> Chart:
    """The stated probability of the best guess against how often it is right."""
    axis = {"range": [-0.02, 1.04], "tickformat": ",.0%"}
    figure = subject.figure(
        "Probability of the top prediction against how often it is right; mean distance "
        f"{subject.models[0].calibration_error:.3f}.",
        "probability of the top prediction",
        "share that is right",
        diagonal=1.0,
    )
    figure.update_xaxes(axis).update_yaxes(axis)
    for model, style in subject.drawn:
        bins = model.calibration
        sizes = [6 + 18 * (slot.tokens / model.tokens) ** 0.5 for slot in bins]
        figure.add_scatter(
            x=[slot.mean_probability for slot in bins],
            y=[slot.accuracy for slot in bins],
            mode="lines+markers",
            marker={"color": style.colour, "size": sizes},
            **style.trace(1.5),
            customdata=[slot.tokens for slot in bins],
            hovertemplate="predicted %{x:.1%}, right %{y:.1%} of %{customdata:,}<extra></extra>",
        )
    by_range = [{(slot.low, slot.high): slot for slot in m.calibration} for m in subject.models]
    heading, ranges = ("stated from", "stated to"), sorted({*by_range[0], *by_range[-1]})
    table = figures.records_table(heading, ranges, by_range, CALIBRATION_FIGURES, subject.names)
    return Chart(figure, table)


def running_mean(subject: ChartSubject) -> Chart | None:
    """The mean loss over the texts measured so far, with its interval."""
    history = subject.history
    if not history:
        return None
    last, texts = history[-1], [entry.texts for entry in history]
    # Without the first texts, which swing widely.
    settled = [estimate for entry in history[len(history) // 4 :] for estimate in entry.means]
    spans = [mean.interval for mean in settled if mean.interval]
    heights = [mean.value for mean in settled]
    heights += [span.low for span in spans] + [span.high for span in spans]
    figure = subject.figure(
        f"Mean loss so far: {last.means[0].value:.3f} nats after {last.texts:,} texts.",
        "texts measured",
        "mean loss so far (nats)",
        yaxis_range=[min(heights) - 0.02, max(heights) + 0.02],
    )
    by_model = [*zip(*(entry.means for entry in history), strict=True)]
    for style, means in zip(subject.styles, by_model, strict=True):
        band = [(at, m.interval) for at, m in zip(texts, means, strict=True) if m.interval]
        figure.add_scatter(
            x=[at for at, _ in (*band, *band[::-1])],
            y=[span.high for _, span in band] + [span.low for _, span in band[::-1]],
            fill="toself",
            mode="lines",
            line={"color": style.colour, "width": 0},
            opacity=0.25,
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=texts,
            y=[mean.value for mean in means],
            mode="lines+markers" if len(history) < 3 else "lines",
            **style.trace(2.5),
            hovertemplate="%{y:.4f} nats after %{x:,} texts<extra></extra>",
        )
    labels = "mean loss (nats)", "provisional 95% from", "provisional 95% to"

    def cells(mean: Estimate) -> tuple[float | None, ...]:
        span = mean.interval
        return (mean.value, span.low, span.high) if span else (mean.value, None, None)

    rows = ((entry.texts, *chain(*map(cells, entry.means))) for entry in history)
    return Chart(figure, Table.of(("texts", *figures.headings(labels, subject.names)), rows))
