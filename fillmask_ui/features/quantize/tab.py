"""The Quantize tab: its components and how they are wired."""

from dataclasses import asdict, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import gradio as gr

from fillmask_ui.features.quantize import diagnosis_view, quantize_job, variant_view
from fillmask_ui.features.quantize.variant_store import VariantStore
from fillmask_ui.files import user_folder
from fillmask_ui.onnx_tools.schemes import SCHEMES
from fillmask_ui.show.render import render
from fillmask_ui.ui import components, job
from fillmask_ui.ui.components import QUIET, Parts, notice_html
from fillmask_ui.ui.evaluate.evaluate_form import EMBEDDED, FILES, PLACES, UPLOAD
from fillmask_ui.ui.session import Session

CHARTS = ("size", "speed")


class QuantizeRuns(job.Jobs):
    """The runs of the tab, one at a time: two would slow each other's clocks."""

    def __init__(self, session: Session, root: Path | None = None) -> None:
        super().__init__(title="a run of Quantize", pauses_for=session.short_jobs)
        self.session = session
        self.store = VariantStore(root or user_folder("variants"))

    def begin(self, page: job.Page, *, make: bool = True, **values: Any) -> job.Job | None:
        """Make and measure what the controls hold.

        Without `make`, measure what was never measured; a run that goes on does that by itself.
        """
        if not make and page.job is not None and not page.job.ended:
            return None
        order = quantize_job.read_order(values, self.session.default_model, make=make)

        def work(running: job.Job) -> Any:
            load = partial(self.session.model, on_progress=running.report)
            return quantize_job.perform(order, self.store, load)

        return page.start(work)

    def controls(self, page: job.Page, reference: str) -> Parts:
        """Values of the controls: those of the page's run of a model, else of its last run."""
        state = page.job.status.so_far if page.job else None
        if state and state.reference == reference:
            settings = state.settings
        elif (home := self.store.find(reference)) is None or (settings := home.settings) is None:
            return {}
        values = asdict(settings)
        if settings.upload and not Path(settings.upload).is_file():
            values["upload"] = None
        if settings.more_schemes or settings.exclude:
            values["more"] = gr.update(open=True)
        return values


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    with gr.Column(elem_id="quantize"):
        inputs, more, run, cancel = _build_inputs(session)
        parts: Parts = {
            "more": more,
            "run": run,
            "cancel": cancel,
            "notice": components.html_block(notice_html("none"), elem_id="quantize-notice"),
            "story": components.html_block(render(variant_view.WELCOME), elem_id="quantize-story"),
        }
        with gr.Row(elem_id="quantize-charts"):
            for name in CHARTS:
                parts |= components.chart_place(name, f"quantize-{name}", table=False)
        parts["rows"] = components.html_block(elem_id="quantize-rows")
        panel = components.html_block(
            render("quantize/diagnose.html"),
            js_on_load=components.static("begin.js", Path(__file__).parent),
            server_functions=[
                components.served(session, *item) for item in diagnosis_view.SERVED.items()
            ],
        )
    _wire(session.shared(QuantizeRuns), inputs, parts, panel)


def _build_inputs(session: Session) -> tuple[Parts, gr.Accordion, gr.Button, gr.Button]:
    def schemes(names: list[str], chosen: list[str], label: str, elem_id: str) -> Any:
        labels = [(f"{name}\n{SCHEMES[name].description}", name) for name in names]
        return gr.CheckboxGroup(
            labels, value=chosen, label=label, elem_id=elem_id, elem_classes="fm-schemes"
        )

    inputs: Parts = {}
    with gr.Row(elem_classes="fm-fields"):
        inputs["model"] = components.model_picker(session, elem_id="quantize-model", scale=4)
        inputs["where"] = gr.Radio(
            [(PLACES[name], name) for name in (EMBEDDED, UPLOAD)],
            value=EMBEDDED,
            label="Texts",
            scale=2,
            min_width=220,
            elem_id="quantize-where",
            elem_classes="fm-radio",
        )
        inputs["samples"] = gr.Number(
            quantize_job.PLAIN_SAMPLES,
            label="Number of texts",
            scale=1,
            min_width=130,
            elem_id="quantize-samples",
        )
    with gr.Column(visible=False) as box:
        inputs["upload"] = gr.File(
            label="Text, CSV, TSV, JSON lines or parquet",
            file_types=[*FILES, ".parquet"],
            height=110,
        )
    inputs["where"].change(
        lambda chosen: gr.Column(visible=chosen == UPLOAD), inputs["where"], box, **QUIET
    )
    plain = list(quantize_job.PLAIN_SCHEMES)
    inputs["schemes"] = schemes(plain, plain, "Schemes", "quantize-schemes")
    with gr.Accordion("More", open=False, elem_classes="fm-fold") as more:
        more_schemes = [name for name in SCHEMES if name not in plain]
        inputs["more_schemes"] = schemes(more_schemes, [], "More schemes", "quantize-more")
        inputs["exclude"] = gr.Textbox(
            label="Keep in full precision",
            info="Kinds, layers or names of parts, comma-separated",
            placeholder="projection, layer:3",
            max_lines=1,
            elem_id="quantize-exclude",
        )
    with gr.Row(elem_id="quantize-buttons"):
        run = gr.Button("Run", variant="primary", elem_id="quantize-run")
        cancel = gr.Button("Cancel", interactive=False, elem_id="quantize-cancel")
    return inputs, more, run, cancel


def _wire(runs: QuantizeRuns, inputs: Parts, parts: Parts, panel: gr.HTML) -> None:
    model, parts = inputs["model"], parts | inputs

    def run(page: job.Page, **values: Any) -> None:
        runs.begin(page, **values)

    def measure(page: job.Page, **values: Any) -> Parts:
        runs.begin(page, make=False, **values)
        return drawn(variant_view.show_stored(runs.store, named(values["model"])))

    def named(reference: str | None) -> str:
        return (reference or "").strip() or runs.session.default_model

    def show(page: job.Page, reference: str | None) -> Parts:
        update = drawn(variant_view.show_stored(runs.store, named(reference)))
        return update | runs.controls(page, named(reference))

    def arrived(page: job.Page) -> Parts:
        """The controls hold what those of the run that the page has found did."""
        state = page.job.status.so_far if page.job else None
        if state is None:
            return {}
        return {"model": state.reference, **runs.controls(page, state.reference)}

    for event in (model.change, components.page().load):
        event(components.answering(runs, parts, show), model, [*parts.values()], **QUIET)
    components.linked_picker(runs.session, model, "quantize")
    components.wire(
        runs,
        parts,
        [(parts["run"].click, run, inputs), (panel.made, measure, inputs)],
        lambda page, status: drawn(variant_view.show_status(page, status)),
        arrived=arrived,
        listed=["more", *inputs],
    )


def drawn(update: Parts) -> Parts:
    """An update with its charts, if any, in their places; the note of the first serves both."""
    values = {name: value for name, value in update.items() if name != "charts"}
    if "charts" in update:
        for name, chart in zip_longest(CHARTS, update["charts"]):
            placed = chart and (chart if name == CHARTS[0] else replace(chart, note=""))
            values |= components.chart_in(name, placed, ["head"])
    return values
