"""The Quantize tab: its components and how they are wired."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from fillmask_ui.files import user_folder
from fillmask_ui.quantizing.variant_store import VariantStore
from fillmask_ui.show.charts import Chart
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.components import QUIET, notice_html, noticing
from fillmask_ui.ui.quantize import diagnosis_view, variant_view
from fillmask_ui.ui.quantize.variant_view import Update
from fillmask_ui.ui.session import Session

CHARTS = ("size", "speed")
_FILES = [".txt", ".csv", ".tsv", ".jsonl", ".json", ".log", ".gz", ".parquet"]
_WAITING = "Waiting for another run to end…"


class QuantizeRuns:
    """What all visitors of the tab share; variants are kept in `root`, or in the usual place."""

    def __init__(self, session: Session, root: Path | None = None) -> None:
        self.session = session
        self.store = VariantStore(root or user_folder("variants"))
        self._turn = threading.Semaphore()  # two at a time would slow each other's clocks
        self._stopped: dict[str, threading.Event] = {}

    @noticing(lambda notice: Update(notice, busy=False))
    def run(self, visitor: str, values: dict[str, Any], *, make: bool = True) -> Generator[Update]:
        """Make and measure what the controls hold; `stop` ends it at its next step.

        Without `make`, variants that were never measured are shown and measured.
        """
        # They load the tools, which the page does not need to open.
        from fillmask_ui.ui.quantize.quantize_job import perform, read_order

        stopped = self._stopped[visitor] = threading.Event()
        order = read_order(values, self.session.default_model, make=make)
        if not make:
            yield variant_view.stored(self.store, order.model.reference)
        yield Update(notice_html("busy", "Starting…"), busy=True)
        while not self._turn.acquire(timeout=0.4):
            if stopped.is_set():
                yield Update(notice_html("none"), busy=False)
                return
            yield Update(notice_html("busy", _WAITING), busy=True)
        try:
            steps = perform(order, self.store, self.session.model)
            with closing(variant_view.followed(steps)) as updates, closing(steps):
                for update in updates:
                    yield update
                    if stopped.is_set() and update.busy is not False:
                        yield variant_view.stopped(self.store, order.model.reference)
                        return
        finally:
            self._turn.release()

    def stop(self, visitor: str) -> None:
        """End the run of a visitor's page, if there is one."""
        if visitor in self._stopped:
            self._stopped[visitor].set()

    def leave(self, visitor: str) -> None:
        """A page was closed."""
        self.stop(visitor)
        self._stopped.pop(visitor, None)


def build(session: Session, root: Path | None = None) -> None:
    """Create the tab's components and wire them.

    Args:
        session: the models that all visitors share.
        root: where variants are kept; None for the usual place.
    """
    quantize_runs = QuantizeRuns(session, root)
    with gr.Row(elem_id="quantize"):
        with gr.Column(elem_classes="fm-input", min_width=280):
            inputs = _build_inputs(session)
            with gr.Row(elem_id="quantize-buttons"):
                run = gr.Button("Run", variant="primary", elem_id="quantize-run")
                cancel = gr.Button("Cancel", interactive=False, elem_id="quantize-cancel")
        with gr.Column(elem_classes="fm-result", min_width=280):
            parts: dict[str, Any] = {
                "run": run,
                "cancel": cancel,
                "notice": components.html_block(notice_html("none"), elem_id="quantize-notice"),
                "story": components.html_block(
                    notice_html("hint", variant_view.WELCOME), elem_id="quantize-story"
                ),
            }
            for name in CHARTS:
                box = gr.Column(visible=False, elem_classes="fm-chart", elem_id=f"quantize-{name}")
                with box:
                    parts |= {
                        f"box {name}": box,
                        f"head {name}": components.html_block(),
                        f"plot {name}": gr.Plot(show_label=False),
                    }
    with gr.Column(elem_id="quantize-full"):
        parts["rows"] = components.html_block(elem_id="quantize-rows")
        place = components.html_block(
            render("page/quantize/diagnose_place.html", figures=list(diagnosis_view.FIGURES)),
            js_on_load=components.static("quantize_begin.js"),
            server_functions=[
                components.served(session, *item) for item in diagnosis_view.SERVED.items()
            ],
        )
    _wire(quantize_runs, inputs, parts, place)


def _build_inputs(session: Session) -> dict[str, Any]:
    """The controls, by the names that `form.read_order` reads."""
    from fillmask_ui.onnx_tools.schemes import SCHEMES
    from fillmask_ui.ui.quantize.quantize_job import (
        EMBEDDED,
        PLACES,
        PLAIN_SAMPLES,
        PLAIN_SCHEMES,
        UPLOAD,
    )

    model = components.model_picker(session, elem_id="quantize-model")
    schemes = gr.CheckboxGroup(
        [(f"{name}: {_small(scheme.description)}", name) for name, scheme in SCHEMES.items()],
        value=list(PLAIN_SCHEMES),
        label="Schemes",
        elem_id="quantize-schemes",
    )
    with gr.Row():
        where = gr.Radio(
            [(label, name) for name, label in PLACES.items()],
            value=EMBEDDED,
            label="Texts",
            scale=3,
            min_width=250,
            elem_id="quantize-where",
        )
        samples = gr.Number(
            PLAIN_SAMPLES,
            label="Number of texts",
            scale=2,
            min_width=120,
            elem_id="quantize-samples",
        )
    with gr.Column(visible=False) as box:
        upload = gr.File(
            label="Text, CSV, TSV, JSON lines or parquet", file_types=_FILES, height=110
        )
    where.change(lambda chosen: gr.Column(visible=chosen == UPLOAD), where, box, **QUIET)
    with gr.Accordion("More options", open=False):
        exclude = gr.Textbox(
            label="Keep in full precision",
            info="kinds, layers or names of parts, separated by commas",
            placeholder="projection, layer:3",
            max_lines=1,
            elem_id="quantize-exclude",
        )
    return {
        "model": model,
        "schemes": schemes,
        "where": where,
        "upload": upload,
        "samples": samples,
        "exclude": exclude,
    }


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].removesuffix(".") if sentence else ""


def _wire(
    quantize_runs: QuantizeRuns, inputs: dict[str, Any], parts: dict[str, Any], place: gr.HTML
) -> None:
    def run(request: gr.Request, *, make: bool = True, **values: Any) -> Generator[Any]:
        with closing(quantize_runs.run(request.session_hash or "", values, make=make)) as updates:
            for update in updates:
                yield _changes(parts, update)

    def measure(request: gr.Request, **values: Any) -> Generator[Any]:
        yield from run(request, make=False, **values)

    def cancel(request: gr.Request) -> None:
        quantize_runs.stop(request.session_hash or "")

    def leave(request: gr.Request) -> None:
        quantize_runs.leave(request.session_hash or "")

    def show(reference: str | None) -> Any:
        reference = (reference or "").strip() or quantize_runs.session.default_model
        return _changes(parts, variant_view.stored(quantize_runs.store, reference))

    every, model = [*parts.values()], inputs["model"]
    for event, work in ((parts["run"].click, run), (place.made, measure)):
        job = event(
            work,
            None,
            every,
            inputs_kwargs=inputs,
            trigger_mode="once",
            concurrency_limit=6,
            concurrency_id="quantize",
            **QUIET,
        )
        job.then(lambda: gr.Button(interactive=True), None, parts["run"], **QUIET)
    parts["cancel"].click(cancel, None, None, queue=False, **QUIET)
    components.page().unload(leave)
    model.change(show, model, every, **QUIET)
    components.page().load(show, model, every, **QUIET)
    components.linked_picker(quantize_runs.session, model, "quantize")


def _changes(parts: dict[str, Any], update: Update) -> dict[Any, Any]:
    """An update as new values of components."""
    names = ("notice", "rows", "story")
    values = {name: html for name in names if (html := getattr(update, name)) is not None}
    if update.busy is not None:
        # It can be pressed again once the event is over: before that a click would be lost.
        if update.busy:
            values["run"] = gr.Button(interactive=False)
        values["cancel"] = gr.Button(interactive=update.busy)
    if update.charts is not None:
        drawn: dict[str, Chart] = dict(zip(CHARTS, update.charts, strict=False))
        for name in CHARTS:
            values[f"box {name}"] = gr.Column(visible=name in drawn)
            if name in drawn:
                chart = drawn[name] if name == CHARTS[0] else replace(drawn[name], note="")
                head = render("page/evaluate/chart_head.html", chart=chart)
                values |= {f"head {name}": head, f"plot {name}": drawn[name].figure}
    # Gradio wants something; an update without a change changes nothing.
    return {parts[name]: value for name, value in values.items()} or {parts["notice"]: gr.skip()}
