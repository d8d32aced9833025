"""The Guide tab: what the figures mean, in a page of text."""

from __future__ import annotations

import gradio as gr

from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import static


def build(_session: Session) -> None:
    """Create the tab's components; they need no model."""
    gr.Markdown(static("guide.md"), elem_classes="fm-guide")
