"""The Unmask tab: a form, and decodings that the browser plays."""

import gradio as gr

from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.unmask.unmask_view import (
    MOST_HIDDEN,
    ORDER_LABELS,
    SERVED,
    SIDES,
    SOURCES,
    TEXT,
    controls,
    written,
)


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    with gr.Column(elem_id="unmask"):
        model = components.model_picker(session, elem_id="unmask-model")
        page = render(
            "page/unmask/page.html",
            sides={side: controls(side) for side in SIDES},
            written=written,
            orders=ORDER_LABELS,
            sources=SOURCES,
            text=TEXT,
            most=MOST_HIDDEN,
        )
        components.html_block(
            page,
            js_on_load=components.static("unmask_begin.js"),
            server_functions=[components.served(session, *item) for item in SERVED.items()],
        )
    components.linked_picker(session, model, "unmask")
