"""Charts of the mean loss of groups of tokens, of calibration, and of the mean as it settles."""

from typing import Any

from fillmask_ui.evaluation.catalogue import SPLITS, Figure
from fillmask_ui.show.charts.chart import Chart, Subject, new_figure
from fillmask_ui.show.figures import group_names, groups_table, headings, records_table
from fillmask_ui.show.table import Table

_CALIBRATION_FIGURES = (
    Figure("tokens", "tokens"),
    Figure("mean_probability", "mean stated"),
    Figure("accuracy", "right"),
)
_PARTS = ("means", "lows", "highs")


def loss_by_group(subject: Subject, split: str) -> Chart:
    """Mean loss of each group of tokens of a split, with its interval where there is one."""
    groups = getattr(subject.models[0], split)
    figure = new_figure(
        f"Mean loss by {SPLITS[split]}: {groups[0].name} {groups[0].mean_nll_nats:.3f}, "
        f"{groups[-1].name} {groups[-1].mean_nll_nats:.3f} nats.",
        SPLITS[split],
        "mean loss (nats)",
        legend=subject.two,
        xaxis_type="category",
        xaxis_categoryorder="array",
        xaxis_categoryarray=group_names(subject.models, split),
        yaxis_rangemode="tozero",
    )
    for model, style in zip(subject.models, subject.styles, strict=True):
        groups = getattr(model, split)
        spans = [(group.mean_nll_nats, group.interval) for group in groups]
        figure.add_scatter(
            x=[group.name for group in groups],
            y=[mean for mean, _ in spans],
            error_y={  # where there is no interval it has no length
                "array": [own.high - mean if own else 0.0 for mean, own in spans],
                "arrayminus": [mean - own.low if own else 0.0 for mean, own in spans],
                "color": style.colour,
                "thickness": 1.2,
                "width": 3,
            },
            mode="markers" if split == "by_part" else "lines+markers",
            marker={"color": style.colour, "size": 9},
            **style.trace(1.5),
            customdata=[group.tokens for group in groups],
            hovertemplate="%{x}: %{y:.3f} nats over %{customdata:,} tokens<extra></extra>",
        )
    return Chart(figure, groups_table(subject.models, split, subject.names))


def calibration(subject: Subject) -> Chart:
    """The probability that a model states for its best guess, and how often that is right."""
    axis = {"range": [-0.02, 1.04], "tickformat": ",.0%"}
    figure = new_figure(
        "Stated probability of the best guess against how often it is right; mean distance "
        f"{subject.models[0].calibration_error:.3f}.",
        "stated probability of the best guess",
        "share of them that are right",
        legend=subject.two,
        diagonal=1.0,
    )
    figure.update_xaxes(axis).update_yaxes(axis)
    for model, style in zip(subject.models, subject.styles, strict=True):
        bins = model.calibration
        sizes = [6 + 18 * (slot.tokens / model.tokens) ** 0.5 for slot in bins]
        figure.add_scatter(
            x=[slot.mean_probability for slot in bins],
            y=[slot.accuracy for slot in bins],
            mode="lines+markers",
            marker={"color": style.colour, "size": sizes},
            **style.trace(1.5),
            customdata=[slot.tokens for slot in bins],
            hovertemplate="stated %{x:.1%}, right %{y:.1%} of %{customdata:,}<extra></extra>",
        )
    by_range = [{(slot.low, slot.high): slot for slot in m.calibration} for m in subject.models]
    heading, ranges = ("stated from", "stated to"), sorted({*by_range[0], *by_range[-1]})
    table = records_table(heading, ranges, by_range, _CALIBRATION_FIGURES, subject.names)
    return Chart(figure, table)


def running_mean(subject: Subject) -> Chart | None:
    """The mean loss over the texts measured, with its interval narrowing."""
    history = subject.history
    if not history:
        return None
    last, texts = history[-1], [entry.texts for entry in history]
    # The first texts swing widely; what matters is the end.
    settled = [v for e in history[len(history) // 4 :] for v in (*e.means, *e.lows, *e.highs)]
    known = [value for value in settled if value is not None]
    figure = new_figure(
        f"The mean loss settles: {last.means[0]:.3f} nats after {last.texts:,} texts.",
        "texts measured",
        "mean loss so far (nats)",
        legend=subject.two,
        yaxis_range=[min(known) - 0.02, max(known) + 0.02],
    )
    columns: list[Any] = [texts]
    parts = (zip(*(getattr(e, part) for e in history), strict=True) for part in _PARTS)
    for style, means, lows, highs in zip(subject.styles, *parts, strict=True):
        columns += [means, lows, highs]
        band = [edge for edge in zip(texts, lows, highs, strict=True) if edge[1] is not None]
        figure.add_scatter(
            x=[count for count, _, _ in (*band, *band[::-1])],
            y=[high for _, _, high in band] + [low for _, low, _ in band[::-1]],
            fill="toself",
            mode="lines",
            line={"color": style.colour, "width": 0},
            opacity=0.25,
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=texts,
            y=means,
            mode="lines+markers" if len(history) < 3 else "lines",
            **style.trace(2.5),
            hovertemplate="%{y:.4f} nats after %{x:,} texts<extra></extra>",
        )
    own = headings(
        ["mean loss (nats)", *(f"provisional 95 % {end}" for end in ("from", "to"))], subject.names
    )
    return Chart(figure, Table.of(("texts", *own), zip(*columns, strict=True)))
