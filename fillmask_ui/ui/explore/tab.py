"""The Explore tab: its components and their wiring.

The components hold what is typed and picked; the tab's state is in the browser
(`explore.js`), which calls the functions of `SERVED` and shows their answers.
"""

import json
from typing import Any

import gradio as gr

from fillmask_ui.comparing.divergence_search import WORDS
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.components import QUIET
from fillmask_ui.ui.explore import present
from fillmask_ui.ui.explore.examples import EXAMPLE_SETS, EXAMPLES
from fillmask_ui.ui.explore.explore_modes import DOWNLOADS, MODES, SERVED
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
    inputs: dict[str, Any] = {}
    with gr.Row(elem_id="explore"):
        with gr.Column(elem_classes="fm-input", min_width=280):
            inputs["text"] = gr.Textbox(
                plain["text"],
                label="Sentence",
                info="click one of its words to hide it, or write [MASK]",
                lines=2,
                max_lines=8,
                placeholder="The capital of France is [MASK].",
                elem_id="sentence",
            )
        with gr.Column(elem_classes="fm-start", min_width=280):
            with gr.Row(elem_classes="fm-models"):
                inputs["model"] = components.model_picker(session, elem_id="model", min_width=180)
                inputs["compare"] = gr.Dropdown(
                    [("no other model", ""), *components.model_choices(session)],
                    value="",
                    label="Compare with",
                    info="a second model on the same sentence",
                    allow_custom_value=True,  # as of the first
                    filterable=True,
                    min_width=180,
                    elem_id="compare-with",
                )
            examples = render("page/explore/examples.html", sets=EXAMPLE_SETS)
            components.html_block(
                examples, js_on_load=components.static("examples.js"), elem_id="examples"
            )
            present.build([example.text for example in EXAMPLES])
        with gr.Column(elem_classes="fm-result", min_width=280):
            components.html_block(
                render(
                    "page/explore/stage.html",
                    plain=json.dumps(plain),
                    modes=MODES,
                    second=_second(session),
                    parting_words=WORDS,
                ),
                js_on_load=components.static("stage.js"),
                server_functions=[components.served(session, *item) for item in SERVED.items()],
            )
        with gr.Column(elem_classes="fm-options", min_width=280):
            inputs["words"] = gr.Textbox(
                label="Candidate words",
                info="also scored, separated by commas, of any number of tokens",
                placeholder="sat, slept, souvenir",
                elem_id="words",
            )
            inputs["top_k"] = gr.Slider(
                1, MAX_TOP_K, plain["top_k"], step=1, label="Top-k", elem_id="top-k"
            )
            inputs["unit"] = gr.Radio(
                ["nats", "bits"], value=plain["unit"], label="Unit of the loss", elem_id="unit"
            )
    components.html_block(render("page/explore/tables.html", downloads=list(DOWNLOADS)))

    # In the browser only: input goes to the state, the result of a click comes back.
    names = ", ".join(inputs)
    typed = f"({names}) => {{ window.fillmask.explore.typed({{ {names} }}); }}"
    gr.on([part.change for part in inputs.values()], None, [*inputs.values()], js=typed)
    controls = components.bridge("controls.js")
    read = f"() => window.fillmask.explore.controls({json.dumps([*inputs])})"
    controls.apply(None, None, [*inputs.values()], js=read, **QUIET)


def _second(session: Session) -> str:
    """The model that a comparison begins with: the next one at hand, or the same."""
    references = [reference for _, reference in components.model_choices(session)]
    return references[min(1, len(references) - 1)]
