"""Charts in a page of their own, without a server and without a network."""

from __future__ import annotations

import plotly.graph_objects as go
import plotly.offline

_CONFIG = {"displaylogo": False, "displayModeBar": False, "responsive": True}


def chart_library() -> str:
    """The whole of plotly.js, to be put into one script element."""
    return plotly.offline.get_plotlyjs()


def figure_html(figure: go.Figure, identity: str) -> str:
    """A figure as an element that `chart_library` draws.

    Args:
        figure: any.
        identity: of the element; unique in the page, and the same each time it is written.
    """
    return figure.to_html(full_html=False, include_plotlyjs=False, div_id=identity, config=_CONFIG)
