"""The Evaluate tab: its components and how they are wired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from fillmask_ui.errors import FillmaskError
from fillmask_ui.ui import evaluate_controls, evaluate_parts, widgets
from fillmask_ui.ui import evaluate_view as view
from fillmask_ui.ui.evaluate_parts import LOGARITHMIC, Parts, changes
from fillmask_ui.ui.evaluate_request import Form
from fillmask_ui.ui.evaluate_runs import Shown, Workbench
from fillmask_ui.ui.links import link, link_to
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import error_message

_WELCOME = (
    "How well does a model know a text? Some of its tokens are hidden, the model says what it "
    "expects there, and the loss is how surprised it is by what was hidden. Press Run; with a "
    "second model both see the same masks, and a verdict says whether they differ."
)
_QUIET = {"show_progress": "hidden", "api_visibility": "private"}
# More may be asked for at a time than run at a time: who waits is told so, and can cancel. Each
# takes a thread of the page, so that not too many may wait.
_JOBS = {"concurrency_limit": 6, "concurrency_id": "evaluate", **_QUIET}


def build(session: Session, root: Path | None = None) -> None:
    """Create the tab's components and wire them.

    Args:
        session: the models that all visitors share.
        root: where runs are kept; None for the usual place.
    """
    bench = Workbench(session, root)
    with gr.Row(elem_id="evaluate"):
        with gr.Column(elem_classes="fm-input", min_width=280):
            controls = evaluate_controls.build(session)
            with gr.Row(elem_id="evaluate-buttons"):
                run = gr.Button("Run", variant="primary", elem_id="evaluate-run")
                cancel = gr.Button("Cancel", interactive=False, elem_id="evaluate-cancel")
        with gr.Column(elem_classes="fm-result", min_width=280):
            none = widgets.notice_html("none")
            notice = widgets.html_block(none, elem_id="evaluate-notice")
            welcome = widgets.notice_html("hint", _WELCOME)
            figures = widgets.html_block(welcome, elem_id="evaluate-figures")
    parts = evaluate_parts.build(run, cancel, notice, figures)
    _wire_jobs(bench, controls, parts)
    _wire_tokens(bench, parts)
    _wire_runs(bench, parts)


def _wire_jobs(bench: Workbench, controls: evaluate_controls.Controls, parts: Parts) -> None:
    def run(request: gr.Request, counts: str, *values: Any) -> Iterator[dict]:
        form = Form(*values)
        for update in view.evaluation(bench, visitor(request), form, log=counts == LOGARITHMIC):
            yield changes(parts, update)

    def resume(request: gr.Request, counts: str, name: str | None) -> Iterator[dict]:
        log = counts == LOGARITHMIC
        for update in view.resumed(bench, visitor(request), name or "", log=log):
            yield changes(parts, update)

    def cancel(request: gr.Request) -> None:
        bench.cancel(visitor(request))

    def broken() -> dict:
        words = "The page failed at this; the log of the server says why."
        return changes(parts, view.Update(widgets.notice_html("error", words), busy=False))

    def leave(request: gr.Request) -> None:
        bench.forget(visitor(request))

    inputs = [parts.counts, *controls.members()]
    jobs = [
        parts.run.click(run, inputs, parts.outputs(), trigger_mode="once", **_JOBS),
        parts.run_buttons["resume"].click(
            resume, [parts.counts, parts.picked], parts.outputs(), trigger_mode="once", **_JOBS
        ),
    ]
    # A fault of the page itself must not leave it waiting for ever.
    for job in jobs:
        job.failure(broken, None, parts.outputs(), **_QUIET)
    parts.cancel.click(cancel, None, None, queue=False, **_QUIET)
    widgets.page().unload(leave)


def _wire_tokens(bench: Workbench, parts: Parts) -> None:
    def choose(request: gr.Request, shown: Shown, order: str, low: Any, high: Any) -> dict:
        update = view.chosen_tokens(bench, visitor(request), shown, order, low, high)
        # The controls asked for it; to set them again would ask once more.
        return changes(parts, update, controls=False)

    def click(event: gr.EventData, request: gr.Request, shown: Shown, found: tuple) -> Iterator:
        action, _, place = str(event.key).partition(":")
        if not place.isdecimal() or int(place) >= len(found):
            return
        token = found[int(place)]
        if action == "show":
            for update in view.side_by_side(bench, visitor(request), shown, token):
                yield {parts.side: update.side}
            return
        try:
            target = view.in_explore(bench, visitor(request), shown, token)
        except FillmaskError as error:
            yield {parts.side: widgets.notice_html("error", error_message(error))}
            return
        yield {opened: link_to("explore", text=target.text, model=target.model, words=target.words)}

    def counts(request: gr.Request, shown: Shown, kind: str) -> Any:
        chart = view.recounted(bench, visitor(request), shown, log=kind == LOGARITHMIC)
        return gr.skip() if chart is None else chart.figure

    opened = link()
    gr.on(
        [parts.order.input, parts.low.change, parts.high.change],
        choose,
        [parts.shown, parts.order, parts.low, parts.high],
        parts.outputs(),
        trigger_mode="always_last",
        show_progress="minimal",
        show_progress_on=parts.tokens,
        api_visibility="private",
    )
    parts.tokens.row(
        click,
        [parts.shown, parts.found],
        [parts.side, opened],
        trigger_mode="always_last",
        **_QUIET,
    )
    histogram = parts.slots["loss-histogram"].plot
    parts.counts.change(counts, [parts.shown, parts.counts], histogram, **_QUIET)
    script = widgets.static("brush.js").replace("CHARTS_ID", "evaluate-charts")
    script = script.replace("CHART_ID", histogram.elem_id)
    brush = widgets.html_block("", js_on_load=script, visible="hidden")
    ends = [parts.low, parts.high]
    brush.range(chosen_range, None, ends, **_QUIET)
    parts.any_loss.click(lambda: (None, None), None, ends, **_QUIET)


def chosen_range(event: gr.EventData) -> tuple[float | None, float | None]:
    """The losses that were chosen on the histogram; none when the choice was taken back."""
    low, high = _nats(event.low), _nats(event.high)
    return (None if low is None else max(0.0, low)), high


def _nats(value: Any) -> float | None:
    try:
        return round(float(value), 2)
    except (TypeError, ValueError):
        return None


def _wire_runs(bench: Workbench, parts: Parts) -> None:
    def show(request: gr.Request, counts: str, name: str | None) -> dict:
        return _stored(bench, parts, visitor(request), Shown(name or ""), counts)

    def row(event: gr.EventData, request: gr.Request, counts: str) -> dict:
        return _stored(bench, parts, visitor(request), Shown(str(event.key)), counts)

    def compare(request: gr.Request, counts: str, name: str | None, other: str | None) -> dict:
        shown = Shown(name or "", other or "")
        return _stored(bench, parts, visitor(request), shown, counts)

    def delete(request: gr.Request, name: str | None) -> dict:
        return changes(
            parts, view.deleted(bench, visitor(request), name) if name else view.Update()
        )

    def refresh(request: gr.Request) -> dict:
        return changes(parts, view.Update(runs=view.run_list(bench, visitor(request))))

    def file_of(file_format: str) -> Callable:
        def write(request: gr.Request, name: str | None) -> tuple[Any, str]:
            try:
                path = bench.file(visitor(request), name or "", file_format)
            except FillmaskError as error:
                return gr.skip(), widgets.notice_html("error", error_message(error))
            return str(path), widgets.notice_html("none")

        return write

    outputs = parts.outputs()
    buttons = parts.run_buttons
    buttons["show"].click(show, [parts.counts, parts.picked], outputs, **_QUIET)
    parts.runs.row(row, parts.counts, outputs, **_QUIET)
    pair = [parts.counts, parts.picked, parts.other]
    buttons["compare"].click(compare, pair, outputs, **_QUIET)
    sure = "(name) => name && confirm('Delete the run ' + name + '?') ? name : null"
    buttons["delete"].click(delete, parts.picked, outputs, js=sure, **_QUIET)
    file = gr.DownloadButton("File", visible="hidden", elem_id="run-file")
    save = "() => { setTimeout(() => document.querySelector('#run-file')?.click(), 50); }"
    for name in ("csv", "json"):
        buttons[name].click(file_of(name), parts.picked, [file, parts.notice], **_QUIET).success(
            None, js=save
        )
    widgets.page().load(refresh, None, outputs, **_QUIET)


def _stored(bench: Workbench, parts: Parts, who: str, shown: Shown, counts: str) -> dict:
    if not shown.run:
        words = "Pick a run first: press Run above, or choose one in the list."
        return {parts.notice: widgets.notice_html("hint", words)}
    return changes(parts, view.stored(bench, who, shown, log=counts == LOGARITHMIC))


def visitor(request: gr.Request) -> str:
    """Who asks: a page that is open in a browser."""
    return request.session_hash or ""
