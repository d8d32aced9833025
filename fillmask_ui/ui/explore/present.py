"""The sentences of a presentation; the rest is in `present.js`."""

from collections.abc import Sequence

import gradio as gr

from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.components import MAX_TEXT_CHARACTERS


def build(examples: Sequence[str]) -> gr.HTML:
    """The panel "Your sentences", which stay in the browser; `examples` replace a blank list."""
    panel = render(
        "page/present.html", examples=list(examples), most_characters=MAX_TEXT_CHARACTERS
    )
    return components.html_block(
        panel, js_on_load="window.fillmask.presenting.mount(element);", elem_id="own-sentences"
    )
