"""The form of the Evaluate tab: its fields as a table, read as a `Plan`, set again by a run."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import METRICS, EvaluationConfig
from fillmask_ui.files import printable
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import DEFAULT_SHARES
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.options import Option, all_options, configured, options_of
from fillmask_ui.runs import Plan, RunInfo
from fillmask_ui.runs.engines import LOCAL, EngineChoice, installed_engines
from fillmask_ui.show.render import render
from fillmask_ui.texts import GroupedTextChoice, TextChoice, TextSource
from fillmask_ui.texts.reading import files_of
from fillmask_ui.texts.source import CSV_QUOTES, NO_QUOTES
from fillmask_ui.ui import components
from fillmask_ui.ui.components import QUIET, notice_html
from fillmask_ui.ui.evaluate import uploads
from fillmask_ui.ui.evaluate.option_controls import (
    Controls,
    device_controls,
    device_options,
    engine_controls,
    option_control,
)
from fillmask_ui.ui.session import Session

EMBEDDED, UPLOAD, PASTE, DATASET = "embedded", "upload", "paste", "dataset"
PLACES = {EMBEDDED: "Embedded", PASTE: "Paste", UPLOAD: "Upload", DATASET: "Data set"}
FILES = (".txt", ".csv", ".tsv", ".jsonl", ".json", ".log", ".gz")
_METRIC = next(iter(METRICS))
# Options of a mask recipe that share one box, such as "0.8 0.1 0.1".
SHARES = ("mask_share", "random_share", "unchanged_share")
# Limits of a public page: about a minute of one processor.
# Of the embedded texts 50 count as 31, enough for a verdict.
PUBLIC_TEXTS, PUBLIC_TEXTS_ONE_BY_ONE = 200, 50
PUBLIC_TOKENS = 128
# The one click of an empty page; the other fields keep their values.
QUICK: dict[str, Any] = {
    "where": EMBEDDED,
    "metric": _METRIC,
    "model": "embedded:int8",
    "baseline": "embedded",
    "samples": 100,
}
Values = Mapping[str, Any]


def build(session: Session, run: gr.Button | None = None) -> Controls:
    """Create the form's components, and `run` among them; those that do not apply are hidden."""
    _build_models(controls := Controls(), session)
    with gr.Row(elem_id="evaluate-what"):
        metrics = {name: metric.label for name, metric in METRICS.items()}
        places = {name: PLACES[name] for name in PLACES if not session.public or name != DATASET}
        for name, label, choices in (("where", "Texts", places), ("metric", "Metric", metrics)):
            controls[name] = gr.Radio(
                [(label, value) for value, label in choices.items()],
                value=next(iter(choices)),
                label=label,
                elem_id=f"evaluate-{name}",
                elem_classes="fm-radio",
            )
        for name, label in (("fm-all-metrics", "More"), ("fm-advanced", "Advanced")):
            components.html_block(render("evaluate/toggle.html", name=name, label=label))
        if run is not None:
            run.render()
    _build_texts(controls, session.public)
    with gr.Column(elem_id="evaluate-advanced"):
        note = components.html_block(notice_html("hint", METRICS[_METRIC].note))
        with gr.Row():
            controls["samples"] = gr.Number(
                PUBLIC_TEXTS_ONE_BY_ONE if session.public else 100,
                label="Number of texts",
                info="0 for all",
                min_width=90,
                elem_id="evaluate-samples",
            )
            controls["seed"] = option_control(
                EvaluationConfig, "seed", info="for masks and order", min_width=90
            )
            controls["max_tokens"] = gr.Number(
                PUBLIC_TOKENS if session.public else 0,
                label="Max tokens",
                info="Longer texts are cut. 0: the model's limit",
            )
            for name, label in (("pass_below", "Pass below"), ("risk_below", "At risk below")):
                percent = 100 * getattr(Limits(), name)
                controls[name] = gr.Number(
                    percent, label=label, info="% change", min_width=90, step=0.5
                )
            controls["fewest_texts"] = option_control(
                Limits, "fewest_texts", info="for a verdict", min_width=90
            )
        with gr.Row():
            controls["group_column"] = option_control(
                GroupedTextChoice,
                "group_column",
                info="Figures for each of its values. Of the embedded texts: kind",
                placeholder="none",
                elem_id="evaluate-group",
            )
            controls["shuffle"] = gr.Checkbox(value=True, label="Draw the texts at random")
        with gr.Row():
            metric_controls = _metric_controls()
        controls |= metric_controls
        controls |= device_controls(visible=not session.public)
        if installed_engines() and not session.public:
            controls |= engine_controls()
    controls["metric"].change(
        lambda metric: [
            notice_html("hint", METRICS[metric].note),
            *(gr.update(visible=name in controls_of(metric)) for name in metric_controls),
        ],
        controls["metric"],
        [note, *metric_controls.values()],
        **QUIET,
    )
    return controls


def _build_texts(controls: Controls, public: bool) -> None:
    """What a place of texts asks for; a public page reads no parquet."""
    text = functools.partial(option_control, TextChoice)
    with gr.Column(visible=False) as of_upload:
        label, kinds = "Text, CSV, TSV or JSON lines", [*FILES]
        if not public:
            label, kinds = "Text, CSV, TSV, JSON lines or parquet", [*FILES, ".parquet"]
        controls["upload"] = gr.File(label=label, file_types=kinds, height=110)
        fold = gr.Accordion("How the file is read", open=False, elem_classes="fm-fold")
        with fold, gr.Row():
            hint = "CSV and TSV. Blank: detected"
            controls["delimiter"] = text("delimiter", info=hint, placeholder="tab")
            quoting = [("detect", ""), ("enclose fields", CSV_QUOTES), ("are text", NO_QUOTES)]
            controls["quoting"] = gr.Radio(
                quoting, value="", label="Quotation marks", info="CSV and TSV"
            )
            hint = "JSON: key of the list of rows"
            controls["field"] = text("field", info=hint, placeholder="data")
    with gr.Column(visible=False) as of_paste:
        controls["pasted"] = gr.Textbox(
            label="Texts to paste",
            info="One per line, or paragraphs separated by blank lines",
            lines=5,
            max_lines=12,
            elem_id="evaluate-pasted",
        )
    with gr.Column(visible=False) as of_dataset:
        controls["dataset"] = text(
            "dataset",
            value=None,
            info="Id of a Hugging Face data set, or path of a file or folder",
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
        controls["column"] = text("column", info="Blank: text, or the only column", min_width=120)
        controls["by"] = text(
            "by", value="line", label="A plain text is a", info=None, min_width=120
        )
    controls["where"].change(
        lambda where: [
            *(gr.update(visible=where == place) for place in (UPLOAD, PASTE, DATASET)),
            gr.update(visible=where != EMBEDDED),
            gr.update(visible=where != PASTE),
        ],
        controls["where"],
        [of_upload, of_paste, of_dataset, of_rows, controls["column"]],
        **QUIET,
    )


def _build_models(controls: Controls, session: Session) -> None:
    """The reference, then the candidate; both of `QUICK` where the page opens with its model."""
    default = session.default_model
    reference, candidate = "", default
    if default == QUICK["baseline"]:
        reference, candidate = QUICK["baseline"], QUICK["model"]
    with gr.Row(elem_id="evaluate-models"):
        controls["baseline"] = components.model_picker(
            session,
            choices=[("none", ""), *components.model_choices(session)],
            value=reference,
            label="Reference",
            info="Clear to measure one model alone",
            elem_id="evaluate-baseline",
        )
        controls["model"] = components.model_picker(
            session, value=candidate, label="Candidate", elem_id="evaluate-model"
        )


def controls_of(metric: str) -> list[str]:
    """Names of the fields for a metric's own options; a recipe's shares have one box.

    >>> controls_of("cross-entropy")
    ['probability', 'shares', 'whole_word', 'random_from', 'mask_stream']
    """
    names = (option.name for option in all_options(METRICS[metric]))
    return list(dict.fromkeys("shares" if name in SHARES else name for name in names))


def _metric_controls() -> Controls:
    """A component for each option of any metric; those of the first metric are visible."""
    controls: Controls = {}
    for metric, owner in METRICS.items():
        visibility: dict[str, Any] = {"visible": metric == _METRIC}
        for name in controls_of(metric):
            if name == "shares" and name not in controls:
                controls[name] = gr.Textbox(
                    " ".join(f"{share:g}" for share in DEFAULT_SHARES),
                    label="Shares",
                    info="Shown as mask, as a random token, unchanged",
                    max_lines=1,
                    **visibility,
                )
            elif name not in controls:
                controls[name] = option_control(owner, name, **visibility)
    return controls


def plan_of(
    values: Values, root: Path, *, default_model: str = "embedded", public: bool = False
) -> Plan:
    """The plan that the form describes; a public page takes its own texts and uploads, in limits.

    Runs are kept in `root`, and an upload beside them, so that its run can be resumed later. Pasted
    texts are not written yet: `uploads.pasted_file` does it, once their job has its turn.
    """
    metric = METRICS[values["metric"]]
    metric_options = configured(metric, _chosen(all_options(metric), values))
    shared = _chosen(
        [options_of(EvaluationConfig)[name] for name in ("seed", "max_tokens")], values
    )
    config = EvaluationConfig(metric_options, **shared)
    borders = _chosen(all_options(Limits), values)
    for name in ("pass_below", "risk_below"):
        borders[name] /= 100  # boxes show percent
    limits = Limits(**borders)
    samples = _number("number of texts", values["samples"], whole=True) or None
    if public:
        check_bounds(samples, config, "this public page")
    model = ModelChoice(
        (values["model"] or "").strip() or default_model,
        # A provider may load libraries, or write files, that its options name.
        **({} if public else device_options(values)),
    )
    baseline = (values["baseline"] or "").strip()
    return Plan(
        model,
        model.second(baseline) if baseline else None,
        config,
        _source(values, samples, root, public=public),
        limits,
        hide_folders=True,
    )


def engine_of(values: Values) -> EngineChoice:
    """Where the form says to measure; in this process if it offers no choice."""
    if values.get("engine", LOCAL) == LOCAL:
        return EngineChoice()  # the boxes for Ray are hidden
    return configured(EngineChoice, _chosen(all_options(EngineChoice), values))


def _chosen(options: Iterable[Option], values: Values) -> dict[str, Any]:
    """The values of options by name; None for a blank one that need not be given."""
    by_name = {option.name: option for option in options}
    if set(SHARES) <= by_name.keys():
        values = {**values, **_shares(values)}
    chosen: dict[str, Any] = {}
    for name, option in by_name.items():
        value = values[name].strip() if isinstance(values[name], str) else values[name]
        # Its own box shows 0 for blank; shares have one box for all, and one of them may be 0.
        if option.default is None and (value is None or (not value and name not in SHARES)):
            chosen[name] = None
        elif option.kind in (int, float):
            chosen[name] = _number(option.label.lower(), value, whole=option.kind is int)
        else:
            chosen[name] = value
    return chosen


def _shares(values: Values) -> dict[str, float | None]:
    """The three shares of a mask recipe; fixed for whole words."""
    if values["whole_word"]:
        return dict.fromkeys(SHARES)
    try:
        shares = [float(part) for part in (values["shares"] or "").replace(",", " ").split()]
        return dict(zip(SHARES, shares, strict=True))
    except ValueError:
        raise OptionError(
            "the shares are three numbers (mask, random, unchanged) that add up to 1, such as "
            f"0.8 0.1 0.1; they were {values['shares']!r}"
        ) from None


_OF_UPLOADS = ("delimiter", "quoting", "field")
# The options of texts that a place asks for; any of a data set makes a folder one.
_ASKED = {
    EMBEDDED: ("group_column",),
    DATASET: ("group_column", "column", "dataset_name", "split", "revision", "streaming"),
    UPLOAD: ("group_column", "column", *_OF_UPLOADS),
}


def _source(values: Values, samples: int | None, root: Path, *, public: bool) -> TextSource:
    options = options_of(GroupedTextChoice)
    typed = _chosen([options[name] for name in _ASKED.get(values["where"], ())], values)
    if typed.get("split") == "test":  # the box's initial value
        typed["split"] = None
    typed |= {"samples": samples, "shuffle": bool(values["shuffle"]), "seed": int(values["seed"])}
    source = GroupedTextChoice(_dataset(values, root, public=public), **typed).source()
    if source.kind == "dataset" or files_of(source)[0].layout != "txt":
        return source
    return replace(source, by=values["by"])


def _dataset(values: Values, root: Path, *, public: bool) -> str:
    """`TextChoice.dataset` for the chosen place; an upload is kept first."""
    where, upload, named = values["where"], values["upload"], (values["dataset"] or "").strip()
    if where == EMBEDDED:
        return EMBEDDED
    if where == PASTE:
        return str(uploads.pasted_file(values["pasted"] or "", root, public=public))
    if where == UPLOAD:
        if not upload:
            raise OptionError("no file was uploaded: choose one, or pick the embedded texts")
        if public:
            uploads.check_public_upload(Path(upload))
        return str(uploads.keep_upload(Path(upload), root))
    if public:
        raise OptionError(
            "this public page evaluates its own texts, and what is pasted or uploaded; "
            "it fetches no data sets"
        )
    if not named or named == "-":
        raise OptionError(
            "no data set was named: write the id of a Hugging Face data set, such as "
            "Salesforce/wikitext, or the path of a file or folder"
        )
    return named


def _number(name: str, value: Any, *, whole: bool = False) -> Any:
    if type(value) not in (int, float) or (whole and value % 1):
        expected = "a whole number" if whole else "a number"
        raise OptionError(f"{name} must be {expected}; it was {str(value)[:100]!r}")
    return int(value) if whole else float(value)


def check_bounds(samples: int | None, config: EvaluationConfig, where: str) -> None:
    """An `OptionError` for more texts or longer ones than `where` measures for a stranger."""
    by = f" by {config.metric.name}" if config.metric.one_by_one else ""
    most = PUBLIC_TEXTS_ONE_BY_ONE if by else PUBLIC_TEXTS
    if samples is None or samples > most:
        raise OptionError(
            f"{where} measures at most {most} texts{by} at a time; {samples or 'all'} were asked "
            "for. Run it on your own machine for more"
        )
    if config.max_tokens is None or config.max_tokens > PUBLIC_TOKENS:
        raise OptionError(
            f"{where} cuts texts at {PUBLIC_TOKENS} tokens or fewer: set max tokens to "
            f"{PUBLIC_TOKENS}; it was {config.max_tokens or 'the limit of the model'}"
        )


def controls_of_run(
    info: RunInfo, root: Path, fresh_folder: Callable[[], Path]
) -> tuple[dict[str, Any], str]:
    """The values of the fields for a run, and a note of what they cannot be set to; often blank.

    The page may show no file but its own: `fresh_folder` makes a folder for a copy of the upload.
    """
    try:
        plan = Plan.of(info)
    except DataError:
        return {}, "The form stays as it is: this run was made from Python."
    config, source, missing = plan.config, plan.source, []
    values: dict[str, Any] = {
        "metric": config.metric.name,
        "seed": config.seed,
        "max_tokens": config.max_tokens or 0,
        **_held(config.metric),
        "pass_below": round(100 * plan.limits.pass_below, 9),
        "risk_below": round(100 * plan.limits.risk_below, 9),
        "fewest_texts": plan.limits.fewest_texts,
        "samples": source.samples or 0,
        "shuffle": source.shuffle,
        "group_column": source.group_column or "",
        "model": plan.model.reference,
        "baseline": plan.baseline.reference if plan.baseline else "",
        "device": plan.model.device or "",
        "provider_options": "\n".join(plan.model.provider_options),
    }
    shown = {name: getattr(plan.model, name) for name in ("device", "provider_options")}
    shares = [values.pop(name, None) for name in SHARES]
    if None not in shares and not values["whole_word"]:
        values["shares"] = " ".join(map(str, shares))
    for role, choice in (("reference", plan.baseline), ("candidate", plan.model)):
        # The number of threads changes no figure.
        options = replace(choice, threads=None).changed_options() if choice else {}
        for name, value in options.items():
            if shown.get(name) != value:
                missing.append(f"the {role} ran with {name.replace('_', '-')} {value}")
    if source.shuffle and source.seed != config.seed:
        missing.append(f"its texts were drawn with the seed {source.seed}")
    try:
        values |= _texts(source, root, fresh_folder)
    except DataError as error:
        # Without a file, Run reports it; an earlier choice would measure other texts.
        values |= {"where": UPLOAD, "upload": None}
        missing.append(str(error))
    for name in ("encoding", "format", *_OF_UPLOADS):
        value = getattr(source, name)
        if value != getattr(TextSource, name) and name not in values:
            missing.append(f"its texts were read with the {name} {value}")
    # Browsers get UTF-8 only.
    for name, value in values.items():
        if isinstance(value, str):
            values[name] = printable(value)
    note = "The form shows the settings of this run, except: "
    return values, note + "; ".join(missing) + "." if missing else ""


def _held(owner: Any) -> dict[str, Any]:
    """The options of a configuration, nested ones included, as their boxes hold them."""
    values: dict[str, Any] = {}
    for entry in fields(owner):
        value = getattr(owner, entry.name)
        if is_dataclass(value):
            values |= _held(value)
        elif "option" in entry.metadata:
            values[entry.name] = 0 if value is None and entry.name not in SHARES else value
    return values


def _texts(source: TextSource, root: Path, fresh_folder: Callable[[], Path]) -> dict[str, Any]:
    """Where the texts come from; a `DataError` with a clause if that cannot be set."""
    if source.kind == EMBEDDED:
        return {"where": EMBEDDED}
    rows, path = {"column": source.column, "by": source.by}, Path(source.where)
    dataset_controls = {"where": DATASET, "dataset": source.where, **rows}
    if source.kind == "dataset":
        more = {"dataset_name": source.config, "split": source.split, "revision": source.revision}
        return dataset_controls | more | {"streaming": source.streaming}
    if source.kind == "file" and (pasted := uploads.pasted_text(source.where)) is not None:
        return {"where": PASTE, "pasted": pasted, "by": source.by}
    name = uploads.uploaded_name(path, root)
    if name and path.exists():
        copy = uploads.link_or_copy(path, fresh_folder() / name)
        rows |= {name: getattr(source, name) or "" for name in _OF_UPLOADS}
        return {"where": UPLOAD, "upload": str(copy), **rows}
    if name or source.kind == "stdin" or not path.exists():
        gone = name or path.name or "standard input"
        raise DataError(f"what held its texts, {gone}, is gone: upload it again")
    return dataset_controls
