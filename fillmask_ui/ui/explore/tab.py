"""The Explore tab: its fields and its stage.

The tab's state is in the browser (`explore.js`), which calls the functions of `explore_modes` and
shows their answers.
"""

import contextlib
import json
import threading
from typing import Any

import gradio as gr

from fillmask_ui.errors import FillmaskError
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.show.charts.chart import new_figure
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.components import MAX_TEXT_CHARACTERS, QUIET
from fillmask_ui.ui.explore.downloads import DOWNLOADS
from fillmask_ui.ui.explore.examples import EXAMPLE_SETS, EXAMPLES
from fillmask_ui.ui.explore.explore_answer import answer
from fillmask_ui.ui.explore.explore_modes import modes, served
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.job import Unfinished
from fillmask_ui.ui.session import Session


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    plain: dict[str, Any] = {
        "text": EXAMPLES[0].text,
        "model": session.default_model,
        "compare": "",
        "top_k": 10,
        "words": "",
        "unit": "nats",
    }
    models = components.model_choices(session)
    with gr.Row(elem_id="explore"):
        components.html_block(render("explore/sentence.html", **plain))
        pickers = {
            "model": components.model_picker(session, elem_id="model", min_width=180),
            "compare": gr.Dropdown(
                models,
                value="",
                label="Candidate",
                allow_custom_value=True,  # as of the first
                filterable=True,
                min_width=180,
                elem_id="compare-with",
                elem_classes="fm-model",
            ),
        }
        components.html_block(
            render("explore/examples.html", sets=EXAMPLE_SETS, most_characters=MAX_TEXT_CHARACTERS),
            js_on_load=components.static("examples.js"),
            elem_id="examples",
        )
        stage = {
            "plain": json.dumps(plain),
            "modes": modes(),
            # A comparison begins with the next model at hand, or the same.
            "second": models[min(1, len(models) - 1)][1],
            "max_top_k": MAX_TOP_K,
            "downloads": list(DOWNLOADS),
            "top_k": plain["top_k"],
        }
        shown = components.html_block(
            render("explore/stage.html", first=None, **stage),
            js_on_load="window.fillmask.explore.begin(element.querySelector('#stage'), server);",
            server_functions=[components.served(session, *item) for item in served().items()],
            elem_id="explore-stage",
        )
    page = components.page()

    async def begin() -> None:
        threading.Thread(target=prepare, daemon=True, name="first answer").start()

    def prepare() -> None:
        """Load what visitors would wait for; the page is then sent with its first answer."""
        # The first visitor to use the model sees the error.
        with contextlib.suppress(FillmaskError, Unfinished):
            session.model("")
            first = answer(session, Question(**plain))
            found = next(part for part in page.config["components"] if part["id"] == shown._id)
            found["props"]["value"] = render("explore/stage.html", first=first, **stage)
        new_figure("")  # imports plotly

    # Only once the page answers: until then the two would hold each other up.
    page.extra_startup_events.append(begin)

    # In the browser only: a model that is picked goes to the state, one of a link comes back.
    names = ", ".join(pickers)
    picked = f"({names}) => {{ window.fillmask.explore.picked({{ {names} }}); }}"
    gr.on([part.change for part in pickers.values()], None, [*pickers.values()], js=picked)
    bridge = components.bridge("controls.js")
    read = f"() => window.fillmask.explore.models({json.dumps([*pickers])})"
    bridge.apply(None, None, [*pickers.values()], js=read, **QUIET)
