"""What all charts share: the records, the look, names and colours.

Figures carry no colours of their own for text and background: the page sets them, so that one
figure serves the light and the dark theme. Each has a description in words under `layout.meta`,
which the page reads out to those who cannot see it; a table always stands beside it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from fillmask_ui.evaluation import MeanSoFar, ModelFigures, Summary
from fillmask_ui.evaluation.summary import Histogram
from fillmask_ui.show.figures import NAMES, Names, Table, models_of

# Mid-tones that keep a contrast of 3 to 1 or more on white and on near black.
ACCENT = "#0d9488"
SECOND = "#d97706"
MUTED = "#8b8680"
_LABEL_CHARACTERS = 22
_TITLE_CHARACTERS = 32  # of a model's name in a legend
_FONT = "IBM Plex Sans, system-ui, sans-serif"
_AXIS = {
    "showgrid": True,
    "gridcolor": "rgba(128,128,128,.25)",
    "zeroline": False,
    "automargin": True,
    "fixedrange": True,
    "title": {"standoff": 8, "font": {"size": 13}},
}
LOOK = go.layout.Template(
    layout={
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 48, "r": 16, "t": 12, "b": 44, "pad": 4},
        "font": {"family": _FONT, "size": 13},
        "hoverlabel": {"font": {"family": _FONT}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "showlegend": False,
        "dragmode": False,
        "xaxis": _AXIS,
        "yaxis": _AXIS,
    }
)


@dataclass(frozen=True)
class Style:
    """How one model is drawn: its name as a label, its colour, and whether its lines are dashed."""

    name: str
    colour: str
    dash: str

    def trace(self, width: float) -> dict[str, Any]:
        """The name of a trace and the look of its line, so many pixels wide."""
        return {
            "name": self.name,
            "line": {"color": self.colour, "width": width, "dash": self.dash},
        }


@dataclass(frozen=True, eq=False)
class Subject:
    """What charts are drawn of.

    Attributes:
        summary: of one model or two.
        names: what to call the models.
        history: the mean after ever more texts; may be empty.
    """

    summary: Summary
    names: Names = NAMES
    history: Sequence[MeanSoFar] = ()

    @property
    def models(self) -> tuple[ModelFigures, ...]:
        return models_of(self.summary)

    @property
    def two(self) -> bool:
        return len(self.models) > 1

    @property
    def differences(self) -> Histogram | None:
        """Of the loss of the same token under both models; None where no tokens are paired."""
        comparison = self.summary.comparison
        return None if comparison is None else comparison.histogram

    @property
    def styles(self) -> tuple[Style, ...]:
        """Of each model; two lines that lie on each other are both seen."""
        looks = ((ACCENT, "solid"), (SECOND, "dash"))
        return tuple(
            Style(label(name, _TITLE_CHARACTERS), *look)
            for _, name, look in zip(self.models, self.names, looks, strict=False)
        )


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure without a title of its own, and the table of what it shows."""

    figure: go.Figure
    table: Table


def new_figure(
    description: str, x: str = "", y: str = "", *, legend: bool = False, **layout: Any
) -> go.Figure:
    """An empty figure in the look of all charts.

    Args:
        description: the figure in words.
        x: what its horizontal axis is.
        y: what its vertical axis is.
        legend: whether it names its traces, above the figure.
        **layout: of plotly, such as `yaxis_type`.
    """
    meta = {"description": description}
    look: dict[str, Any] = {"template": LOOK, "height": 320, "meta": meta}
    look |= {"xaxis_title_text": x or None, "yaxis_title_text": y or None, "showlegend": legend}
    if legend:
        look["margin_t"] = 40
    return go.Figure(layout=go.Layout(**{**look, **layout}))


def label(text: str, longest: int = _LABEL_CHARACTERS) -> str:
    """A token as a plotly label: never read as formatting, cut where it is too long.

    >>> label("<s>")
    '&lt;s&gt;'
    """
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return html.escape(text, quote=False)


def add_diagonal(figure: go.Figure, end: float) -> None:
    """Draw the line from 0 on which both axes have the same value."""
    line = {"color": MUTED, "width": 1, "dash": "dash"}
    ends = [0, end]
    figure.add_scatter(x=ends, y=ends, mode="lines", line=line, showlegend=False, hoverinfo="skip")
