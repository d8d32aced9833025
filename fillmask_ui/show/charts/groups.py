"""Charts of the mean loss of groups of tokens, and of calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from fillmask_ui.evaluation import GroupFigures, ModelFigures
from fillmask_ui.show.charts.chart import (
    Chart,
    Names,
    Table,
    diagonal,
    figure_layout,
    line,
    named,
)

_GROUPS = {
    "position": (
        "Loss by position in the text",
        "position of the token",
        "Positions count tokens from 0, the special token at the start included.",
    ),
    "frequency": (
        "Loss by frequency of the token",
        "occurrences of the token in these texts",
        "How often the token to be found occurs in the texts measured here.",
    ),
    "part": (
        "Loss by part of the word",
        "part of the word",
        "A later sub-token is easier where the beginning of its word can be seen.",
    ),
    "kind": ("Loss by what the model saw", "the model saw", ""),
}


def loss_by_group(
    models: Sequence[ModelFigures], split: str, *, names: Names = ("model", "baseline")
) -> Chart:
    """Mean loss of each group of tokens, with its interval where there is one.

    Args:
        models: one or two.
        split: `position`, `frequency`, `part` or `kind`.
        names: what to call the models.
    """
    title, axis, note = _GROUPS[split]
    first: tuple[GroupFigures, ...] = getattr(models[0], f"by_{split}")
    layout = figure_layout(
        f"{title}: {first[0].name} {first[0].mean_nll_nats:.3f}, "
        f"{first[-1].name} {first[-1].mean_nll_nats:.3f} nats.",
        axis,
        "mean loss (nats)",
        models=len(models),
    )
    order = group_names(models, split)
    layout["xaxis"] |= {"type": "category", "categoryorder": "array", "categoryarray": order}
    layout["yaxis"]["rangemode"] = "tozero"
    figure = go.Figure(layout=layout)
    for figures, name, colour in named(models, names):
        groups: tuple[GroupFigures, ...] = getattr(figures, f"by_{split}")
        figure.add_scatter(
            x=[group.name for group in groups],
            y=[group.mean_nll_nats for group in groups],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [g.interval.high - g.mean_nll_nats if g.interval else 0 for g in groups],
                "arrayminus": [
                    g.mean_nll_nats - g.interval.low if g.interval else 0 for g in groups
                ],
                "color": colour,
                "thickness": 1.2,
                "width": 3,
            },
            mode="markers" if split in ("part", "kind") else "lines+markers",
            marker={"color": colour, "size": 9},
            line=line(colour, 1.5),
            name=name,
            customdata=[group.tokens for group in groups],
            hovertemplate="%{x}: %{y:.3f} nats over %{customdata:,} tokens<extra></extra>",
        )
    return Chart(f"loss-by-{split}", title, note, figure, group_table(axis, models, split, names))


def group_names(models: Sequence[ModelFigures], split: str) -> list[str]:
    """Names of all groups, in their order; another tokenizer may have other ones."""
    longest = max((getattr(figures, f"by_{split}") for figures in models), key=len)
    found = dict.fromkeys(group.name for group in longest)
    for figures in models:
        found |= dict.fromkeys(group.name for group in getattr(figures, f"by_{split}"))
    if all(name.rstrip("+").split("-")[0].isdecimal() for name in found):
        return sorted(found, key=lambda name: int(name.rstrip("+").split("-")[0]))
    return list(found)


def group_table(heading: str, models: Sequence[ModelFigures], split: str, names: Names) -> Table:
    """All figures of each group, one row a group."""
    columns = [heading]
    for name in names[: len(models)]:
        own = "" if len(models) == 1 else f", {name}"
        columns += [f"tokens{own}", f"mean loss (nats){own}", f"95 % from{own}", f"95 % to{own}"]
        columns += [f"top-1{own}", f"top-5{own}", f"mean rank{own}", f"entropy (nats){own}"]
    by_name = [{g.name: g for g in getattr(figures, f"by_{split}")} for figures in models]
    rows = []
    for name in group_names(models, split):
        row: list[Any] = [name]
        for groups in by_name:
            row += _group_cells(groups.get(name))
        rows.append(tuple(row))
    return Table(tuple(columns), tuple(rows))


def _group_cells(group: GroupFigures | None) -> list[Any]:
    if group is None:
        return [0, *[None] * 7]
    interval = group.interval
    return [
        group.tokens,
        group.mean_nll_nats,
        interval and interval.low,
        interval and interval.high,
        group.top1_accuracy,
        group.top5_accuracy,
        group.mean_rank,
        group.mean_entropy_nats,
    ]


def calibration(models: Sequence[ModelFigures], *, names: Names = ("model", "baseline")) -> Chart:
    """The probability that a model states for its best guess, and how often that is right."""
    layout = figure_layout(
        "Stated probability of the best guess against how often it is right; mean distance "
        f"{models[0].calibration_error:.3f}.",
        "stated probability of the best guess",
        "share of them that are right",
        models=len(models),
    )
    for axis in ("xaxis", "yaxis"):
        layout[axis] |= {"range": [-0.02, 1.04], "tickformat": ",.0%"}
    figure = go.Figure(diagonal(1.0), layout)
    for figures, name, colour in named(models, names):
        bins = figures.calibration
        figure.add_scatter(
            x=[slot.mean_probability for slot in bins],
            y=[slot.accuracy for slot in bins],
            mode="lines+markers",
            marker={
                "color": colour,
                "size": [6 + 18 * (slot.tokens / figures.tokens) ** 0.5 for slot in bins],
            },
            line=line(colour, 1.5),
            name=name,
            customdata=[slot.tokens for slot in bins],
            hovertemplate="stated %{x:.1%}, right %{y:.1%} of %{customdata:,}<extra></extra>",
        )
    columns = [*("stated from", "stated to")]
    for name in names[: len(models)]:
        own = "" if len(models) == 1 else f", {name}"
        columns += [f"tokens{own}", f"mean stated{own}", f"right{own}"]
    lows = sorted({(slot.low, slot.high) for figures in models for slot in figures.calibration})
    by_low = [{slot.low: slot for slot in figures.calibration} for figures in models]
    rows = []
    for low, high in lows:
        row: list[Any] = [low, high]
        for slots in by_low:
            slot = slots.get(low)
            row += [slot.tokens, slot.mean_probability, slot.accuracy] if slot else [0, None, None]
        rows.append(tuple(row))
    return Chart(
        "calibration",
        "Calibration",
        "On the line a model is right as often as it says; below it is too sure of itself. Larger "
        "points stand for more tokens.",
        figure,
        Table(tuple(columns), tuple(rows)),
    )
