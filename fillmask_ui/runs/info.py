"""Every choice of an evaluation, as planned (`Plan`) and as run.json keeps it (`RunInfo`)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from fillmask_ui.errors import DataError, OptionError, opening
from fillmask_ui.evaluation import EvaluationConfig, RunningSummary
from fillmask_ui.evaluation.evaluation_config import PROTOCOL
from fillmask_ui.evaluation.measure import DEFAULT_BATCH_TOKENS, check_models
from fillmask_ui.files import printable
from fillmask_ui.intervals import Limits
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import InJson
from fillmask_ui.schema import from_json, from_trusted_values
from fillmask_ui.texts import TextSource

RUN_FILE = "run.json"
_LEAST_SECONDS = 1.0  # of the calls of a model, for its speed
RUNNING, DONE, STOPPED, FAILED = "running", "done", "stopped", "failed"


@dataclass(frozen=True)
class RunInfo:
    """What run.json holds."""

    name: str  # of the folder
    created: str  # ISO 8601, UTC
    # what is measured
    config: Annotated[EvaluationConfig, InJson(EvaluationConfig.from_dict, dict[str, Any])]
    model: Mapping[str, Any]  # signature of the model, as `ModelSignature.to_dict` gives it.
    baseline: Mapping[str, Any] | None = None  # signature of the second model; None without one
    # `TextSource`, its `signature`, and how many rows were `available` when the run began.
    texts: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)  # `Plan.choices`
    # Where it was measured, one entry per place: `name` (local or ray), and for Ray its `version`,
    # `workers` and `threads_per_worker`.
    engines: tuple[Mapping[str, Any], ...] = ()
    cell: Mapping[str, Any] = field(default_factory=dict)  # of a sweep: its `key`
    limits: Limits = field(default_factory=Limits)  # borders of the verdict
    versions: Mapping[str, str] = field(default_factory=dict)  # of packages that took part
    state: str = RUNNING  # `running`, `done`, `stopped` or `failed`
    error: str | None = None  # why it failed, in words
    notes: tuple[str, ...] = ()  # on the texts (fewer than asked for, ...)
    # In the calls of the model, or of baseline and model, if all texts were measured at once, here.
    call_seconds: tuple[float, ...] = ()
    result: Mapping[str, Any] | None = None  # `Summary.to_dict`, once it is done
    protocol: int = PROTOCOL  # by which it is measured
    title: str = ""  # name that a user gave it; the run is found by it too

    def to_dict(self) -> dict[str, Any]:
        config, limits = self.config.to_dict(), asdict(self.limits)
        return {**vars(self), "config": config, "limits": limits}

    def running(self) -> RunningSummary:
        size = self.model["vocabulary_size"]
        return RunningSummary(config=self.config, vocabulary_size=size, limits=self.limits)

    @property
    def speedup(self) -> float | None:
        """Speed of the model by that of its baseline on the same batches, if it was measured.

        None for calls of less than a second, whose times say little.
        """
        if len(self.call_seconds) < 2 or min(self.call_seconds) < _LEAST_SECONDS:
            return None
        baseline_seconds, seconds = self.call_seconds
        return baseline_seconds / seconds

    @property
    def signature(self) -> str:
        """Everything that a figure of this run depends on, in one line."""
        parts = [self.config.signature]
        for role, model in (("model", self.model), ("baseline", self.baseline)):
            if model:
                named = [model[key] for key in ("name", "runtime", "device", "precision")]
                parts.append(f"{role}:{'@'.join([*named, model['sha256'][:12]])}")
        if self.texts:
            parts.append(str(self.texts.get("signature", "texts:unnamed")))
        parts += (f"{name}:{version}" for name, version in sorted(self.versions.items()))
        return "|".join(parts)


@dataclass(frozen=True)
class Plan:
    """What is to be measured."""

    model: ModelChoice = field(default_factory=ModelChoice)
    baseline: ModelChoice | None = None
    config: EvaluationConfig = field(default_factory=EvaluationConfig)
    source: TextSource = field(default_factory=TextSource)
    limits: Limits = field(default_factory=Limits)
    hide_folders: bool = False  # from the signature, as a server does

    def __post_init__(self) -> None:
        pairs = self.config.metric.columns
        object.__setattr__(self, "source", replace(self.source, pairs=pairs))

    def texts(self) -> dict[str, Any]:
        """`RunInfo.texts`: where the texts come from, and the signature of that."""
        source = self.source
        if self.hide_folders and source.kind in ("file", "folder"):
            source = replace(source, where=Path(source.where).absolute().name)
        return {**asdict(self.source), "available": None, "signature": str(source)}

    def choices(self) -> dict[str, Any]:
        """`RunInfo.choices`: how the models were asked for."""
        return {"model": asdict(self.model), "baseline": self.baseline and asdict(self.baseline)}

    @classmethod
    def of(cls, info: RunInfo) -> Plan:
        """The plan of a stored run; a `DataError` if it was made from Python."""
        if "model" not in info.choices or "kind" not in info.texts:
            raise DataError(
                f"run {info.name} does not say how its model and texts were asked for (it was made "
                "from Python): resume it there, with fillmask_ui.runs.resume"
            )
        baseline = model_choice(info, "baseline") if info.choices.get("baseline") else None
        source = from_trusted_values(TextSource, info.texts, f"run {info.name}")
        return cls(model_choice(info, "model"), baseline, info.config, source, info.limits)


def model_choice(info: RunInfo, which: str) -> ModelChoice:
    """The choice of the `model` or `baseline` of a run; a `DataError` if it is not stored."""
    if choice := info.choices.get(which):
        return from_trusted_values(ModelChoice, choice, f"run {info.name}")
    raise DataError(
        f"run {info.name} does not record how its {which} was chosen: evaluate again from the page "
        "or the command line"
    )


def prepare_info(
    config: EvaluationConfig, model: MaskedLM, *, baseline: MaskedLM | None = None, **fields: Any
) -> RunInfo:
    """The `RunInfo` of a new run, its config as `check_models` gives it; `fields` are others."""
    from fillmask_ui import __version__

    config = check_models(model, baseline, config)
    versions = {"fillmask-ui": __version__, **model.signature.versions}
    versions |= baseline.signature.versions if baseline else {}
    return RunInfo(
        name="",
        created="",
        # A resumed run has the batches that it began with.
        config=replace(config, batch_tokens=config.batch_tokens or DEFAULT_BATCH_TOKENS),
        model=model.signature.to_dict(),
        baseline=None if baseline is None else baseline.signature.to_dict(),
        versions=versions,
        **fields,
    )


def read_info(folder: Path) -> RunInfo:
    """run.json of a folder; a `DataError` if it is missing, broken or of another version."""
    name = printable(folder.absolute().name)  # it may have been copied or renamed
    path, title = folder / RUN_FILE, f"run {name}: {RUN_FILE}"
    if not path.exists():
        raise DataError(
            f"{folder} is no run: it has no {RUN_FILE}; give the folder of a stored run"
        )
    with opening("a run", path):
        try:
            info = from_json(RunInfo, path.read_bytes(), title)
        except (OptionError, TypeError, AttributeError, LookupError) as error:
            raise DataError(f"{title}: {error}") from error
    if info.protocol != PROTOCOL:
        raise DataError(
            f"run {name} was measured by protocol {info.protocol}, and this version of fillmask-ui "
            f"measures by {PROTOCOL}: evaluate again"
        )
    return replace(info, name=name)


def write_info(folder: Path, info: RunInfo) -> None:
    """Replace run.json in one step: a reader sees the old or the new one, never half of it."""
    path = folder / RUN_FILE
    fresh = path.with_suffix(".new")
    # Names of files may hold what UTF-8 cannot write.
    with fresh.open("w", encoding="utf-8", errors="replace") as file:
        json.dump(info.to_dict(), file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
