"""The loss of a training run as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fillmask_ui.show.charts.chart import MUTED, REFERENCE, new_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fillmask_ui.features.train.training_recipe import LogRow


def loss_figure(rows: Sequence[LogRow]) -> go.Figure:
    """The loss of a training run over the tokens seen: training as a line, validation as points."""
    last = f"{rows[-1].train_nll_nats:.3f}" if rows else "unknown"
    figure = new_figure(
        f"Loss of a training run over {rows[-1].tokens if rows else 0:,} tokens; last {last}.",
        "tokens seen",
        "loss (nats per hidden token)",
        legend=True,
        height=420,
    )
    for name, attribute, mode, colour, width in (
        ("training, at the training share", "train_nll_nats", "lines", MUTED, 1),
        ("validation, 15% hidden", "validation_nll_nats", "lines+markers", REFERENCE, 3),
    ):
        measured = [row for row in rows if getattr(row, attribute) is not None]
        figure.add_scatter(
            x=[row.tokens for row in measured],
            y=[getattr(row, attribute) for row in measured],
            mode=mode,
            name=name,
            line={"color": colour, "width": width},
        )
    return figure
