"""The Unmask tab: a form, and decodings that the browser plays."""

import gradio as gr

from fillmask_ui.show.render import render
from fillmask_ui.ui import widgets
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.unmask.form import MOST_HIDDEN, SIDES, SOURCES, TEXT, controls
from fillmask_ui.ui.unmask.serve import SERVED


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    with gr.Column(elem_id="unmask"):
        model = widgets.model_picker(session, elem_id="unmask-model")
        page = render(
            "page/unmask/page.html",
            sides=[(side, controls(side)) for side in SIDES],
            sources=SOURCES,
            text=TEXT,
            most=MOST_HIDDEN,
        )
        widgets.html_block(
            page,
            js_on_load=widgets.static("unmask_begin.js"),
            server_functions=[widgets.served(session, *item) for item in SERVED.items()],
        )
    widgets.linked_picker(session, model, "unmask")
