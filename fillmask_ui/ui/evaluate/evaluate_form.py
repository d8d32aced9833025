"""Check the values of the Evaluate tab's controls and make a `Plan` of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from fillmask_ui.cluster import LOCAL, EngineChoice
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import METRICS, EvaluationConfig
from fillmask_ui.files import printable
from fillmask_ui.intervals import Limits
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.options import options_of
from fillmask_ui.runs import Plan, RunInfo
from fillmask_ui.texts import TextChoice, TextSource
from fillmask_ui.texts.reading import files_of
from fillmask_ui.ui.evaluate.uploads import (
    check_public_upload,
    keep_pasted,
    keep_upload,
    link_or_copy,
    pasted_text,
    uploaded_name,
)

EMBEDDED, UPLOAD, PASTE, DATASET = "embedded", "upload", "paste", "dataset"
# Options of a mask recipe that share one box, such as "0.8 0.1 0.1".
SHARES = ("mask_share", "random_share", "unchanged_share")
# Limits of a public page: about a minute of one processor.
PUBLIC_TEXTS = 200
PUBLIC_TEXTS_ONE_BY_ONE = 40
PUBLIC_TOKENS = 128

Made = TypeVar("Made")
# Name of a control in `controls.build` -> its value.
Values = Mapping[str, Any]


def metric_options(owner: type) -> dict[str, type]:
    """Options of a metric, nested ones included, each with the dataclass that holds it.

    >>> list(metric_options(METRICS["suffix"]))
    ['suffix_tokens']
    """
    found: dict[str, type] = {}
    for name, kind in get_type_hints(owner).items():
        if name in options_of(owner):
            found[name] = owner
        elif isinstance(kind, type) and is_dataclass(kind):
            found |= metric_options(kind)
    return found


def plan_of(
    values: Values, root: Path, *, default_model: str = "embedded", public: bool = False
) -> Plan:
    """The plan that the controls describe.

    Args:
        values: of the controls.
        root: where runs are kept; an upload is copied there, so that its run can be resumed later.
        default_model: what a blank model means.
        public: allow only the page's own texts and uploads, within limits.

    Raises:
        OptionError: for invalid values, or those not offered on a public page.
        DataError: if the uploaded file is gone or cannot be kept, or a folder has no texts.
    """
    config = _config(values)
    limits = Limits(
        _number("the border of PASS", values["pass_below"]) / 100,
        _number("the border of AT_RISK", values["risk_below"]) / 100,
    )
    samples = _whole("the number of texts", values["samples"]) or None
    if public:
        _check_public(samples, config)
    baseline = (values["baseline"] or "").strip()
    return Plan(
        ModelChoice((values["model"] or "").strip() or default_model),
        ModelChoice(baseline) if baseline else None,
        config,
        _source(values, samples, root, public=public),
        limits,
        hide_folders=True,
    )


def engine_of(values: Values) -> EngineChoice:
    """Where the controls say to measure; in this process if they offer no choice.

    Raises:
        OptionError: for numbers out of range.
    """
    if values.get("engine", LOCAL) == LOCAL:
        return EngineChoice()  # the boxes for Ray are hidden
    return _made(EngineChoice, {**values, "address": (values["address"] or "").strip() or None})


def _config(values: Values) -> EvaluationConfig:
    metric = METRICS.get(values["metric"])
    if metric is not None and set(SHARES) <= metric_options(metric).keys():
        values = {**values, **_shares(values)}
    return EvaluationConfig(
        values["metric"] if metric is None else _made(metric, values),
        seed=_whole("the seed", values["seed"]),
        max_tokens=_whole("max tokens", values["max_tokens"]) or None,
    )


def _made(owner: type[Made], values: Values) -> Made:
    """A configuration, or one nested in it, from the values of the controls."""
    kinds, chosen = get_type_hints(owner), {}
    for entry in fields(owner):  # type: ignore[arg-type]
        name = entry.name
        if name in options_of(owner):
            chosen[name] = _option(owner, name, values[name], blank=entry.default is None)
        elif is_dataclass(kinds[name]):
            chosen[name] = _made(kinds[name], values)
    return owner(**chosen)


def _option(owner: type, name: str, value: Any, *, blank: bool) -> Any:
    """One option, checked; None if blank and `blank` is allowed."""
    # Its own box shows 0 for blank; shares have one box for all, and one of them may be 0.
    if blank and (value is None or (value == 0 and name not in SHARES)):
        return None
    option = options_of(owner)[name]
    kind, what = option.kind, f"the {option.label.lower()}"
    if kind is int:
        return _whole(what, value, least=int(option.least or 0))
    return _number(what, value) if kind is float else kind(value)


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


def _source(values: Values, samples: int | None, root: Path, *, public: bool) -> TextSource:
    choice = TextChoice(
        _dataset(values, root, public=public),
        **(_fetched(values) if values["where"] == DATASET else {}),
        column=None if values["where"] == PASTE else (values["column"] or "").strip() or None,
        samples=samples,
        shuffle=bool(values["shuffle"]),
        seed=int(values["seed"]),
    )
    source = choice.source()
    if values["where"] == EMBEDDED:
        # The box is hidden, but its value is still checked.
        return replace(source, column=None)
    if source.kind == "dataset" or files_of(source)[0].layout != "txt":
        return source
    return replace(source, by=values["by"])


def _fetched(values: Values) -> dict[str, Any]:
    """Options of `TextChoice` for data sets alone; any of them makes a folder a data set."""
    split = (values["split"] or "").strip()
    return {
        "dataset_name": (values["dataset_name"] or "").strip() or None,
        "split": None if split == "test" else split or None,  # the box's initial value
        "revision": (values["revision"] or "").strip() or None,
        "streaming": bool(values["streaming"]),
    }


def _dataset(values: Values, root: Path, *, public: bool) -> str:
    """`TextChoice.dataset` for the chosen place; an upload is kept first."""
    where, upload, named = values["where"], values["upload"], (values["dataset"] or "").strip()
    if where == PASTE:
        return str(keep_pasted(values["pasted"] or "", root, public=public))
    if where == EMBEDDED:
        return EMBEDDED
    if where == UPLOAD:
        if not upload:
            raise OptionError("no file was uploaded: choose one, or pick the embedded texts")
        if public:
            check_public_upload(Path(upload))
        return str(keep_upload(Path(upload), root))
    if where != DATASET or public:
        raise OptionError(
            "this public page evaluates its own texts, and what is pasted or uploaded; "
            "it fetches no data sets"
            if public
            else f"unknown place of texts {where!r}"
        )
    if not named or named == "-":
        raise OptionError(
            "no data set was named: write the id of a Hugging Face data set, such as "
            "Salesforce/wikitext, or the path of a file or folder"
        )
    return named


def _number(what: str, value: Any) -> float:
    if value is None:
        raise OptionError(f"{what} is missing: write a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise OptionError(f"{what} must be a number; it was {str(value)[:100]!r}") from None


def _whole(what: str, value: float | None, *, least: int = 0) -> int:
    number = _number(what, value)
    if not number.is_integer() or number < least:
        raise OptionError(f"{what} must be a whole number, {least} or more; it was {number:g}")
    return int(number)


def _check_public(samples: int | None, config: EvaluationConfig) -> None:
    one_by_one = config.metric.one_by_one
    most = PUBLIC_TEXTS_ONE_BY_ONE if one_by_one else PUBLIC_TEXTS
    if samples is None or samples > most:
        raise OptionError(
            f"this public page measures at most {most} texts "
            f"{f'by {config.metric.name} ' if one_by_one else ''}at a time; "
            f"{samples or 'all'} were asked for. Run it on your own machine for more"
        )
    if config.max_tokens is None or config.max_tokens > PUBLIC_TOKENS:
        raise OptionError(
            f"this public page cuts texts at {PUBLIC_TOKENS} tokens or fewer: set max tokens to "
            f"{PUBLIC_TOKENS}; it was {config.max_tokens or 'the limit of the model'}"
        )


@dataclass(frozen=True)
class SetControls:
    """Values to put into the controls."""

    values: Mapping[str, Any]  # by name, as `plan_of` reads them; others stay
    missing: tuple[str, ...] = ()  # what cannot be set, as clauses

    @property
    def note(self) -> str:
        """A message about controls that could not be set; blank if all were."""
        if not self.missing:
            return ""
        said = (
            "The controls are set to what this run was made with, as far as they can be"
            if self.values
            else "The controls stay as they are"
        )
        return f"{said}: {'; '.join(self.missing)}."


def controls_of_run(
    info: RunInfo, root: Path, fresh_folder: Callable[[], Path], *, public: bool = False
) -> SetControls:
    """The values of the controls for a run, and what they cannot be set to.

    Args:
        info: of the run.
        root: where runs are kept, and uploads beside them.
        fresh_folder: makes a folder for a copy of the upload; the page may show no other file.
        public: whether the page offers no data sets.
    """
    try:
        plan = Plan.of(info)
    except DataError:
        return SetControls({}, ("this run was made from Python",))
    config, source, missing = plan.config, plan.source, []
    values: dict[str, Any] = {
        "metric": config.metric.name,
        "seed": config.seed,
        "max_tokens": config.max_tokens or 0,
        **dict(_own(config.metric)),
        "pass_below": round(100 * plan.limits.pass_below, 9),
        "risk_below": round(100 * plan.limits.risk_below, 9),
        "samples": source.samples or 0,
        "shuffle": source.shuffle,
        "model": plan.model.reference,
        "baseline": plan.baseline.reference if plan.baseline else "",
    }
    for role, choice in (("reference", plan.baseline), ("candidate", plan.model)):
        missing += [f"the {role} was asked for with {given}" for given in _options(choice)]
    if source.shuffle and source.seed != config.seed:
        missing.append(f"its texts were drawn with the seed {source.seed}")
    try:
        values |= _texts(source, root, fresh_folder, public)
    except DataError as error:
        # Without a file, Run reports it; an earlier choice would measure other texts.
        values |= {"where": UPLOAD, "upload": None}
        missing.append(str(error))
    for name, default in (("encoding", "utf-8"), ("format", None)):
        if (value := getattr(source, name)) != default:
            missing.append(f"its texts were read with the {name} {value}")
    # Browsers get UTF-8 only.
    sent = {name: printable(own) if type(own) is str else own for name, own in values.items()}
    return SetControls(sent, tuple(missing))


def _own(owner: Any) -> Iterator[tuple[str, Any]]:
    """The controls of a metric's own options, nested ones included."""
    shares = [getattr(owner, name, None) for name in SHARES]
    if None not in shares and not owner.whole_word:
        yield "shares", " ".join(map(str, shares))
    for entry in fields(owner):
        value = getattr(owner, entry.name)
        if is_dataclass(value):
            yield from _own(value)
        elif entry.name in options_of(owner) and entry.name not in SHARES:
            yield entry.name, 0 if value is None else value  # 0: not given


def _options(choice: ModelChoice | None) -> list[str]:
    """Options the model was loaded with; the number of threads changes no figure."""
    given = replace(choice, threads=None).given() if choice else {}
    return [f"{name.replace('_', '-')} {value}" for name, value in given.items()]


def _texts(
    source: TextSource, root: Path, fresh_folder: Callable[[], Path], public: bool
) -> dict[str, Any]:
    """Where the texts come from; a `DataError` with a clause if that cannot be set."""
    if source.kind == EMBEDDED:
        return {"where": EMBEDDED}
    rows = {"column": source.column, "by": source.by}
    if source.kind == "stdin":
        raise DataError("its texts came from standard input: choose them again")
    if source.kind == "file":
        path, pasted = Path(source.where), pasted_text(source.where)
        if pasted is not None:
            return {"where": PASTE, "pasted": pasted, "by": source.by}
        name, there = uploaded_name(path, root), path.exists()
        if name and there:
            return {
                "where": UPLOAD,
                "upload": str(link_or_copy(path, fresh_folder() / name)),
                **rows,
            }
        if name or public or not there:
            raise DataError(f"the file of its texts, {name or path.name}, is gone: upload it again")
        return {"where": DATASET, "dataset": source.where, **rows}
    if source.kind == "folder":
        path = Path(source.where)
        if public or not path.is_dir():
            raise DataError(
                f"the folder of its texts, {path.name}, is gone: choose its texts again"
            )
        return {"where": DATASET, "dataset": source.where, **rows}
    if public:
        raise DataError(f"this page cannot fetch its data set {source.where}")
    named = {"dataset": source.where, "dataset_name": source.config, "split": source.split}
    more = {"revision": source.revision, "streaming": source.streaming}
    return {"where": DATASET, **named, **more, **rows}
