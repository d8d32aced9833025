"""What all charts share: the records, the look, names and colours.

The page sets the colours of text and background, so that one figure serves the light and the dark
theme. `layout.meta` describes each figure in words, for screen readers.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fillmask_ui.evaluation import MeanSoFar, Summary
from fillmask_ui.evaluation.summary import ModelFigures
from fillmask_ui.intervals import Interval
from fillmask_ui.show.figures import Names, models_of
from fillmask_ui.show.table import Table

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Mid-tones that keep a contrast of 3 to 1 or more on white and on near black.
REFERENCE = "#0d9488"  # or the only model
CANDIDATE = "#7c3aed"
LOSS = "#cc3a55"  # a mark on the losses of the only model
MUTED = "#8b8680"
_LABEL_CHARACTERS = 22
_TITLE_CHARACTERS = 32  # of a model's name in a legend
_FONT = "IBM Plex Sans, system-ui, sans-serif"
_AXIS = {
    "gridcolor": "rgba(128,128,128,.25)",
    "zeroline": False,
    "automargin": True,
    "fixedrange": True,
    "title": {"standoff": 8, "font": {"size": 13}},
}
_LOOK = {
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "margin": {"l": 48, "r": 16, "t": 12, "b": 44, "pad": 4},
    "font": {"family": _FONT, "size": 13},
    "hoverlabel": {"font": {"family": _FONT}},
    "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    "dragmode": False,
    "xaxis": _AXIS,
    "yaxis": _AXIS,
}


@dataclass(frozen=True)
class Style:
    """How one model is drawn."""

    name: str
    colour: str
    dash: str

    def trace(self, width: float) -> dict[str, Any]:
        """Arguments of a trace: its name and its line, `width` in pixels."""
        line = {"color": self.colour, "width": width, "dash": self.dash}
        return {"name": self.name, "line": line}


class ChartSubject:
    """What charts are drawn of: the model, or reference and candidate, their names and styles."""

    def __init__(self, summary: Summary, names: Names, history: Sequence[MeanSoFar]) -> None:
        self.summary, self.history = summary, history
        self.models = models_of(summary)
        self.two = len(self.models) > 1
        self.names = names[: len(self.models)]
        labels = [label(name, _TITLE_CHARACTERS) for name in self.names]
        looks = ((REFERENCE, "solid"), (CANDIDATE, "dash"))
        styles = zip(labels, looks, strict=False)
        self.styles = tuple(Style(name, colour, dash) for name, (colour, dash) in styles)

    @property
    def drawn(self) -> Iterator[tuple[ModelFigures, Style]]:
        return zip(self.models, self.styles, strict=True)

    def figure(
        self, description: str, x: str | None = None, y: str | None = None, **layout: Any
    ) -> go.Figure:
        """As `new_figure`, with a legend for two models."""
        return new_figure(description, x, y, legend=self.two, **layout)


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure with the table of its numbers."""

    figure: go.Figure  # without a title
    table: Table
    name: str = ""  # short and stable, for ids and file names
    title: str = ""
    note: str = ""  # how to read it, and what is left out

    def to_html(self) -> str:
        """The figure as an element that `chart_library` draws offline."""
        config = {"displaylogo": False, "displayModeBar": False, "responsive": True}
        return self.figure.to_html(
            full_html=False, include_plotlyjs=False, div_id=f"chart-{self.name}", config=config
        )


def new_figure(
    description: str,
    x: str | None = None,
    y: str | None = None,
    *,
    legend: bool = False,
    diagonal: float | None = None,
    **layout: Any,
) -> go.Figure:
    """A figure in the look of all charts, with nothing drawn yet; `description` is it in words.

    `x` and `y` are titles of axes. A `diagonal` is the end of a line from 0 on which both axes are
    equal. `layout` is of plotly, such as `yaxis_type`.
    """
    # Slow to import, and not needed to build the page.
    import plotly.graph_objects as go

    look: dict[str, Any] = {"template": _template(), "height": 320}
    look["meta"] = {"description": description}
    look |= {"xaxis_title_text": x or None, "yaxis_title_text": y or None, "showlegend": legend}
    if legend:
        look["margin_t"] = 40
    figure = go.Figure(layout=go.Layout(**{**look, **layout}))
    if diagonal is not None:
        figure.add_scatter(
            x=[0, diagonal],
            y=[0, diagonal],
            mode="lines",
            line={"color": MUTED, "width": 1, "dash": "dash"},
            showlegend=False,
            hoverinfo="skip",
        )
    return figure


def whiskers(
    values: Sequence[float], spans: Sequence[Interval | None], colour: str, width: int = 3
) -> dict[str, Any]:
    """The intervals of some values as plotly's error bars, of no length where there is none."""
    pairs = [*zip(values, spans, strict=True)]
    return {
        "array": [span.high - value if span else 0.0 for value, span in pairs],
        "arrayminus": [value - span.low if span else 0.0 for value, span in pairs],
        "color": colour,
        "thickness": 1.2,
        "width": width,
    }


@cache
def _template() -> go.layout.Template:
    import plotly.graph_objects as go

    return go.layout.Template(layout=_LOOK)


def label(text: str, longest: int = _LABEL_CHARACTERS) -> str:
    """A token as a plotly label: escaped, and cut if it is too long.

    >>> label("<s>")
    '&lt;s&gt;'
    """
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return html.escape(text, quote=False)
