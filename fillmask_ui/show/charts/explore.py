"""Records to plotly figures.

Figures carry no colours of their own for text and background: the page sets them, so that one
figure serves the light and the dark theme. Each has a description in words under `layout.meta`,
which the page reads out to those who cannot see it; a table always stands beside it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from fillmask_ui.records import Candidate, MaskFilling
from fillmask_ui.show.numbers import percent

if TYPE_CHECKING:
    from fillmask_ui.training.recipe import LogRow

# Mid-tones that keep a contrast of 3 to 1 or more on white and on near black.
ACCENT = "#0d9488"
SECOND = "#d97706"
MUTED = "#8b8680"
GRID = "rgba(128,128,128,.25)"
MAX_BARS = 30
_BAR_PIXELS = 26
_LABEL_CHARACTERS = 22


def base_layout(*, height: int, description: str) -> dict:
    """The layout that all figures share.

    Args:
        height: in pixels.
        description: the figure in words.
    """
    axis = {"gridcolor": GRID, "zeroline": False, "automargin": True, "fixedrange": True}
    return {
        "template": "none",
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 16, "t": 8, "b": 36, "pad": 4},
        "font": {"family": "IBM Plex Sans, system-ui, sans-serif", "size": 13},
        "hoverlabel": {"font": {"family": "IBM Plex Sans, system-ui, sans-serif"}},
        "showlegend": False,
        "dragmode": False,
        "xaxis": dict(axis),
        "yaxis": dict(axis),
        "meta": {"description": description},
    }


def label(text: str, longest: int = _LABEL_CHARACTERS) -> str:
    """A token as a plotly label: never read as formatting, cut where it is too long.

    >>> label("<s>")
    '&lt;s&gt;'
    """
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return html.escape(text, quote=False)


def candidate_names(candidates: Sequence[Candidate]) -> list[str]:
    """What to call each candidate: its word, or its raw token where the word would mislead.

    That is where a token continues the word to its left, is blank, or shares its word with
    another candidate.
    """
    words = [candidate.word for candidate in candidates]
    return [
        candidate.token
        if candidate.token.startswith("##")
        or not candidate.word.strip()
        or words.count(candidate.word) > 1
        else candidate.word
        for candidate in candidates
    ]


def candidates_figure(
    mask: MaskFilling,
    *,
    unit: str = "nats",
    bars: int = MAX_BARS,
    marked: int | None = None,
    key_prefix: str = "",
) -> go.Figure:
    """The best candidates of one mask as horizontal bars of probability, best on top.

    Args:
        mask: with at least one candidate.
        unit: of the NLL in the hover text, `nats` or `bits`.
        bars: how many at most.
        marked: id of a token to draw in another colour, such as the true word.
        key_prefix: put before the token id in the `customdata` of each bar.
    """
    shown = mask.candidates[:bars]
    names = candidate_names(shown)
    scale = 1 / math.log(2) if unit == "bits" else 1.0
    probabilities = [candidate.probability for candidate in shown]
    widest = max(probabilities)
    colours = [SECOND if candidate.token_id == marked else ACCENT for candidate in shown]
    best = f"{names[0]} with {probabilities[0]:.1%}"
    layout = base_layout(
        height=44 + _BAR_PIXELS * len(shown),
        description=f"Bar chart of the {len(shown)} most probable words; the first is {best}.",
    )
    layout["margin"]["r"] = 64
    layout["bargap"] = 0.28
    # Positions are ranks, not names: two tokens may look alike.
    layout["yaxis"] |= {
        "autorange": "reversed",
        "tickvals": [candidate.rank for candidate in shown],
        "ticktext": [label(name) for name in names],
        "showgrid": False,
        "ticks": "",
    }
    layout["xaxis"] |= {
        "tickformat": ",.0%" if widest >= 0.04 else ",.1%" if widest >= 0.004 else ".1~e",
        "range": [0, widest * 1.02],
        "nticks": 6,
    }
    return go.Figure(
        go.Bar(
            x=probabilities,
            y=[candidate.rank for candidate in shown],
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
                f"NLL {candidate.nll_nats * scale:.4f} {unit}"
                for name, candidate in zip(names, shown, strict=True)
            ],
            hoverinfo="text",
        ),
        layout,
    )


def loss_figure(rows: Sequence[LogRow]) -> go.Figure:
    """The loss of a training run over the tokens seen: training as a line, validation as points.

    Args:
        rows: of the run's log, in order; the two losses differ where the shares of hidden tokens
            do, so each is named with what it is.
    """
    measured = [row for row in rows if row.validation_nll_nats is not None]
    last = f"{rows[-1].train_nll_nats:.3f}" if rows else "unknown"
    words = f"Loss of a training run over {rows[-1].tokens if rows else 0:,} tokens; last {last}."
    layout = base_layout(height=420, description=words)
    layout["showlegend"] = True
    layout["xaxis"]["title"] = "tokens seen"
    layout["yaxis"]["title"] = "loss (nats per hidden token)"
    layout["margin"] |= {"l": 56, "t": 24, "b": 48}
    training = go.Scatter(
        x=[row.tokens for row in rows],
        y=[row.train_nll_nats for row in rows],
        mode="lines",
        name="training, at the training share",
        line={"color": MUTED, "width": 1},
    )
    validation = go.Scatter(
        x=[row.tokens for row in measured],
        y=[row.validation_nll_nats for row in measured],
        mode="lines+markers",
        name="validation, 15 % hidden",
        line={"color": ACCENT, "width": 3},
    )
    return go.Figure([training, validation], layout)
