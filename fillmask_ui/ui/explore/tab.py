"""The Explore tab: its components and how they are wired."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gradio as gr

from fillmask_ui.errors import FillmaskError
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.show.render import render
from fillmask_ui.ui import widgets
from fillmask_ui.ui.background import Turns
from fillmask_ui.ui.explore import address, handlers
from fillmask_ui.ui.explore.editing import Draft
from fillmask_ui.ui.explore.view import UNITS, Question
from fillmask_ui.ui.links import on_link
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import QUIET

EXAMPLES = (
    "Water freezes when it gets very [MASK].",
    "The cat sat on the [MASK].",
    "The opposite of hot is [MASK].",
    "The [MASK] of Walden Pond is so beautifully [MASK].",
    "The capital of France is [MASK].",
    "She poured the [MASK] into a cup and drank it.",
    "A [MASK] treats patients and a [MASK] teaches children.",
    "They sat on the [MASK] of the river to fish.",
)
_SETTLE = "() => { window.fillmask.settle?.(); }"
# By name: inputs by the fields of `Question`, outputs as `handlers.updates` names them.
Parts = dict[str, Any]


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    default = Question(EXAMPLES[0], session.default_model)
    inputs: Parts = {}
    with gr.Row(elem_id="explore"):
        with gr.Column(elem_classes="fm-input", min_width=280):
            inputs["text"] = gr.Textbox(
                default.text,
                label="Sentence",
                info="write [MASK] or three underscores where a word is hidden",
                lines=2,
                max_lines=8,
                placeholder="The capital of France is [MASK].",
                elem_id="sentence",
            )
            run = gr.Button("Predict", variant="primary", elem_id="predict")
            chips = render("page/chips.html", texts=EXAMPLES, label="Examples")
            examples = widgets.clickable_table(chips, elem_id="examples")
        with gr.Column(elem_classes="fm-result", min_width=280):
            outputs = _result()
        with gr.Column(elem_classes="fm-options", min_width=280):
            inputs["words"] = gr.Textbox(
                default.words,
                label="Candidate words",
                info="separated by commas, of any number of tokens",
                placeholder="sat, slept, souvenir",
                elem_id="words",
            )
            inputs["top_k"] = gr.Slider(
                1, MAX_TOP_K, default.top_k, step=1, label="Top-k", elem_id="top-k"
            )
            inputs["unit"] = gr.Radio(
                list(UNITS), value=default.unit, label="Unit of the loss", elem_id="unit"
            )
            inputs["model"] = widgets.model_picker(session, elem_id="model")
    with gr.Column(elem_classes="fm-tables"):
        outputs["scored"] = widgets.html_block(visible=False, elem_id="scored")
        outputs["joint"] = widgets.clickable_table(visible=False, elem_id="joint")
        with gr.Accordion("Details", open=False, visible=False, elem_id="details") as panel:
            outputs |= {"panel": panel, "details": widgets.html_block()}
    inputs |= {name: outputs[name] for name in ("selected", "draft")}

    _wire_prediction(session, inputs, outputs, run)
    _wire_clicks(session, inputs, outputs, examples)
    _wire_downloads(session, inputs, outputs)
    _wire_links(inputs, default)


def _result() -> Parts:
    """The components that show one mask, and what lies behind them."""
    outputs: Parts = {
        "draft": gr.State(Draft()),
        "filling": gr.State(None),
        "notice": widgets.html_block(widgets.notice_html("none"), elem_id="notice"),
        "strip": widgets.html_block(
            js_on_load=widgets.static("strip.js"), elem_id="strip", visible=False
        ),
        # A number and no gr.Radio, which refuses what an earlier answer did not offer.
        "selected": gr.Number(0, precision=0, visible="hidden"),
        "choices": widgets.clickable_table(visible=False, elem_id="mask"),
        "stats": widgets.html_block(visible=False, elem_id="stats"),
        "chart": gr.Plot(show_label=False, visible=False, elem_id="chart"),
        "chart_note": widgets.html_block(visible=False),
        "candidates": widgets.clickable_table(visible=False, elem_id="candidates"),
    }
    with gr.Row(visible=False, elem_id="downloads") as outputs["downloads"]:
        widgets.html_block('<span class="fm-note">Download</span>')
    return outputs


def _updates(parts: Parts, values: Mapping[str, Any]) -> Any:
    """Values by name as updates of the components of that name; the others stay."""
    return {parts[name]: value for name, value in values.items()} or gr.skip()


def _wire_prediction(session: Session, inputs: Parts, outputs: Parts, run: gr.Button) -> None:
    settled, turns = widgets.bridge("pulse.js", "0"), gr.State(Turns())
    outputs = {"echo": widgets.bridge("echo.js", "0"), **outputs}

    def predict(turns: Turns, number: str, **values: Any) -> Iterator[Any]:
        for update in handlers.predictions(session, Question(**values), turns, int(number)):
            yield _updates(outputs, update)

    # One event for every change: while a question is being answered, the latest one waits.
    options: dict[str, Any] = {"trigger_mode": "always_last", "concurrency_limit": 8, **QUIET}
    settled.submit(predict, [turns, settled], [*outputs.values()], inputs_kwargs=inputs, **options)
    changing = [inputs[name].change for name in ("text", "top_k", "words", "unit", "selected")]
    gr.on([*changing, run.click, inputs["text"].submit], None, js=_SETTLE)
    # A model that takes long to load must not hold up the choice of another one. Only once
    # what went before is given up, the next question is asked.
    inputs["model"].change(Turns.give_up, turns, None, queue=False, **QUIET).then(None, js=_SETTLE)


def _wire_clicks(session: Session, inputs: Parts, outputs: Parts, examples: gr.HTML) -> None:
    changed = [inputs[name] for name in ("text", "draft", "selected")]
    bars = widgets.bridge("chart.js", CHART_ID="chart")

    def token(event: gr.EventData, **values: Any) -> Any:
        place = (event.token, event.action, event.version)
        return made(lambda: handlers.clicked_token(session, Question(**values), *place))

    def candidate(event: gr.EventData, **values: Any) -> Any:
        return made(lambda: handlers.clicked_candidate(session, Question(**values), event.key))

    def made(click: Callable[[], Question]) -> Any:
        try:
            question = click()
        except FillmaskError:
            return gr.skip()  # the notice already says what is wrong
        return [question.text, question.draft, question.selected]

    def example(event: gr.EventData) -> Any:
        text = EXAMPLES[int(event.key)]
        return [text, Draft(text, (None,) * text.count("[MASK]")), 0]

    def choice(event: gr.EventData) -> int:
        return int(event.key)

    options: dict[str, Any] = {"trigger_mode": "multiple", **QUIET}
    outputs["strip"].token(token, None, changed, inputs_kwargs=inputs, **options)
    for event in (outputs["candidates"].row, outputs["joint"].row, bars.mark):
        event(candidate, None, changed, inputs_kwargs=inputs, **options)
    examples.row(example, None, changed, **options)
    outputs["choices"].row(choice, None, inputs["selected"], **QUIET)


def _wire_downloads(session: Session, inputs: Parts, outputs: Parts) -> None:
    parts = {"file": gr.Textbox(visible="hidden", elem_id="file"), "notice": outputs["notice"]}

    def write(label: str, filling: Any, **values: Any) -> Any:
        return _updates(parts, handlers.downloaded(session, label, Question(**values), filling))

    for label, (name, kind) in handlers.DOWNLOADS.items():
        with outputs["downloads"]:
            button = gr.Button(label, size="sm")
        # The file goes to the browser and is saved there: none is left on the server.
        save = f"if (text) window.fillmask.save('{name}', '{kind}', text);"
        button.click(
            write, [button, outputs["filling"]], [*parts.values()], inputs_kwargs=inputs, **QUIET
        ).then(None, parts["file"], parts["file"], js=f"(text) => {{ {save} return ''; }}")


def _wire_links(inputs: Parts, default: Question) -> None:
    kept = [inputs[field] for field in address.FIELDS.values()]

    def take(parameters: Mapping[str, str]) -> Any:
        # What is not in the link stays: a quick visitor may have begun to type.
        named = [field for name, field in address.FIELDS.items() if name in parameters]
        question = address.read(parameters, default)
        return _updates(inputs, {field: getattr(question, field) for field in named})

    settle = "if (window.location.search) window.fillmask.settle?.();"
    loaded = on_link("explore", take, kept)
    loaded.then(None, js=f"() => {{ window.fillmask.loaded = true; {settle} }}")
    gr.on([part.change for part in kept], None, kept, js=address.write_script(default))
