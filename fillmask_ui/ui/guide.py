"""The Guide tab, what the page shows and how to use it; and the tour of a first visit."""

import gradio as gr

from fillmask_ui.evaluation import METRICS
from fillmask_ui.intervals import Limits
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session


def build(_: Session) -> None:
    """Create the tab."""
    guide = render("page/guide.html", metrics=METRICS.values(), limits=Limits())
    components.html_block(guide, js_on_load=components.static("guide.js"))


def build_tour() -> gr.HTML:
    """The card of the tour; built near the top of the page for the tab order."""
    mount = "window.fillmask.tour.mount(element);"
    return components.html_block(render("page/tour.html"), js_on_load=mount, elem_id="tour")
