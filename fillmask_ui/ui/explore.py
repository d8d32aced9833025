"""The Explore tab: its components and how they are wired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

import gradio as gr

from fillmask_ui.errors import FillmaskError
from fillmask_ui.records import Filling
from fillmask_ui.ui import address, widgets
from fillmask_ui.ui.background import Done, Turns, run_in_background
from fillmask_ui.ui.editing import Draft
from fillmask_ui.ui.explore_view import (
    MAX_TOP_K,
    UNITS,
    Answer,
    Question,
    answer,
    clicked_candidate,
    clicked_token,
    sentence,
    whole_vocabulary,
)
from fillmask_ui.ui.links import on_link
from fillmask_ui.ui.results import filling_csv, selector_html
from fillmask_ui.ui.session import Session

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
DEFAULT_TOP_K = 10
_SETTLE = "() => { window.fillmask.settle?.(); }"
DOWNLOADS = ("CSV", "JSON", "CSV, all tokens")


@dataclass(frozen=True)
class _Inputs:
    """In the order of `Question`."""

    text: gr.Textbox
    model: gr.Dropdown
    top_k: gr.Slider
    words: gr.Textbox
    unit: gr.Radio
    selected: gr.Number
    draft: gr.State


@dataclass(frozen=True)
class _Outputs:
    """In the order of what `shown` returns."""

    notice: gr.HTML
    strip: gr.HTML
    selected: gr.Number
    selector: gr.HTML
    stats: gr.HTML
    chart: gr.Plot
    chart_note: gr.HTML
    candidates: gr.HTML
    downloads: gr.Row
    scored: gr.HTML
    joint: gr.HTML
    panel: gr.Accordion
    details: gr.HTML
    filling: gr.State
    draft: gr.State


def _members(parts: Any) -> list:
    return [getattr(parts, field.name) for field in fields(parts)]


def build(session: Session) -> None:
    """Create the tab's components and wire them.

    Args:
        session: the models that all visitors share.
    """
    draft, filling = gr.State(Draft()), gr.State(None)
    with gr.Row(elem_id="explore"):
        with gr.Column(elem_classes="fm-input", min_width=280):
            text = gr.Textbox(
                EXAMPLES[0],
                label="Sentence",
                info="write [MASK] or three underscores where a word is hidden",
                lines=2,
                max_lines=8,
                placeholder="The capital of France is [MASK].",
                elem_id="sentence",
            )
            run = gr.Button("Predict", variant="primary", elem_id="predict")
            examples = widgets.chips(EXAMPLES, "Examples", elem_id="examples")
        with gr.Column(elem_classes="fm-result", min_width=280):
            notice = widgets.html_block(widgets.notice_html("none"), elem_id="notice")
            strip = widgets.token_strip(elem_id="strip", visible=False)
            # A number and no gr.Radio, which refuses what an earlier answer did not offer.
            selected = gr.Number(0, precision=0, visible="hidden")
            selector = widgets.clickable_table(visible=False, elem_id="mask")
            stats = widgets.html_block("", visible=False, elem_id="stats")
            chart = gr.Plot(show_label=False, visible=False, elem_id="chart")
            chart_note = widgets.html_block("", visible=False)
            candidates = widgets.clickable_table(visible=False, elem_id="candidates")
            with gr.Row(visible=False, elem_id="downloads") as downloads:
                widgets.html_block('<span class="fm-note">Download</span>')
                buttons = [gr.Button(name, size="sm") for name in DOWNLOADS]
        with gr.Column(elem_classes="fm-options", min_width=280):
            words = gr.Textbox(
                "",
                label="Candidate words",
                info="separated by commas, of any number of tokens",
                placeholder="sat, slept, souvenir",
                elem_id="words",
            )
            top_k = gr.Slider(1, MAX_TOP_K, DEFAULT_TOP_K, step=1, label="Top-k", elem_id="top-k")
            unit = gr.Radio(list(UNITS), value=UNITS[0], label="Unit of the loss", elem_id="unit")
            model = widgets.model_picker(session, elem_id="model")
    with gr.Column(elem_classes="fm-tables"):
        scored = widgets.html_block("", visible=False, elem_id="scored")
        joint = widgets.clickable_table(visible=False, elem_id="joint")
        with gr.Accordion("Details", open=False, visible=False, elem_id="details") as panel:
            details = widgets.html_block("")

    inputs = _Inputs(text, model, top_k, words, unit, selected, draft)
    _wire_prediction(
        session,
        inputs,
        _Outputs(
            notice,
            strip,
            selected,
            selector,
            stats,
            chart,
            chart_note,
            candidates,
            downloads,
            scored,
            joint,
            panel,
            details,
            filling,
            draft,
        ),
        run,
    )
    _wire_clicks(session, inputs, strip, [candidates.row, joint.row], examples)
    selector.row(_chosen, None, selected, show_progress="hidden", api_visibility="private")
    _wire_downloads(session, inputs, filling, notice, buttons)
    _wire_address(session, inputs)


def _wire_prediction(session: Session, inputs: _Inputs, outputs: _Outputs, run: gr.Button) -> None:
    settled, echo, turns = widgets.pulse(), widgets.echo(), gr.State(Turns())

    def predict(turns: Turns, number: str, *values: Any) -> Iterator[tuple]:
        yield from predictions(session, Question(*values), turns, int(number))

    # One event for every change: while a question is being answered, the latest one waits.
    settled.submit(
        predict,
        [turns, settled, *_members(inputs)],
        [echo, *_members(outputs)],
        show_progress="hidden",
        trigger_mode="always_last",
        concurrency_limit=8,
        api_visibility="private",
    )
    changing = (inputs.text, inputs.top_k, inputs.words, inputs.unit, inputs.selected)
    triggers = [*(part.change for part in changing), run.click, inputs.text.submit]
    gr.on(triggers, None, js=_SETTLE)
    # A model that takes long to load must not hold up the choice of another one. Only once
    # what went before is given up, the next question is asked.
    inputs.model.change(
        Turns.give_up, turns, None, queue=False, show_progress="hidden", api_visibility="private"
    ).then(None, js=_SETTLE)


def _wire_clicks(
    session: Session, inputs: _Inputs, strip: gr.HTML, rows: list, examples: gr.HTML
) -> None:
    def token(event: gr.EventData, *values: Any) -> tuple:
        return on_token(session, Question(*values), event.token, event.action, event.version)

    def candidate(event: gr.EventData, *values: Any) -> tuple:
        return on_candidate(session, Question(*values), event.key)

    def example(event: gr.EventData) -> tuple:
        return on_example(event.key)

    bars = widgets.chart_bridge("chart")
    changed = [inputs.text, inputs.draft, inputs.selected]
    options = {"show_progress": "hidden", "trigger_mode": "multiple", "api_visibility": "private"}
    strip.token(token, _members(inputs), changed, **options)
    for event in (*rows, bars.mark):
        event(candidate, _members(inputs), changed, **options)
    examples.row(example, None, changed, **options)


def _wire_downloads(
    session: Session,
    inputs: _Inputs,
    filling: gr.State,
    notice: gr.HTML,
    buttons: list[gr.Button],
) -> None:
    def everything(*values: Any) -> tuple[str, Any]:
        return everything_csv(session, Question(*values))

    file = gr.Textbox(visible="hidden", elem_id="file")
    shown_csv, shown_json, all_csv = buttons
    for button, make, given, made, name, kind in (
        (shown_csv, csv_of, filling, file, "fillmask.csv", "text/csv"),
        (shown_json, json_of, filling, file, "fillmask.json", "application/json"),
        (all_csv, everything, _members(inputs), [file, notice], "fillmask-all.csv", "text/csv"),
    ):
        # The file goes to the browser and is saved there: none is left on the server.
        save = f"if (text) window.fillmask.save('{name}', '{kind}', text);"
        button.click(make, given, made, show_progress="hidden", api_visibility="private").then(
            None, file, file, js=f"(text) => {{ {save} return ''; }}"
        )


def _wire_address(session: Session, inputs: _Inputs) -> None:
    default = address.ExploreState(EXAMPLES[0], session.default_model, DEFAULT_TOP_K)
    kept = [inputs.text, inputs.model, inputs.top_k, inputs.words, inputs.unit]

    def take(parameters: Mapping[str, str]) -> Any:
        state = address.read(parameters, default, most=MAX_TOP_K, units=UNITS)
        values = dict(zip(kept, astuple(state), strict=True))
        # What is not in the link stays: a quick visitor may have begun to type.
        named = zip(kept, (field.name for field in fields(state)), strict=True)
        return {part: values[part] for part, name in named if name in parameters} or gr.skip()

    on_link("explore", take, kept).then(
        None,
        js="() => { window.fillmask.loaded = true; "
        "if (window.location.search) window.fillmask.settle?.(); }",
    )
    gr.on(
        [component.change for component in kept],
        None,
        kept,
        js=address.write_script(default),
    )


def predictions(session: Session, question: Question, turns: Turns, number: int) -> Iterator[tuple]:
    """Updates of the echo and the tab's outputs: while the answer takes time, then the answer.

    Args:
        session: the page's models.
        question: the inputs.
        turns: of this visitor; where a later question was answered, nothing more is told.
        number: of the question.
    """
    turns.ask(number)
    for state in run_in_background(lambda tell: answer(session, question, tell)):
        if isinstance(state, Done):
            if turns.answer(number):
                yield (str(number), *shown(state.result))
        elif not turns.wants(number):
            return
        else:
            busy = widgets.notice_html("busy", state.message or "Working…", state.fraction)
            yield (gr.skip(), busy, *[gr.skip()] * (len(fields(_Outputs)) - 1))


def shown(found: Answer) -> tuple:
    """An answer as updates of the tab's outputs, in the order of `_Outputs`."""
    some = found.filling is not None
    return (
        widgets.notice_html(found.kind, found.notice),
        _html(found.strip),
        found.selected,
        _html(selector_html(found.choices, found.selected)),
        _html(found.stats),
        gr.Plot(found.figure, visible=some),
        _html(f'<p class="fm-note">{found.chart_note}</p>' if found.chart_note else ""),
        _html(found.candidates),
        gr.Row(visible=some),
        _html(found.scored),
        _html(found.joint),
        gr.Accordion(visible=some),
        found.details,
        found.filling,
        found.draft,
    )


def _html(value: str) -> Any:
    return gr.HTML(value, visible=bool(value))


def on_token(
    session: Session, question: Question, token: int, action: str, version: str
) -> tuple[Any, Any, Any]:
    """A click on the strip: new text, words behind its masks, mask shown."""
    try:
        click = clicked_token(session, question, token, action, version)
    except FillmaskError:
        return gr.skip(), gr.skip(), gr.skip()  # the notice already says what is wrong
    return click.draft.text, click.draft, click.selected


def on_candidate(session: Session, question: Question, key: str) -> tuple[Any, Any, Any]:
    """A click on a row or bar: new text, words behind its masks, mask shown."""
    try:
        draft = clicked_candidate(session, question, key)
    except FillmaskError:
        return gr.skip(), gr.skip(), gr.skip()
    return draft.text, draft, 0


def _chosen(event: gr.EventData) -> int:
    return int(event.key)


def on_example(number: str) -> tuple[str, Draft, int]:
    """A click on an example: its text, nothing known behind its masks, the first mask."""
    text = EXAMPLES[int(number)]
    return text, Draft(text, (None,) * text.count("[MASK]")), 0


def csv_of(filling: Filling | None) -> str:
    """What is shown as CSV."""
    return "" if filling is None else filling_csv(filling)


def everything_csv(session: Session, question: Question) -> tuple[str, Any]:
    """All tokens at each mask as CSV and no notice, or nothing and why."""
    try:
        return filling_csv(whole_vocabulary(session, question)), gr.skip()
    except FillmaskError as error:
        return "", widgets.notice_html("error", sentence(error))


def json_of(filling: Filling | None) -> str:
    """What is shown as JSON, as `fillmask-ui predict --json` prints it."""
    return "" if filling is None else filling.to_json(indent=2)
