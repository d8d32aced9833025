"""The Unmask tab: a form, and decodings that the browser plays."""

from pathlib import Path

import gradio as gr

import fillmask_ui.features.unmask.unmask_view as view
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    with gr.Column(elem_id="unmask"):
        model = components.model_picker(
            session, elem_id="unmask-model", elem_classes=["fm-model", "fm-beside"]
        )
        page = render(
            "unmask/page.html",
            settings={setting: view.controls(setting) for setting in view.SETTINGS},
            orders=view.ORDER_LABELS,
            sources=view.SOURCES,
            text=view.TEXT,
            most=view.MOST_HIDDEN,
        )
        components.html_block(
            page,
            js_on_load=components.static("begin.js", Path(__file__).parent),
            server_functions=[components.served(session, *item) for item in view.SERVED.items()],
        )
    components.linked_picker(session, model, "unmask")
