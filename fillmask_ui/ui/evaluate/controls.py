"""The controls of the Evaluate tab: what is measured, on which texts, with which models.

Labels and explanations come from the options of the configurations; a new option of a metric gets
its control from there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gradio as gr
from gradio.components import Component

from fillmask_ui.cluster import LOCAL, RAY, EngineChoice, ray_installed
from fillmask_ui.evaluation import METRICS, EvaluationConfig
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import DEFAULT_SHARES
from fillmask_ui.options import options_of
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextChoice
from fillmask_ui.ui import components
from fillmask_ui.ui.components import notice_html
from fillmask_ui.ui.evaluate.evaluate_form import (
    DATASET,
    EMBEDDED,
    PASTE,
    PUBLIC_TEXTS_ONE_BY_ONE,
    PUBLIC_TOKENS,
    SHARES,
    UPLOAD,
    metric_options,
)

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session

PLACES = {EMBEDDED: "Embedded", PASTE: "Paste", UPLOAD: "Upload", DATASET: "Data set"}
FILES = (".txt", ".csv", ".tsv", ".jsonl", ".json", ".log", ".gz")
ENGINES = {LOCAL: "This process", RAY: "Ray"}
_METRIC = next(iter(METRICS))
# Components by the names that `plan_of` reads.
Controls = dict[str, Any]


# The one click of an empty page; the other controls keep their values.
QUICK = {
    "where": EMBEDDED,
    "metric": _METRIC,
    "model": "embedded:int8",
    "baseline": "embedded",
    "samples": 100,
}


def build(session: Session, run: gr.Button | None = None) -> Controls:
    """Create the controls, and `run` among them; those that do not apply are hidden."""
    controls: Controls = {}
    _build_models(controls, session)
    with gr.Row(elem_id="evaluate-what"):
        places = [name for name in PLACES if not session.public or name != DATASET]
        controls["where"] = gr.Radio(
            [(PLACES[name], name) for name in places],
            value=EMBEDDED,
            label="Texts",
            elem_id="evaluate-where",
            elem_classes="fm-radio",
        )
        controls["metric"] = gr.Radio(
            [(metric.label, name) for name, metric in METRICS.items()],
            value=_METRIC,
            label="Metric",
            elem_id="evaluate-metric",
            elem_classes="fm-radio",
        )
        _toggle("fm-all-metrics", "More")
        _toggle("fm-advanced", "Advanced")
        if run is not None:
            run.render()
    _build_texts(controls, session.public)
    with gr.Column(elem_id="evaluate-advanced"):
        note = components.html_block(_note_of(_METRIC))
        with gr.Row():
            controls["samples"] = gr.Number(
                PUBLIC_TEXTS_ONE_BY_ONE if session.public else 100,
                label="Number of texts",
                info="0 for all",
                min_width=90,
                elem_id="evaluate-samples",
            )
            controls["seed"] = option_control(
                EvaluationConfig, "seed", info="of masks and order", min_width=90
            )
            controls["max_tokens"] = gr.Number(
                PUBLIC_TOKENS if session.public else 0,
                label="Max tokens",
                info="longer texts are cut; 0 for the model's own limit",
            )
            for name, label in (("pass_below", "Pass below"), ("risk_below", "At risk below")):
                percent = 100 * getattr(Limits(), name)
                controls[name] = gr.Number(
                    percent, label=label, info="% change", min_width=90, step=0.5
                )
        controls["shuffle"] = gr.Checkbox(value=True, label="Draw the texts at random")
        with gr.Row():
            own = _metric_controls()
        controls |= own
        if ray_installed() and not session.public:
            controls |= _engine_controls()
    controls["metric"].change(
        lambda metric: shown_for_metric(metric or _METRIC, list(own)),
        controls["metric"],
        [note, *own.values()],
        **components.QUIET,
    )
    return controls


def _build_models(controls: Controls, session: Session) -> None:
    """The reference, then the candidate; both of `QUICK` where the page opens with its model."""
    default = session.default_model
    both = (QUICK["baseline"], QUICK["model"]) if default == QUICK["baseline"] else ("", default)
    with gr.Row(elem_id="evaluate-models"):
        controls["baseline"] = gr.Dropdown(
            [("none", ""), *components.model_choices(session)],
            value=both[0],
            label="Reference",
            info="on identical masks; none to measure one model alone",
            allow_custom_value=True,
            filterable=True,
            elem_id="evaluate-baseline",
            elem_classes="fm-model",
        )
        controls["model"] = components.model_picker(session, elem_id="evaluate-model")
        controls["model"].label, controls["model"].value = "Candidate", both[1]


def _toggle(name: str, label: str) -> None:
    components.html_block(render("page/evaluate/toggle.html", name=name, label=label))


def _note_of(metric: str) -> str:
    return notice_html("hint", METRICS[metric].note)


def option_control(owner: type, name: str, **shown: Any) -> Component:
    """The control of an option of the dataclass `owner`; `shown` overrides its settings.

    It has no bounds, as `gr.Number` would refuse or round a value silently, and cannot be blank: 0
    stands for a number not given.
    """
    option = options_of(owner)[name]
    kind, default = option.kind, option.default
    own = {"value": default, "label": option.label, "info": option.help}
    if kind in (int, float) and default is None:
        own |= {"value": 0, "info": f"{option.help} 0: not given."}
    shown = own | shown
    if kind is bool:
        return gr.Checkbox(**shown)
    if option.choices:
        return gr.Radio(list(option.choices), **shown)
    return gr.Number(**shown) if kind in (int, float) else gr.Textbox(max_lines=1, **shown)


def _build_texts(controls: Controls, public: bool) -> None:
    """What a place of texts asks for; a public page reads no parquet."""
    with gr.Column(visible=False) as of_upload:
        label, kinds = "Text, CSV, TSV or JSON lines", [*FILES]
        if not public:
            label, kinds = "Text, CSV, TSV, JSON lines or parquet", [*FILES, ".parquet"]
        controls["upload"] = gr.File(label=label, file_types=kinds, height=110)
    with gr.Column(visible=False) as of_paste:
        controls["pasted"] = gr.Textbox(
            label="Texts to paste",
            info="one a line, or with blank lines between paragraphs",
            lines=5,
            max_lines=12,
            elem_id="evaluate-pasted",
        )
    text = functools.partial(option_control, TextChoice)
    with gr.Column(visible=False) as of_dataset:
        controls["dataset"] = text(
            "dataset",
            value=None,
            info="id of a Hugging Face data set, or the path of a file or a folder of files",
            placeholder="Salesforce/wikitext",
        )
        with gr.Row():
            controls["dataset_name"] = text(
                "dataset_name", info=None, placeholder="wikitext-2-raw-v1", min_width=120
            )
            controls["split"] = text("split", value="test", info=None, min_width=80)
        controls["revision"] = text("revision", info=None, placeholder="main")
        controls["streaming"] = text("streaming", label="Stream it, without storing it", info=None)
    with gr.Row(visible=False) as of_rows:
        controls["column"] = text("column", info="blank: text, or the only one", min_width=120)
        controls["by"] = text(
            "by", value="line", label="A plain text is a", info=None, min_width=120
        )
    controls["where"].change(
        lambda where: [
            gr.Column(visible=where == UPLOAD),
            gr.Column(visible=where == PASTE),
            gr.Column(visible=where == DATASET),
            gr.Row(visible=where != EMBEDDED),
            gr.Textbox(visible=where != PASTE),
        ],
        controls["where"],
        [of_upload, of_paste, of_dataset, of_rows, controls["column"]],
        **components.QUIET,
    )


def controls_of(metric: str) -> list[str]:
    """Names of the controls for a metric's own options; a recipe's shares have one box.

    >>> controls_of("cross-entropy")
    ['probability', 'shares', 'whole_word', 'mask_stream']
    """
    options = metric_options(METRICS[metric])
    return list(dict.fromkeys("shares" if name in SHARES else name for name in options))


def _metric_controls() -> Controls:
    """A control for each option of any metric; those of the first metric are visible."""
    found: Controls = {}
    for own, metric in METRICS.items():
        shown: dict[str, Any] = {"visible": own == _METRIC}
        for name in controls_of(own):
            if name == "shares" and name not in found:
                found[name] = gr.Textbox(
                    " ".join(f"{share:g}" for share in DEFAULT_SHARES),
                    label="Shares",
                    info="shown as mask, as a random token, unchanged",
                    max_lines=1,
                    **shown,
                )
            elif name not in found:
                found[name] = option_control(metric_options(metric)[name], name, **shown)
    return found


def _engine_controls() -> Controls:
    """Where to measure; the options of Ray are hidden until it is chosen."""
    found: Controls = {
        "engine": gr.Radio(
            [(label, name) for name, label in ENGINES.items()],
            value=LOCAL,
            label="Engine",
            info="Ray: several processes, on one machine or many; the same digits.",
            elem_id="evaluate-engine",
        )
    }
    own = functools.partial(option_control, EngineChoice)
    with gr.Column(visible=False) as of_ray:
        found["address"] = own(
            "address", info="of a cluster; blank for this machine", placeholder="127.0.0.1:6379"
        )
        with gr.Row():
            found["workers"] = own("workers", info="0 for all cores", min_width=120)
            found["threads_per_worker"] = own("threads_per_worker", info="0 for one", min_width=120)
    found["engine"].change(
        lambda engine: gr.Column(visible=engine == RAY), found["engine"], of_ray, **components.QUIET
    )
    return found


def shown_for_metric(metric: str, names: Sequence[str]) -> list[Any]:
    """What a metric measures, and updates of the controls `names` for it."""
    shown = controls_of(metric)
    return [_note_of(metric), *(gr.update(visible=name in shown) for name in names)]
