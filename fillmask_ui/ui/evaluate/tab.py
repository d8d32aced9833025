"""The Evaluate tab: its components and how they are wired."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import gradio as gr

from fillmask_ui.masking import MaskRecipe
from fillmask_ui.options import options_of
from fillmask_ui.runs.engines import EngineChoice
from fillmask_ui.runs.tokens import measured_tokens
from fillmask_ui.show.charts import CHARTS, SLICE_CHARTS
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.components import QUIET, Parts, link, link_to, notice_html, noticing, on_link
from fillmask_ui.ui.evaluate import evaluate_form, view
from fillmask_ui.ui.evaluate.evaluation_jobs import EvaluationJobs, PageJobs, Selection
from fillmask_ui.ui.evaluate.result_view import CAPTIONS, SAW, WORST, side_by_side_html
from fillmask_ui.ui.job import Job, Waiting
from fillmask_ui.ui.session import Session

# Where a result was asked for, not where a run was renamed or deleted.
_REVEAL = "() => window.fillmask.reveal_result()"
_ARRIVED = "() => document.documentElement.classList.remove('fm-returning')"
_COPY = "() => window.fillmask.copy_link()"
_SAVE = "() => { setTimeout(() => document.querySelector('#run-file')?.click(), 50); }"


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    all_jobs = session.shared(EvaluationJobs)
    run = gr.Button("Run", elem_id="evaluate-run", render=False)
    with gr.Column(elem_id="evaluate"):
        with gr.Column(elem_id="evaluate-form"):
            inputs = evaluate_form.build(session, run)
        with gr.Column(elem_id="evaluate-hero", elem_classes="fm-card fm-welcome"):
            components.html_block(render("evaluate/question.html"))
            with gr.Column(elem_id="evaluate-begin"):
                alone = gr.Button("Measure this model", variant="primary")
                beside = gr.Button("int8 against full precision")
            share = 100 * MaskRecipe().probability
            components.html_block(render("evaluate/steps.html", share=f"{share:g}%"))
        parts = {"run": run, **_build_result()}
        with gr.Row(elem_id="evaluate-folds"):
            parts |= _build_folds()
    parts |= view.set_controls(inputs)
    components.offer_new_models(session, inputs["model"], inputs["baseline"])
    _wire_jobs(all_jobs, inputs, parts, alone, beside)
    _wire_tokens(all_jobs, parts)
    _wire_runs(all_jobs, inputs, parts)


def _wire_jobs(
    all_jobs: EvaluationJobs, inputs: Parts, parts: Parts, alone: gr.Button, beside: gr.Button
) -> None:
    def run(page_jobs: PageJobs, **values: Any) -> None:
        page_jobs.begin(values)

    def run_quick(page_jobs: PageJobs, **values: Any) -> Parts:
        page_jobs.begin(values | evaluate_form.QUICK)
        return view.set_controls(evaluate_form.QUICK)

    def run_alone(page_jobs: PageJobs, **values: Any) -> Parts:
        choices = evaluate_form.QUICK | {"model": values["model"], "baseline": ""}
        page_jobs.begin(values | choices)
        return view.set_controls(choices)

    def resume(page_jobs: PageJobs, name: str, **values: Any) -> None:
        page_jobs.resume(name.partition(":")[2], values)

    # A run keeps its choices; the form chooses only the engine.
    engine = {name: inputs[name] for name in options_of(EngineChoice) if name in inputs}
    arrival = components.wire(
        all_jobs,
        parts,
        [
            (parts["run"].click, run, inputs),
            (alone.click, run_alone, inputs),
            (beside.click, run_quick, inputs),
            (parts["resumed"].change, resume, {"name": parts["resumed"], **engine}),
        ],
        view.status_changes,
        arrived=view.run_list,
        listed=["runs"],
    )
    arrival.then(None, js=_ARRIVED)


def _wire_tokens(all_jobs: EvaluationJobs, parts: Parts) -> None:
    def clicked_in(output: gr.HTML) -> Callable[..., Iterator[Any]]:
        """The handler of clicks in a list of tokens, which reports into `output`."""

        @noticing(lambda notice: {output: notice})
        def click(
            event: gr.EventData, request: gr.Request, selection: Selection, listed: tuple
        ) -> Iterator[Any]:
            page_jobs = all_jobs.page(request.session_hash or "")
            action, _, number = str(event.key).partition(":")
            if not number.isdecimal() or int(number) >= len(listed):
                return
            token = listed[int(number)]
            if action != "show":
                state = view.explore_state(page_jobs, selection, token)
                yield {opened: link_to("explore", **state)}
                return

            def ask(job: Job) -> str:
                met = measured_tokens(page_jobs.store, view.place_of(selection, token))
                measured_pair = [token for token in met if token]
                return side_by_side_html(page_jobs.session, measured_pair, job.report)

            job = Job(ask).begin()
            while isinstance(html := job.wait(), Waiting):
                message = html.message or "Asking the models…"
                yield {output: notice_html("busy", message, html.fraction)}
            yield {output: html}

        return click

    opened, bounds = link(), [parts["low"], parts["high"]]
    table_update: dict[str, Any] = {
        "fn": components.answering(all_jobs, parts, view.chosen_tokens),
        "inputs": [parts["selection"], parts["order"], *bounds, parts["saw"]],
        "outputs": [*parts.values()],
        "show_progress": "minimal",
        "show_progress_on": parts["tokens"],
        "api_visibility": "private",
    }
    by_hand = [parts[name].input for name in ("order", "saw", "low", "high")]
    gr.on(by_hand, trigger_mode="always_last", **table_update)
    for table, output in (("tokens", parts["token side"]), ("worst", parts["side"])):
        parts[table].row(
            clicked_in(output),
            [parts["selection"], parts["found"]],
            [output, opened],
            trigger_mode="always_last",
            **QUIET,
        )
    brush = components.bridge("brush.js")
    # Set both bounds before reading them: one changed alone would be read with the old other.
    brush.range(chosen_range, None, bounds, **QUIET).then(**table_update)
    parts["any loss"].click(lambda: (None, None), None, bounds, **QUIET).then(**table_update)


def chosen_range(event: gr.EventData) -> tuple[float | None, float | None]:
    """The losses chosen on the histogram, in nats; None, None once the choice is cleared."""
    if event.low is None:
        return None, None
    return max(0.0, round(event.low, 2)), event.high and round(event.high, 2)


def _wire_runs(all_jobs: EvaluationJobs, inputs: Parts, parts: Parts) -> None:
    def act(event: gr.EventData, request: gr.Request, selection: Selection) -> Any:
        key, title = str(event.key), str(event.value or "")
        if key.startswith("resume:"):
            # The same run may be resumed again, which would be no change.
            return {parts["resumed"]: f"{time.time_ns()}{key.removeprefix('resume')}"}
        return answering(view.run_action)(request, selection, key, title)

    def take(link: Mapping[str, str]) -> list[Any]:
        models = [link.get(f"evaluate_{name}") for name in ("model", "baseline")]
        if models[0] and not models[1]:
            models[1] = ""  # this one alone
        return [linked_runs(link), *(gr.skip() if name is None else name for name in models)]

    def follow(page_jobs: PageJobs, selection: Selection) -> Parts:
        # An opening page names no run, which Gradio calls a change.
        return view.stored(page_jobs, selection) if selection.run else {}

    def file_of(file_format: str) -> Callable[..., Parts]:
        def write(page_jobs: PageJobs, selection: Selection) -> Parts:
            path = page_jobs.download(selection, file_format)
            return {"file": str(path), "notice": notice_html("none")}

        return write

    every = [*parts.values()]
    file = gr.DownloadButton("File", visible="hidden", elem_id="run-file")
    answering = partial(components.answering, all_jobs, parts | {"file": file})
    parts["runs"].row(act, parts["selection"], every, **QUIET).then(None, js=_REVEAL)
    for name in FILE_BUTTONS:
        outputs = [file, parts["notice"]]
        written = parts[name].click(answering(file_of(name)), parts["selection"], outputs, **QUIET)
        written.success(None, js=_SAVE)
    parts["link"].visible = not all_jobs.session.public
    parts["link"].click(None, js=_COPY)
    # An address names a stored run, perhaps a second one, or the models of a new run.
    linked = gr.State(Selection())
    on_link(take, [linked, inputs["model"], inputs["baseline"]])
    linked.change(answering(follow), linked, every, **QUIET)


def linked_runs(link: Mapping[str, str]) -> Selection:
    """The runs named in an address."""
    return Selection(link.get("run", ""), link.get("reference", ""))


# Downloads of the shown run: name of the button -> its label.
FILE_BUTTONS = {"csv": "CSV", "json": "JSON", "report": "Report"}


def _build_result() -> Parts:
    """Create the message, what was measured, a chart and the tokens that prove it."""
    reveal = components.static("reveal.js")
    parts: Parts = {"found": gr.State(()), "selection": gr.State(Selection())}
    parts["resumed"] = gr.State("")  # the time, a colon and the run to go on with
    with gr.Column(elem_classes="fm-result"):
        with gr.Row(elem_id="evaluate-now"):
            parts["notice"] = components.html_block(
                notice_html("none"), elem_id="evaluate-notice", js_on_load=reveal
            )
            parts["cancel"] = gr.Button("Cancel", interactive=False, elem_id="evaluate-cancel")
        parts["figures"] = components.html_block(elem_id="evaluate-figures")
        with gr.Row(elem_id="evaluate-proof"):
            for name in ("main", "changes"):
                parts |= components.chart_place(name, f"box-{name}", min_width=280)
            parts["worst"] = components.clickable_table(elem_id="evaluate-worst")
        parts["side"] = components.html_block(elem_id="worst-side")
    return parts


def _fold(label: str, elem_id: str, *, visible: bool = False) -> gr.Accordion:
    return gr.Accordion(label, open=False, visible=visible, elem_id=elem_id, elem_classes="fm-fold")


def _build_folds() -> Parts:
    """Create what folds, all tokens, charts, figures and runs, and the buttons of files."""
    parts: Parts = {}

    def button(name: str, label: str, elem_id: str = "") -> None:
        parts[name] = gr.Button(label, size="sm", elem_id=elem_id or f"run-{name}")

    with _fold("Tokens", "evaluate-tokens") as parts["token box"]:
        with gr.Row(elem_classes="fm-filters"):
            parts["order"] = gr.Radio(
                [*CAPTIONS], value=WORST, label="Order", elem_id="token-order"
            )
            saw = [(label, kind) for kind, label in SAW.items()]
            parts["saw"] = gr.Radio(saw, value="", label="Model saw", elem_id="token-saw")
            for name, label, elem_id in (
                ("low", "Loss from", "loss-from"),
                ("high", "to", "loss-to"),
            ):
                parts[name] = gr.Number(
                    None, label=f"{label} (nats)", min_width=110, elem_id=elem_id
                )
            button("any loss", "Any loss", "any-loss")
        parts["token side"] = components.html_block(elem_id="token-side")
        parts["tokens"] = components.clickable_table(elem_id="worst-tokens")
    with _fold("Slices", "evaluate-slices") as parts["slice box"]:
        with gr.Row(elem_classes="fm-charts"):
            for name in SLICE_CHARTS:
                parts |= components.chart_place(name, f"box-{name}", table=False, min_width=280)
        parts["slices"] = components.html_block(elem_id="slice-tables")
    parts["more box"] = more = _fold("More charts", "evaluate-more")
    with more, gr.Row(elem_id="evaluate-charts", elem_classes="fm-charts"):
        for name in (name for name in CHARTS if name not in SLICE_CHARTS):
            parts |= components.chart_place(name, f"box-{name}", min_width=280)
    with _fold("All figures", "evaluate-all-figures") as parts["every box"]:
        parts["every"] = components.html_block(elem_id="evaluate-every")
    with _fold("Stored runs", "runs", visible=True):
        parts["runs"] = components.clickable_table(elem_id="run-list")
        parts |= components.chart_place("beside", "box-beside")
    with gr.Row(visible=False, elem_id="run-files", elem_classes="fm-buttons") as parts["files"]:
        for name, label in FILE_BUTTONS.items():
            button(name, label)
        button("link", "Copy link")
        components.html_block(render("evaluate/copied.html"), elem_id="run-copied")
    return parts
