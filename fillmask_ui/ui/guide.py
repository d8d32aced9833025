"""The Guide tab: what the figures mean, in a page of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gradio as gr

from fillmask_ui.ui.widgets import static

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session


def build(_session: Session) -> None:
    """Create the tab's components.

    Args:
        _session: as for every tab; this one needs none.
    """
    gr.Markdown(static("guide.md"), elem_classes="fm-guide")
