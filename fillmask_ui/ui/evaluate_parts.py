"""The components of the Evaluate tab that show results, and how an update reaches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from fillmask_ui.show.charts import Chart
from fillmask_ui.ui import evaluate_view as view
from fillmask_ui.ui import widgets
from fillmask_ui.ui.evaluate_results import chart_head_html, chart_table_html
from fillmask_ui.ui.evaluate_runs import Shown
from fillmask_ui.ui.evaluate_tokens import DIFFERENT, FLIPPED, WORST

LINEAR, LOGARITHMIC = "linear", "logarithmic"


@dataclass(frozen=True)
class Slot:
    """The place of one chart."""

    box: gr.Column
    head: gr.HTML
    plot: gr.Plot
    table: gr.HTML


@dataclass(frozen=True)
class Parts:
    """The components that show results, and those that choose among them."""

    run: gr.Button
    cancel: gr.Button
    notice: gr.HTML
    figures: gr.HTML
    counts: gr.Radio
    slots: dict[str, Slot]
    token_box: gr.Column
    order: gr.Radio
    low: gr.Number
    high: gr.Number
    any_loss: gr.Button
    tokens: gr.HTML
    side: gr.HTML
    found: gr.State
    shown: gr.State
    runs: gr.HTML
    picked: gr.Dropdown
    other: gr.Dropdown
    run_buttons: dict[str, gr.Button]

    def outputs(self) -> list[Any]:
        """All that an `Update` can change."""
        single = [
            *(self.run, self.cancel, self.notice, self.figures, self.token_box, self.order),
            *(self.low, self.high, self.tokens, self.side, self.found, self.shown),
            *(self.runs, self.picked, self.other),
        ]
        slots = [part for s in self.slots.values() for part in (s.box, s.head, s.plot, s.table)]
        return [*single, *slots]


def build(run: gr.Button, cancel: gr.Button, notice: gr.HTML, figures: gr.HTML) -> Parts:
    """Create the components below the controls.

    Args:
        run: starts a job.
        cancel: stops it.
        notice: for messages.
        figures: for what was measured.
    """
    parts: dict[str, Any] = {
        "run": run,
        "cancel": cancel,
        "notice": notice,
        "figures": figures,
        "found": gr.State(()),
        "shown": gr.State(Shown()),
    }
    _build_charts(parts)
    _build_tokens(parts)
    _build_runs(parts)
    return Parts(**parts)


def _build_charts(parts: dict[str, Any]) -> None:
    slots = {}
    with gr.Row(elem_id="evaluate-charts"):
        for name in view.CHARTS:
            with gr.Column(visible=False, min_width=280, elem_classes="fm-chart") as box:
                head = widgets.html_block("")
                if name == "loss-histogram":
                    parts["counts"] = gr.Radio(
                        [LINEAR, LOGARITHMIC],
                        value=LINEAR,
                        label="Counts",
                        show_label=False,
                        container=False,
                        elem_id="counts",
                    )
                plot = gr.Plot(show_label=False, elem_id=f"plot-{name}")
                slots[name] = Slot(box, head, plot, widgets.html_block(""))
    parts["slots"] = slots


def _build_tokens(parts: dict[str, Any]) -> None:
    with gr.Column(visible=False, elem_id="evaluate-tokens") as parts["token_box"]:
        with gr.Row(elem_classes="fm-filters"):
            parts["order"] = gr.Radio(
                [WORST, DIFFERENT, FLIPPED], value=WORST, label="Order", elem_id="token-order"
            )
            parts["low"] = gr.Number(
                None, label="Loss from (nats)", min_width=110, elem_id="loss-from"
            )
            parts["high"] = gr.Number(None, label="to (nats)", min_width=110, elem_id="loss-to")
            parts["any_loss"] = gr.Button("Any loss", size="sm", elem_id="any-loss")
        widgets.html_block(
            '<p class="fm-note">Drag across the histogram above, or click one of its bars, to '
            "choose tokens by their loss.</p>"
        )
        parts["side"] = widgets.html_block("", elem_id="token-side")
        parts["tokens"] = widgets.clickable_table(elem_id="worst-tokens")


def _build_runs(parts: dict[str, Any]) -> None:
    with gr.Accordion("Stored runs", open=False, elem_id="runs"):
        parts["runs"] = widgets.clickable_table(elem_id="run-list")
        with gr.Row(elem_classes="fm-filters"):
            parts["picked"] = gr.Dropdown([], label="Run", min_width=220, elem_id="run-picked")
            parts["other"] = gr.Dropdown(
                [], label="Compare with", min_width=220, elem_id="run-other"
            )
        with gr.Row(elem_classes="fm-buttons"):
            parts["run_buttons"] = {
                name: gr.Button(label, size="sm", elem_id=f"run-{name}", variant=kind)
                for name, label, kind in (
                    ("show", "Show", "secondary"),
                    ("compare", "Compare", "secondary"),
                    ("resume", "Resume", "secondary"),
                    ("csv", "CSV", "secondary"),
                    ("json", "JSON", "secondary"),
                    ("delete", "Delete", "stop"),
                )
            }


def changes(parts: Parts, update: view.Update, *, controls: bool = True) -> dict[Any, Any]:
    """An update as new values of components.

    Args:
        parts: the components.
        update: what changes.
        controls: whether the filters of the tokens are set as well.
    """
    found: dict[Any, Any] = {}
    if update.notice is not None:
        found[parts.notice] = update.notice
    if update.busy is not None:
        found[parts.run] = gr.Button(interactive=not update.busy)
        found[parts.cancel] = gr.Button(interactive=update.busy)
    if update.figures is not None:
        found[parts.figures] = update.figures
    if update.charts is not None:
        for name, slot in parts.slots.items():
            found |= _chart(slot, update.charts.get(name))
    if update.tokens is not None:
        tokens = update.tokens
        found[parts.token_box] = gr.Column(visible=bool(tokens.html))
        found[parts.tokens] = tokens.html
        found[parts.found] = tokens.found
        if controls:
            orders = [WORST, DIFFERENT, FLIPPED]
            found[parts.order] = gr.Radio(orders, value=tokens.choice.order, visible=tokens.pair)
            found[parts.low] = found[parts.high] = None
    if update.shown is not None:
        found[parts.shown] = update.shown
    if update.side is not None:
        found[parts.side] = update.side
    if update.runs is not None:
        names = list(update.runs.names)
        found[parts.runs] = update.runs.html
        found[parts.picked] = gr.Dropdown(names, value=update.runs.chosen or None)
        found[parts.other] = gr.Dropdown(names)
    # Gradio wants something; an update without a change changes nothing.
    return found or {parts.notice: gr.skip()}


def _chart(slot: Slot, chart: Chart | None) -> dict[Any, Any]:
    if chart is None:
        return {slot.box: gr.Column(visible=False)}
    return {
        slot.box: gr.Column(visible=True),
        slot.head: chart_head_html(chart),
        slot.plot: chart.figure,
        slot.table: chart_table_html(chart),
    }
