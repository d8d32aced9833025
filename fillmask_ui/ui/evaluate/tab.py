"""The Evaluate tab: its components and how they are wired."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from fillmask_ui.cluster import EngineChoice
from fillmask_ui.options import options_of
from fillmask_ui.ui import widgets
from fillmask_ui.ui.evaluate import controls, outputs, view
from fillmask_ui.ui.evaluate.desk import Desk, Selection, Workbench
from fillmask_ui.ui.evaluate.outputs import FILE_BUTTONS, Parts, changes
from fillmask_ui.ui.evaluate.view import Update
from fillmask_ui.ui.links import link, link_to, on_link
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import QUIET, notice_html, noticing

# More may be asked for at a time than run at a time: who waits is told so, and can cancel. Each
# takes a thread of the page, so that not too many may wait.
_JOBS: dict[str, Any] = {"concurrency_limit": 6, "concurrency_id": "evaluate", **QUIET}
_CONFIRM = "(name) => name && confirm('Delete the run ' + name + '?') ? name : null"
_REVEAL = "() => window.fillmask.reveal(document.querySelector('#evaluate .fm-result'))"
_COPY = "() => window.fillmask.copy_link()"
_SAVE = "() => { setTimeout(() => document.querySelector('#run-file')?.click(), 50); }"


def build(session: Session, root: Path | None = None) -> None:
    """Create the tab's components and wire them.

    Args:
        session: the models that all visitors share.
        root: where runs are kept; None for the usual place.
    """
    bench = Workbench(session, root)
    session.stored_runs = bench.store
    with gr.Row(elem_id="evaluate"):
        with gr.Column(elem_classes="fm-input", min_width=280):
            inputs = controls.build(session)
            with gr.Row(elem_id="evaluate-buttons"):
                run = gr.Button("Run", variant="primary", elem_id="evaluate-run")
                cancel = gr.Button("Cancel", interactive=False, elem_id="evaluate-cancel")
        with gr.Column(elem_classes="fm-result", min_width=280):
            parts = {"run": run, "cancel": cancel, **outputs.build_result()}
    with gr.Column(elem_id="evaluate-folds"):
        parts |= outputs.build_charts() | outputs.build_tokens() | outputs.build_runs()
    parts |= {outputs.control(name): component for name, component in inputs.items()}
    _wire_jobs(bench, inputs, parts)
    _wire_tokens(bench, parts)
    _wire_runs(bench, inputs, parts)


def _wire_jobs(bench: Workbench, inputs: controls.Controls, parts: Parts) -> None:
    def run(request: gr.Request, **values: Any) -> Iterator[Any]:
        desk = _desk(bench, request)
        for update in view.job_updates(desk, lambda: desk.begin(values)):
            yield changes(parts, update)

    def resume(request: gr.Request, name: str | None, **values: Any) -> Iterator[Any]:
        desk = _desk(bench, request)
        for update in view.job_updates(desk, lambda: desk.resume(name or "", values)):
            yield changes(parts, update)

    def arrive(request: gr.Request, visitor: str, page: str) -> Any:
        desk = bench.arrive(request.session_hash or "", visitor, page)
        return changes(parts, Update(runs=view.run_list(desk)))

    def take_up(request: gr.Request) -> Iterator[Any]:
        for update in view.taken_up(_desk(bench, request)):
            yield changes(parts, update)

    def cancel(request: gr.Request) -> None:
        _desk(bench, request).cancel()

    def leave(request: gr.Request) -> None:
        bench.forget(request.session_hash or "")

    every = [*parts.values()]
    # A run has its own choices; where it goes on is as the controls say.
    engine = {name: inputs[name] for name in options_of(EngineChoice) if name in inputs}
    resumed = {"name": parts["picked"], **engine}
    once: dict[str, Any] = {"trigger_mode": "once", **_JOBS}
    # Who asks is known to the browser alone.
    who = [gr.Textbox(visible=False), gr.Textbox(visible=False)]
    # No more outputs than it needs: Gradio makes each of them anew, and every visitor waits for it.
    listed = [parts[name] for name in ("runs", "picked", "other")]
    arrival = widgets.page().load(arrive, who, listed, js=widgets.static("visitor.js"), **QUIET)
    jobs = [
        arrival.then(take_up, None, every, **_JOBS),
        parts["run"].click(run, None, every, inputs_kwargs=inputs, **once),
        parts["resume"].click(resume, None, every, inputs_kwargs=resumed, **once),
    ]
    for job in jobs:
        job.then(lambda: gr.Button(interactive=True), None, parts["run"], **QUIET)
    parts["cancel"].click(cancel, None, None, queue=False, **QUIET)
    widgets.page().unload(leave)


def _wire_tokens(bench: Workbench, parts: Parts) -> None:
    def choose(
        request: gr.Request,
        selection: Selection,
        order: str,
        low: float | None,
        high: float | None,
        saw: str,
    ) -> Any:
        update = view.chosen_tokens(_desk(bench, request), selection, order, low, high, saw)
        # The filters asked for it; to set them again would ask once more.
        return changes(parts, update, filters=False)

    def clicked_in(side: gr.HTML) -> Callable[..., Iterator[Any]]:
        """What a click in a list of tokens does, and where it says so."""

        def click(
            event: gr.EventData, request: gr.Request, selection: Selection, found: tuple
        ) -> Iterator[Any]:
            desk = _desk(bench, request)
            action, _, place = str(event.key).partition(":")
            if not place.isdecimal() or int(place) >= len(found):
                return
            token = found[int(place)]
            if action == "show":
                for html in view.side_by_side(desk, selection, token):
                    yield {side: html}
                return
            yield {opened: link_to("explore", **view.explore_state(desk, selection, token))}

        return click

    opened, bounds = link(), [parts["low"], parts["high"]]
    asked: dict[str, Any] = {
        "fn": choose,
        "inputs": [parts["selection"], parts["order"], *bounds, parts["saw"]],
        "outputs": [*parts.values()],
        "show_progress": "minimal",
        "show_progress_on": parts["tokens"],
        "api_visibility": "private",
    }
    by_hand = [parts[name].input for name in ("order", "saw", "low", "high")]
    gr.on(by_hand, trigger_mode="always_last", **asked)
    for table, side in (("tokens", parts["token side"]), ("worst", parts["side"])):
        parts[table].row(
            clicked_in(side),
            [parts["selection"], parts["found"]],
            [side, opened],
            trigger_mode="always_last",
            **QUIET,
        )
    brush = widgets.bridge("brush.js")
    # Both bounds are set first: asked for by the change of one, the other might be the old one.
    brush.range(chosen_range, None, bounds, **QUIET).then(**asked)
    parts["any loss"].click(lambda: (None, None), None, bounds, **QUIET).then(**asked)


def chosen_range(event: gr.EventData) -> tuple[float | None, float | None]:
    """The losses that were chosen on the histogram; none when the choice was taken back."""
    low, high = (_nats(bound) for bound in (event.low, event.high))
    return (None if low is None else max(0.0, low)), high


def _nats(value: Any) -> float | None:
    try:
        return round(float(value), 2)
    except (TypeError, ValueError):
        return None


def _wire_runs(bench: Workbench, inputs: controls.Controls, parts: Parts) -> None:
    def stored(request: gr.Request, run: str | None, other: str | None = None) -> Any:
        selection = Selection(run or "", other or "")
        return changes(parts, view.stored(_desk(bench, request), selection))

    def row(event: gr.EventData, request: gr.Request) -> Any:
        return stored(request, str(event.key))

    def take(link: Mapping[str, str]) -> list[Any]:
        named = (link.get(f"evaluate_{name}") or gr.skip() for name in ("model", "baseline"))
        return [view.linked(link), *named]

    def delete(request: gr.Request, name: str | None) -> Any:
        desk = _desk(bench, request)
        return changes(parts, view.deleted(desk, name) if name else Update())

    def follow(request: gr.Request, selection: Selection) -> Any:
        if not selection.run:  # a page that opens names none, and Gradio calls that a change
            return changes(parts, Update())
        return changes(parts, view.stored(_desk(bench, request), selection))

    def file_of(file_format: str) -> Callable[..., Any]:
        @noticing(lambda notice: (gr.skip(), notice))
        def write(request: gr.Request, selection: Selection) -> tuple[Any, str]:
            path = _desk(bench, request).download(selection, file_format)
            return str(path), notice_html("none")

        return write

    every, picked = [*parts.values()], parts["picked"]
    for shown in (
        parts["show"].click(stored, picked, every, **QUIET),
        parts["runs"].row(row, None, every, **QUIET),
        parts["compare"].click(stored, [picked, parts["other"]], every, **QUIET),
    ):
        shown.then(None, js=_REVEAL)
    parts["delete"].click(delete, picked, every, js=_CONFIRM, **QUIET)
    file = gr.DownloadButton("File", visible="hidden", elem_id="run-file")
    for name in FILE_BUTTONS:
        outputs = [file, parts["notice"]]
        written = parts[name].click(file_of(name), parts["selection"], outputs, **QUIET)
        written.success(None, js=_SAVE)
    parts["link"].visible = not bench.session.public
    parts["link"].click(None, js=_COPY)
    # An address may name a stored run and another to compare it with, or the models of a new one.
    linked = gr.State(Selection())
    on_link("evaluate", take, [linked, inputs["model"], inputs["baseline"]])
    linked.change(follow, linked, every, **QUIET)


def _desk(bench: Workbench, request: gr.Request) -> Desk:
    """Of who asks: a page that is open in a browser."""
    return bench.desk(request.session_hash or "")
