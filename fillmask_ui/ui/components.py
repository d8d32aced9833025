"""HTML pieces of the tabs, and the bridges from the browser to Python."""

import functools
import inspect
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar
from urllib.parse import urlencode

import gradio as gr
from gradio.context import get_blocks_context
from gradio.events import Dependency

from fillmask_ui.errors import FillmaskError, explain
from fillmask_ui.extensions import features, load
from fillmask_ui.models import available_models
from fillmask_ui.schema import from_values
from fillmask_ui.show.charts import Chart
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import sentence
from fillmask_ui.ui.job import Jobs, Unfinished, Waiting
from fillmask_ui.ui.session import Session

P = ParamSpec("P")
R = TypeVar("R")

# For quick events that are not endpoints for programs.
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
# What the browser calls: session, JSON values -> JSON.
Served = Callable[[Session, dict[str, Any]], dict[str, Any]]


_STATIC = Path(__file__).parent / "static"


def static(name: str, folder: Path = _STATIC) -> str:
    """A script in `on_load/` of a folder, which a component runs once it is on the page."""
    return (folder / "on_load" / name).read_text(encoding="utf-8")


def page() -> gr.Blocks:
    """The page being built, for its load event."""
    blocks = get_blocks_context()
    if blocks is None:
        raise RuntimeError("a tab is built inside a gr.Blocks")
    return blocks.root_block


def notice_html(
    kind: Literal["hint", "error", "busy", "none"], text: str = "", fraction: float | None = None
) -> str:
    """A message, or nothing for `none`; `fraction` is the part done, in [0, 1]."""
    return render("page/notice.html", kind=kind, text=text, fraction=fraction)


def error_message(error: Exception) -> str:
    """An error as a sentence, capitalised unless it starts with a quoted name; bugs are logged.

    >>> error_message(FillmaskError("the text is empty")), error_message(FillmaskError("'x' is"))
    ('The text is empty', "'x' is")
    """
    if not isinstance(error, FillmaskError):
        traceback.print_exception(error)
    message, _ = explain(error)
    starts_with_word = message.split(" ", 1)[0].isalpha()
    return message[:1].upper() + message[1:] if starts_with_word else message


def error_html(error: Exception) -> str:
    """A notice of an error."""
    return notice_html("error", error_message(error))


def noticing(update: Callable[[str], Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a handler, or a generator of updates: on an error, return `update(notice)`."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def handle(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except Exception as error:  # noqa: BLE001 - the page must go on
                return update(error_html(error))

        @functools.wraps(function)
        def generate(*arguments: Any, **named: Any) -> Any:
            try:
                yield from function(*arguments, **named)
            except Exception as error:  # noqa: BLE001 - the page must go on
                yield update(error_html(error))

        return generate if inspect.isgeneratorfunction(function) else handle

    return decorate


def html_block(value: str = "", *, js_on_load: str | None = None, **options: Any) -> gr.HTML:
    """HTML without Gradio's prose style, which draws borders around cells."""
    return gr.HTML(value, js_on_load=js_on_load, apply_default_css=False, **options)


def place_of(part: str) -> gr.HTML:
    """Where an element of the first sight, by its id, moves once the page is built (`page.js`)."""
    script = f"window.fillmask.settle({json.dumps(part)});"
    html = f'<div data-place-of="{part}"></div>'
    return html_block(html, js_on_load=script, elem_id=f"place-of-{part}")


def clickable_table(**options: Any) -> gr.HTML:
    """Tables, chips or buttons; the event `row` carries the `key` of the one clicked."""
    return html_block(js_on_load=static("table.js"), **options)


def bridge(script: str) -> gr.HTML:
    """An invisible script from `static/on_load/`, whose triggers become events of the component."""
    return html_block(js_on_load=static(script), visible="hidden")


def answered(function: Served, session: Session, values: Any) -> dict[str, Any]:
    """The answer of a served function, or how far it is; errors become `error` and `notice`."""
    try:
        return function(session, values)
    except Unfinished as work:
        return work.state.busy_answer()
    except Exception as error:  # noqa: BLE001 - the page must go on
        message = error_message(error)
        return {"kind": "error", "notice": message, "error": message, "html": ""}


def served(session: Session, name: str, function: Served) -> Any:
    """Serve a function of the session and JSON values to the browser under `name`."""

    def serve(values: dict[str, Any]) -> dict[str, Any]:
        return answered(function, session, values)

    serve.__name__ = name
    return serve


def model_choices(session: Session) -> list[tuple[str, str]]:
    """Names and references of the models at hand, the default one first."""
    labels = {
        model.reference: f"{model.reference} · {model.note}" if model.note else model.reference
        for model in available_models()
    }
    if not session.public:  # its visitors must not see this machine's files
        for feature in features():
            for target in feature.models:
                labels |= load(target)()
    first = {session.default_model: labels.get(session.default_model, session.default_model)}
    return [(label, reference) for reference, label in (first | labels).items()]


def model_picker(session: Session, **options: Any) -> gr.Dropdown:
    """A choice of the models at hand that also takes any reference typed in."""
    plain = {
        "choices": model_choices(session),
        "value": session.default_model,
        "label": "Model",
        "info": "Choose a model" if session.public else "Choose, or type a Hub id or a path",
        "elem_classes": "fm-model",
    }
    # The session checks what is typed.
    return gr.Dropdown(**(plain | options), allow_custom_value=True, filterable=True)


def offer_new_models(session: Session, *pickers: gr.Dropdown) -> None:
    """Let pickers of a tab list the models at hand anew whenever a tab has made one."""
    blanks = [
        [(str(label), "") for label, reference in picker.choices if not reference]
        for picker in pickers
    ]

    def refresh() -> dict[gr.Dropdown, gr.Dropdown]:
        models = model_choices(session)
        return {
            picker: gr.Dropdown([*blank, *models])
            for picker, blank in zip(pickers, blanks, strict=True)
        }

    bridge("models.js").submit(refresh, None, [*pickers], **QUIET)


def linked_picker(session: Session, picker: gr.Dropdown, tab: str) -> None:
    """Tell a tab's script which model is picked; `TAB_model` in the address picks one."""

    def linked(request: gr.Request) -> Any:
        return request.query_params.get(f"{tab}_model") or gr.skip()

    plain = json.dumps(session.default_model)
    chosen = f"(model) => {{ window.fillmask.{tab}.use(model, {plain}); }}"
    picker.change(None, [picker], None, js=chosen)
    # Links inside the page name no model; the browser handles those.
    page().load(linked, None, [picker], **QUIET)
    offer_new_models(session, picker)


# Servers and chat programs cut addresses at about 8,000 characters.
MAX_TEXT_CHARACTERS = 2_000


def link_to(tab: str, **state: str) -> str:
    """A link to a tab with a state, for the browser (`page.follow`)."""
    return urlencode({"tab": tab, **state})


def link() -> gr.HTML:
    """An invisible output: the `link_to` that a handler returns for it opens at once."""
    return bridge("link.js")


def on_link(take: Callable[[Mapping[str, str]], Any], outputs: Sequence[Any]) -> None:
    """Handle links to Evaluate: the page's address if it names the tab, and those from other tabs.

    `take` makes updates of the outputs from the parameters of a link.
    """

    def follow(event: gr.EventData) -> Any:
        return take(from_values(dict[str, str], event.parameters, "the link"))

    bridge("link_target.js").follow(follow, None, outputs, **QUIET)


_POLL_SECONDS = 0.4
Parts = dict[str, Any]  # of a tab by name: its components, or new values of them
Event = Callable[..., Dependency]


def changes(parts: Parts, values: Parts) -> dict[Any, Any]:
    """New values of parts for Gradio, which needs at least one."""
    return {parts[name]: value for name, value in values.items()} or {parts["notice"]: gr.skip()}


def job_changes(status: Waiting) -> Parts:
    """What a tab says of its job, and its buttons meanwhile."""
    kind: Any = "none" if status.ended else "busy"
    text = status.message
    if status.state == "failed":
        kind, text = "error", sentence(text)
    return {"notice": notice_html(kind, text, status.fraction), **busy(not status.ended)}


def busy(going: bool) -> Parts:
    """The buttons of a tab while a job goes on, or not."""
    return {"run": gr.update(interactive=not going), "cancel": gr.update(interactive=going)}


def answering(jobs: Jobs, parts: Parts, act: Callable[..., Parts]) -> Any:
    """The handler that calls `act` with the page that asks, and values; it gives changes."""

    def handle(request: gr.Request, *values: Any) -> Any:
        guarded = noticing(lambda notice: {"notice": notice})(act)
        return changes(parts, guarded(jobs.page(request.session_hash or ""), *values))

    return handle


def wire(
    jobs: Jobs,
    parts: Parts,
    starts: Sequence[tuple[Event, Callable[..., Parts | None], Mapping[str, Any]]],
    show: Callable[[Any, Waiting], Parts],
    *,
    arrived: Callable[[Any], Parts],
    listed: Sequence[str],
) -> Dependency:
    """Connect a tab to its jobs: pages poll the job that they follow. Returns their arrival.

    No event stays open meanwhile, so that a page can be closed or reloaded at any time.

    Args:
        jobs: of the tab.
        parts: of the tab, `notice`, `run` and `cancel` among them.
        starts: events that start a job, each with a function of the page and of the inputs by name
            that calls `Page.start`; it may return changes of its own.
        show: a page and the new status of its job -> changes beside those of `job_changes`.
        arrived: a page that opens -> changes beside those of its job.
        listed: that `arrived` may change. Few: Gradio rebuilds each, and every visitor waits.
    """
    timer = gr.Timer(_POLL_SECONDS, active=False)
    parts = {"timer": timer, **parts}
    # Only the browser knows its visitor's id.
    who = [gr.Textbox(visible=False), gr.Textbox(visible=False)]
    failing = noticing(lambda notice: {"notice": notice, **busy(False)})

    def status_changes(page: Any) -> Parts:
        status = page.news()
        if status is None:
            return {}
        values = job_changes(status) | failing(show)(page, status)
        return values | ({"timer": gr.Timer(active=False)} if status.ended else {})

    def starting(begin: Callable[..., Parts | None]) -> Callable[..., Any]:
        @failing
        def start(page: Any, values: Parts) -> Parts:
            start_changes = begin(page, **values) or {}
            return {"timer": gr.Timer(active=True)} | start_changes | status_changes(page)

        def handle(request: gr.Request, **values: Any) -> Any:
            return changes(parts, start(jobs.page(request.session_hash or ""), values))

        return handle

    def arrive(request: gr.Request, visitor: str, name: str) -> Any:
        page = jobs.arrive(request.session_hash or "", visitor, name)
        job = page.take_up()
        if job is None:
            return changes(parts, arrived(page))
        # The figures follow with the next tick of the timer.
        message = job.poll().message or "Reading the figures…"
        busy_changes = {"timer": gr.Timer(active=True), "notice": notice_html("busy", message)}
        return changes(parts, busy_changes | arrived(page))

    def stop(request: gr.Request) -> None:
        jobs.page(request.session_hash or "").cancel()

    few = [timer, parts["notice"], *(parts[name] for name in listed)]
    arrival = page().load(arrive, who, few, js=static("visitor.js"), **QUIET)
    every = [*parts.values()]
    for event, begin, inputs in starts:
        event(
            starting(begin), None, every, inputs_kwargs=dict(inputs), trigger_mode="once", **QUIET
        )
    tick = answering(jobs, parts, status_changes)
    timer.tick(tick, None, every, trigger_mode="once", queue=False, **QUIET)
    parts["cancel"].click(stop, None, None, queue=False, **QUIET)
    return arrival


def chart_place(name: str, elem_id: str, *, table: bool = True, **options: Any) -> Parts:
    """Create a hidden place for a chart."""
    with gr.Column(visible=False, elem_classes="fm-chart", elem_id=elem_id, **options) as box:
        parts: Parts = {
            f"box {name}": box,
            f"head {name}": html_block(),
            f"plot {name}": gr.Plot(show_label=False, elem_id=f"plot-{name}"),
        }
        return parts | ({f"table {name}": html_block()} if table else {})


def chart_in(name: str, chart: Chart | None, parts: Sequence[str] = ("head", "table")) -> Parts:
    """A chart in its place, with what stands beside its plot; hidden without one."""
    values: Parts = {f"box {name}": gr.update(visible=chart is not None)}
    if chart is not None:
        values[f"plot {name}"] = chart.figure
        for part in parts:
            values[f"{part} {name}"] = render(f"ui/chart_{part}.html", chart=chart)
    return values
