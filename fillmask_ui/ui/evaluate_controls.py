"""The controls of the Evaluate tab: what is measured, on which texts, with which models."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import gradio as gr

from fillmask_ui.evaluation import SCHEMES
from fillmask_ui.ui import widgets
from fillmask_ui.ui.evaluate_request import (
    DATASET,
    EMBEDDED,
    PUBLIC_TEXTS_ONE_BY_ONE,
    PUBLIC_TOKENS,
    UPLOAD,
    Form,
)

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session

PLACES = {EMBEDDED: "Embedded", UPLOAD: "Upload", DATASET: "Data set"}
FILES = [".txt", ".csv", ".tsv", ".jsonl", ".gz"]
METRIC_LABELS = {
    "cross-entropy": "Cross-entropy",
    "pseudo-perplexity": "Pseudo-perplexity",
    "uniform": "Uniform share",
    "suffix": "End of the text",
}
_METRIC_NOTES = {
    "cross-entropy": "15 % of the tokens are hidden as in BERT's training.",
    "pseudo-perplexity": "Each token is hidden once, alone: the most thorough and the slowest.",
    "uniform": "A share of each text, drawn anew from 0 to 100 %, as diffusion models are trained.",
    "suffix": "The last tokens of each text are hidden.",
}


@dataclass(frozen=True)
class Controls:
    """The components, in the order of `Form`."""

    where: gr.Radio
    upload: gr.File
    dataset: gr.Textbox
    dataset_name: gr.Textbox
    split: gr.Textbox
    revision: gr.Textbox
    streaming: gr.Checkbox
    column: gr.Textbox
    by: gr.Radio
    metric: gr.Radio
    model: gr.Dropdown
    baseline: gr.Dropdown
    samples: gr.Number
    shuffle: gr.Checkbox
    seed: gr.Number
    mask_probability: gr.Number
    shares: gr.Textbox
    whole_word: gr.Checkbox
    within_word: gr.Checkbox
    suffix_tokens: gr.Number
    max_tokens: gr.Number
    pass_percent: gr.Number
    risk_percent: gr.Number

    def members(self) -> list[Any]:
        """For the inputs of an event."""
        return [getattr(self, field.name) for field in fields(self)]


def build(session: Session) -> Controls:
    """Create the controls; what does not apply is hidden.

    Args:
        session: the page's models.
    """
    plain = Form(samples=PUBLIC_TEXTS_ONE_BY_ONE if session.public else 100)
    places = [(label, name) for name, label in PLACES.items()]
    if session.public:
        places = [place for place in places if place[1] != DATASET]
    parts: dict[str, Any] = {"where": gr.Radio(places, value=EMBEDDED, label="Texts")}
    with gr.Column(visible=False) as of_upload:
        label, kinds = "Text, CSV, TSV or JSON lines", FILES
        if not session.public:
            label, kinds = "Text, CSV, TSV, JSON lines or parquet", [*FILES, ".parquet"]
        parts["upload"] = gr.File(label=label, file_types=kinds, height=110)
    with gr.Column(visible=False) as of_dataset:
        parts["dataset"] = gr.Textbox(
            label="Data set",
            info="id of a Hugging Face data set, or the path of a file",
            placeholder="Salesforce/wikitext",
            max_lines=1,
        )
        with gr.Row():
            parts["dataset_name"] = gr.Textbox(
                label="Configuration", placeholder="wikitext-2-raw-v1", max_lines=1, min_width=120
            )
            parts["split"] = gr.Textbox("test", label="Split", max_lines=1, min_width=80)
        parts["revision"] = gr.Textbox(label="Revision", placeholder="main", max_lines=1)
        parts["streaming"] = gr.Checkbox(label="Stream it, without storing it")
    with gr.Row(visible=False) as of_rows:
        parts["column"] = gr.Textbox(
            label="Column", info="blank: text, or the only one", max_lines=1, min_width=120
        )
        parts["by"] = gr.Radio(
            [("line", "line"), ("paragraph", "paragraph")],
            value="line",
            label="A text of a .txt is a",
            min_width=120,
        )
    parts["metric"] = gr.Radio(
        [(METRIC_LABELS[name], name) for name in SCHEMES],
        value="cross-entropy",
        label="Metric",
        info=_METRIC_NOTES["cross-entropy"],
        elem_id="evaluate-metric",
    )
    parts["model"] = widgets.model_picker(session, elem_id="evaluate-model")
    parts["model"].label = "Model A"
    parts["baseline"] = gr.Dropdown(
        [("none", ""), *widgets.model_choices(session)],
        value="",
        label="Model B, the baseline",
        info="measured on identical masks",
        allow_custom_value=True,
        filterable=True,
        elem_id="evaluate-baseline",
    )
    # What a number may be is checked by `read_form`, which says which one is wrong and why: the
    # components' own limits would refuse or round it without a word.
    with gr.Row():
        parts["samples"] = gr.Number(
            plain.samples,
            label="Number of texts",
            info="0 for all",
            min_width=90,
            elem_id="evaluate-samples",
        )
        parts["seed"] = gr.Number(42, label="Seed", info="of masks and order", min_width=90)
    with gr.Accordion("More options", open=False):
        parts["shuffle"] = gr.Checkbox(value=True, label="Draw the texts at random")
        with gr.Column() as of_cross_entropy:
            parts["mask_probability"] = gr.Number(
                0.15, label="Mask probability", info="of a token to be hidden", step=0.01
            )
            parts["shares"] = gr.Textbox(
                plain.shares,
                label="Shares",
                info="shown as mask, as a random token, unchanged",
                max_lines=1,
            )
            parts["whole_word"] = gr.Checkbox(label="Whole words, all shown as masks")
        with gr.Column(visible=False) as of_pseudo:
            parts["within_word"] = gr.Checkbox(label="Hide the rest of the word too")
        with gr.Column(visible=False) as of_suffix:
            parts["suffix_tokens"] = gr.Number(8, label="Tokens at the end")
        parts["max_tokens"] = gr.Number(
            PUBLIC_TOKENS if session.public else 0,
            label="Max tokens",
            info="longer texts are cut; 0 for the model's own limit",
        )
        with gr.Row():
            parts["pass_percent"] = gr.Number(
                5, label="Pass below", info="% change", min_width=90, step=0.5
            )
            parts["risk_percent"] = gr.Number(
                10, label="At risk below", info="% change", min_width=90, step=0.5
            )
    controls = Controls(**parts)
    controls.where.change(
        shown_for_place,
        controls.where,
        [of_upload, of_dataset, of_rows, controls.by],
        show_progress="hidden",
        api_visibility="private",
    )
    controls.metric.change(
        shown_for_metric,
        controls.metric,
        [controls.metric, of_cross_entropy, of_pseudo, of_suffix],
        show_progress="hidden",
        api_visibility="private",
    )
    return controls


def shown_for_place(where: str) -> tuple[Any, Any, Any, Any]:
    """Which controls a place of texts has."""
    return (
        gr.Column(visible=where == UPLOAD),
        gr.Column(visible=where == DATASET),
        gr.Row(visible=where != EMBEDDED),
        gr.Radio(visible=where in (UPLOAD, DATASET)),
    )


def shown_for_metric(metric: str) -> tuple[Any, Any, Any, Any]:
    """Which options a metric has."""
    return (
        gr.Radio(info=_METRIC_NOTES.get(metric, "")),
        gr.Column(visible=metric == "cross-entropy"),
        gr.Column(visible=metric == "pseudo-perplexity"),
        gr.Column(visible=metric == "suffix"),
    )
