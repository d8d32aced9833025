"""Charts of candidates of a mask, and of the loss of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fillmask_ui.records import Candidate, MaskFilling
from fillmask_ui.show.charts.chart import ACCENT, MUTED, SECOND, label, new_figure
from fillmask_ui.show.names import piece_name
from fillmask_ui.show.numbers import in_unit, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fillmask_ui.training.recipe import LogRow

MAX_BARS = 30
_BAR_PIXELS = 26


def candidate_names(candidates: Sequence[Candidate]) -> list[str]:
    """What to call each candidate: its word, or its raw token where the word would mislead.

    That is where it is blank, or another candidate has the same name. What continues the word to
    its left begins with three dots.
    """
    names = [piece_name(c.word, continues=c.token.startswith("##")) for c in candidates]
    return [
        c.token if not c.word.strip() or names.count(name) > 1 else name
        for c, name in zip(candidates, names, strict=True)
    ]


def candidates_figure(
    mask: MaskFilling, *, unit: str = "nats", marked: int | None = None, key_prefix: str = ""
) -> go.Figure:
    """The best candidates of one mask as horizontal bars of probability, best on top.

    Args:
        mask: with at least one candidate; the best `MAX_BARS` are drawn.
        unit: of the NLL in the hover text, `nats` or `bits`.
        marked: id of a token to draw in another colour, such as the true word.
        key_prefix: put before the token id in the `customdata` of each bar.
    """
    shown = mask.candidates[:MAX_BARS]
    names = candidate_names(shown)
    ranks = [candidate.rank for candidate in shown]  # no names: two tokens may look alike
    probabilities = [candidate.probability for candidate in shown]
    widest = max(probabilities)
    colours = [SECOND if candidate.token_id == marked else ACCENT for candidate in shown]
    figure = new_figure(
        f"Bar chart of the {len(shown)} most probable words; the first is {names[0]} with "
        f"{probabilities[0]:.1%}.",
        height=44 + _BAR_PIXELS * len(shown),
        margin={"l": 8, "r": 64, "t": 8, "b": 36},
        bargap=0.28,
        xaxis_tickformat=",.0%" if widest >= 0.04 else ",.1%" if widest >= 0.004 else ".1~e",
        xaxis_range=[0, widest * 1.02],
        xaxis_nticks=6,
        yaxis_autorange="reversed",
        yaxis_tickvals=ranks,
        yaxis_ticktext=[label(name) for name in names],
        yaxis_showgrid=False,
        yaxis_ticks="",
    )
    return figure.add_bar(
        x=probabilities,
        y=ranks,
        orientation="h",
        marker={"color": colours, "cornerradius": 3},
        text=[percent(probability) for probability in probabilities],
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        customdata=[f"{key_prefix}{candidate.token_id}" for candidate in shown],
        hovertext=[
            f"<b>{label(name, 60)}</b><br>token {label(candidate.token, 60)}, "
            f"id {candidate.token_id}<br>probability {candidate.probability:.6g}<br>"
            f"NLL {in_unit(candidate.nll_nats, unit):.4f} {unit}"
            for name, candidate in zip(names, shown, strict=True)
        ],
        hoverinfo="text",
    )


def loss_figure(rows: Sequence[LogRow]) -> go.Figure:
    """The loss of a training run over the tokens seen: training as a line, validation as points.

    The two differ where the shares of hidden tokens do, so each is named with what it is.
    """
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
        ("validation, 15 % hidden", "validation_nll_nats", "lines+markers", ACCENT, 3),
    ):
        known = [row for row in rows if getattr(row, attribute) is not None]
        figure.add_scatter(
            x=[row.tokens for row in known],
            y=[getattr(row, attribute) for row in known],
            mode=mode,
            name=name,
            line={"color": colour, "width": width},
        )
    return figure
