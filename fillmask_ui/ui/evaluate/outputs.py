"""The components of the Evaluate tab that show results, and how an update reaches them."""

from typing import Any

import gradio as gr

from fillmask_ui.show.charts import CHARTS, Chart
from fillmask_ui.show.render import render
from fillmask_ui.ui import widgets
from fillmask_ui.ui.evaluate.desk import Selection
from fillmask_ui.ui.evaluate.tokens import CAPTIONS, SAW, WORST
from fillmask_ui.ui.evaluate.view import Update

# The chart that stands with the story: the first that there is. The others are folded away.
MAIN_CHARTS = ("differences", "loss-histogram")
# What can be done with the chosen run: name of the button -> its label.
RUN_BUTTONS = {
    "show": "Show",
    "compare": "Compare",
    "resume": "Resume",
    "delete": "Delete",
}
# What the shown run is saved as: name of the button -> its label.
FILE_BUTTONS = {"csv": "CSV", "json": "JSON", "report": "Report"}
_WELCOME = (
    "How well does a model know a text? Some of its tokens are hidden, the model says what it "
    "expects there, and the loss is how surprised it is by what was hidden. Press Run; with a "
    "second model both see the same masks, and a verdict says whether they differ."
)
_BRUSH = "Drag across the histogram, or click one of its bars, to choose tokens by their loss."
# By name; a chart is the parts `plot NAME`, `head NAME` above, `table NAME` below it and `box NAME`
# around all; `main` is the chart of the story.
Parts = dict[str, Any]


def build_result() -> Parts:
    """Create what stands beside the controls: a message, and the story of what was measured."""
    none, welcome = widgets.notice_html("none"), widgets.notice_html("hint", _WELCOME)
    reveal = widgets.static("reveal.js")
    parts: Parts = {
        "found": gr.State(()),
        "selection": gr.State(Selection()),
        "notice": widgets.html_block(none, elem_id="evaluate-notice", js_on_load=reveal),
        "figures": widgets.html_block(welcome, elem_id="evaluate-figures"),
        **_build_chart("main"),
        "worst": widgets.clickable_table(elem_id="evaluate-worst"),
        "side": widgets.html_block(elem_id="worst-side"),
    }
    with gr.Row(visible=False, elem_id="run-files", elem_classes="fm-buttons") as parts["files"]:
        for name, label in FILE_BUTTONS.items():
            parts[name] = gr.Button(label, size="sm", elem_id=f"run-{name}")
        parts["link"] = gr.Button("Copy link", size="sm", elem_id="run-link")
        widgets.html_block(render("page/evaluate/copied.html"), elem_id="run-copied")
    return parts


def build_charts() -> Parts:
    """Create a folded place for each chart and one for all figures, hidden until they are there."""
    parts: Parts = {}
    with (
        _fold("More charts", "evaluate-more") as parts["more box"],
        gr.Row(elem_id="evaluate-charts"),
    ):
        for name in CHARTS:
            parts |= _build_chart(name)
    with _fold("All figures", "evaluate-all-figures") as parts["every box"]:
        parts["every"] = widgets.html_block(elem_id="evaluate-every")
    return parts


def _build_chart(name: str) -> Parts:
    box = gr.Column(visible=False, min_width=280, elem_classes="fm-chart", elem_id=f"box-{name}")
    with box:
        return {
            f"box {name}": box,
            f"head {name}": widgets.html_block(),
            f"plot {name}": gr.Plot(show_label=False, elem_id=f"plot-{name}"),
            f"table {name}": widgets.html_block(),
        }


def _fold(label: str, elem_id: str, *, visible: bool = False) -> gr.Accordion:
    return gr.Accordion(label, open=False, visible=visible, elem_id=elem_id, elem_classes="fm-fold")


def build_tokens() -> Parts:
    """Create the table of tokens and what chooses among them."""
    parts: Parts = {}
    with _fold("All tokens", "evaluate-tokens") as parts["token box"]:
        with gr.Row(elem_classes="fm-filters"):
            parts["order"] = gr.Radio(
                list(CAPTIONS), value=WORST, label="Order", elem_id="token-order"
            )
            parts["saw"] = gr.Radio(
                [(label, kind) for kind, label in SAW.items()],
                value="",
                label="Model saw",
                elem_id="token-saw",
            )
            parts["low"] = gr.Number(
                None, label="Loss from (nats)", min_width=110, elem_id="loss-from"
            )
            parts["high"] = gr.Number(None, label="to (nats)", min_width=110, elem_id="loss-to")
            parts["any loss"] = gr.Button("Any loss", size="sm", elem_id="any-loss")
        widgets.html_block(render("page/evaluate/note.html", text=_BRUSH))
        parts["token side"] = widgets.html_block(elem_id="token-side")
        parts["tokens"] = widgets.clickable_table(elem_id="worst-tokens")
    return parts


def build_runs() -> Parts:
    """Create the list of stored runs and the buttons for one of them."""
    parts: Parts = {}
    with _fold("Stored runs", "runs", visible=True):
        parts["runs"] = widgets.clickable_table(elem_id="run-list")
        with gr.Row(elem_classes="fm-filters"):
            for name, label in (("picked", "Run"), ("other", "Compare with")):
                parts[name] = gr.Dropdown([], label=label, min_width=220, elem_id=f"run-{name}")
        with gr.Row(elem_classes="fm-buttons"):
            for name, label in RUN_BUTTONS.items():
                parts[name] = gr.Button(
                    label,
                    size="sm",
                    elem_id=f"run-{name}",
                    variant="stop" if name == "delete" else "secondary",
                )
    return parts


def control(name: str) -> str:
    """The name among the parts of one of the controls."""
    return f"control {name}"


def changes(parts: Parts, update: Update, *, filters: bool = True) -> dict[Any, Any]:
    """An update as new values of components.

    Args:
        parts: all components that it may change.
        update: what changes.
        filters: whether the filters of the tokens are set as well.
    """
    plain = {name: getattr(update, name) for name in ("notice", "figures", "selection", "side")}
    values: Parts = {name: value for name, value in plain.items() if value is not None}
    if update.busy is not None:
        # It can be pressed again once the event is over: before that a click would be lost.
        if update.busy:
            values["run"] = gr.Button(interactive=False)
        values["cancel"] = gr.Button(interactive=update.busy)
    if update.side is not None:
        values["token side"] = update.side
    if update.selection is not None:
        values["files"] = gr.Row(visible=bool(update.selection.run))
    if update.every is not None:
        values |= {"every": update.every, "every box": gr.Accordion(visible=bool(update.every))}
    if update.charts is not None:
        main = next((name for name in MAIN_CHARTS if name in update.charts), None)
        values |= _chart_values("main", update.charts.get(main or ""))
        for name in CHARTS:
            values |= _chart_values(name, update.charts.get(name) if name != main else None)
        values["more box"] = gr.Accordion(visible=len(update.charts) > 1)
    if update.tokens is not None:
        table = update.tokens
        values |= {"tokens": table.html, "worst": table.worst, "found": table.found}
        values["token box"] = gr.Accordion(visible=bool(table.html))
        if filters:
            order = gr.Radio(list(CAPTIONS), value=table.order, visible=table.pair)
            saw = gr.Radio(value="", visible=table.kinds)
            values |= {"order": order, "saw": saw, "low": None, "high": None}
    if update.controls is not None:
        values |= {control(name): value for name, value in update.controls.values.items()}
    if update.runs is not None:
        names = list(update.runs.names)
        values["runs"] = update.runs.html
        values["picked"] = gr.Dropdown(names, value=update.runs.chosen or None)
        values["other"] = gr.Dropdown(names)
    # Gradio wants something; an update without a change changes nothing.
    return {parts[name]: value for name, value in values.items()} or {parts["notice"]: gr.skip()}


def _chart_values(place: str, chart: Chart | None) -> Parts:
    """A chart in its place, which is hidden without one."""
    values: Parts = {f"box {place}": gr.Column(visible=chart is not None)}
    if chart is not None:
        values[f"plot {place}"] = chart.figure
        for part in ("head", "table"):
            template = f"page/evaluate/chart_{part}.html"
            values[f"{part} {place}"] = render(template, chart=chart)
    return values
