"""What the controls hold for a stored run: `form.plan_of` backwards, so that Run repeats it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError
from fillmask_ui.files import printable
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.options import options_of
from fillmask_ui.runs import Plan, RunInfo
from fillmask_ui.texts import TextSource
from fillmask_ui.ui.evaluate.form import DATASET, EMBEDDED, PASTE, SHARES, UPLOAD
from fillmask_ui.ui.evaluate.uploads import link_or_copy, pasted_text, uploaded_name


@dataclass(frozen=True)
class SetControls:
    """What the controls are set to."""

    values: Mapping[str, Any]  # by name, as `plan_of` reads them; those left out stay as they are
    missing: tuple[str, ...] = ()  # what cannot be set, as clauses

    @property
    def note(self) -> str:
        """What a reader should know of it."""
        if not self.values:
            return f"The controls stay as they are: {'; '.join(self.missing)}."
        if self.missing:
            return (
                "The controls are set to what this run was made with, as far as they can be: "
                f"{'; '.join(self.missing)}."
            )
        return "The controls are set to what this run was made with: Run repeats it."


def controls_of_run(
    info: RunInfo, root: Path, fresh_folder: Callable[[], Path], *, public: bool = False
) -> SetControls:
    """What the controls held for a run, and what they cannot be set to.

    Args:
        info: of the run.
        root: where runs are kept, and uploads beside them.
        fresh_folder: makes one for a copy of the upload, as the page may show no other file.
        public: whether the page offers no data sets.
    """
    try:
        plan = Plan.of(info)
    except DataError:
        return SetControls({}, ("this run was made from Python",))
    config, source, missing = plan.config, plan.source, []
    values: dict[str, Any] = {
        "metric": config.metric,
        "seed": config.seed,
        "max_tokens": config.max_tokens or 0,
        **dict(_own(config.scheme)),
        "pass_below": round(100 * plan.limits.pass_below, 9),
        "risk_below": round(100 * plan.limits.risk_below, 9),
        "samples": source.samples or 0,
        "shuffle": source.shuffle,
        "model": plan.model.reference,
        "baseline": plan.baseline.reference if plan.baseline else "",
    }
    for letter, choice in (("A", plan.model), ("B", plan.baseline)):
        missing += [f"model {letter} was asked for with {given}" for given in _options(choice)]
    if source.shuffle and source.seed != config.seed:
        missing.append(f"its texts were drawn with the seed {source.seed}")
    try:
        values |= _texts(source, root, fresh_folder, public)
    except DataError as error:
        # With no file Run says so; with what was chosen before it would measure something else.
        values |= {"where": UPLOAD, "upload": None}
        missing.append(str(error))
    for name, default in (("encoding", "utf-8"), ("format", None)):
        if (value := getattr(source, name)) != default:
            missing.append(f"its texts were read with the {name} {value}")
    # A browser is sent UTF-8 alone.
    sent = {name: printable(own) if type(own) is str else own for name, own in values.items()}
    return SetControls(sent, tuple(missing))


def _own(owner: Any) -> Iterator[tuple[str, Any]]:
    """The controls of a metric's own options, those nested in it included."""
    shares = [getattr(owner, name, None) for name in SHARES]
    if None not in shares and not owner.whole_word:
        yield "shares", " ".join(map(str, shares))
    for entry in fields(owner):
        value = getattr(owner, entry.name)
        if is_dataclass(value):
            yield from _own(value)
        elif entry.name in options_of(owner) and entry.name not in SHARES:
            yield entry.name, 0 if value is None else value  # as a number that is not given


def _options(choice: ModelChoice | None) -> list[str]:
    """What a model was asked for with; how many threads measured changes no number."""
    given = replace(choice, threads=None).given() if choice else {}
    return [f"{name.replace('_', '-')} {value}" for name, value in given.items()]


def _texts(
    source: TextSource, root: Path, fresh_folder: Callable[[], Path], public: bool
) -> dict[str, Any]:
    """Where the texts come from; a `DataError` with a clause where that cannot be set."""
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
