"""run.json: every choice, version and state of a run, and its figures once it is done."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError, opening
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.config import PROTOCOL_VERSION, PROTOCOLS
from fillmask_ui.files import printable
from fillmask_ui.intervals import Limits
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.schema import from_json

FORMAT = 1
RUN_FILE = "run.json"
RUNNING, DONE, STOPPED, FAILED = "running", "done", "stopped", "failed"
_LATER = ("engines", "cell")  # which older runs do not have


@dataclass(frozen=True)
class RunInfo:
    """What run.json holds."""

    name: str  # of the folder
    created: str  # ISO 8601, UTC
    config: EvaluationConfig  # what is measured
    model: Mapping[str, Any]  # signature of the model, as `ModelSignature.to_dict` gives it.
    baseline: Mapping[str, Any] | None = None  # signature of the second model; None without one
    # `TextSource.to_dict`, its `signature`, and how many rows were `available` when the run began.
    texts: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)  # `Plan.choices`
    # Where it was measured, an entry for each time that it began or went on elsewhere: `name`
    # (local or ray), and of Ray its `version`, `workers` and `threads_per_worker`.
    engines: tuple[Mapping[str, Any], ...] = ()
    cell: Mapping[str, Any] = field(default_factory=dict)  # of a sweep: its `sweep` and `key`
    limits: Limits = field(default_factory=Limits)  # borders of the verdict
    versions: Mapping[str, str] = field(default_factory=dict)  # of packages that took part
    state: str = RUNNING  # `running`, `done`, `stopped` or `failed`
    error: str | None = None  # why it failed, in words
    notes: tuple[str, ...] = ()  # on the texts (fewer than asked for, ...)
    result: Mapping[str, Any] | None = None  # `Summary.to_dict`, once it is done

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        own = {name: value for name, value in vars(self).items() if value or name not in _LATER}
        own |= {"config": self.config.to_dict(), "limits": asdict(self.limits)}
        return {"format": FORMAT, "protocol": self.config.protocol, **own}

    @property
    def config_now(self) -> EvaluationConfig:
        """The config of today that gives the numbers of this run; its own where none does."""
        models = [model for model in (self.model, self.baseline) if model]
        if any(str(model["precision"]).startswith("int") for model in models):
            return self.config
        return replace(self.config, protocol=PROTOCOL_VERSION)

    @property
    def signature(self) -> str:
        """Everything that a figure of this run depends on, in one line."""
        parts = [self.config.signature, f"model:{_short(self.model)}"]
        if self.baseline:
            parts.append(f"baseline:{_short(self.baseline)}")
        if self.texts:
            parts.append(str(self.texts.get("signature", "texts:unnamed")))
        parts += [f"{name}:{version}" for name, version in sorted(self.versions.items())]
        return "|".join(parts)


def _short(model: Mapping[str, Any]) -> str:
    named = [model[key] for key in ("name", "runtime", "device", "precision")]
    return "@".join([*named, model["sha256"][:12]])


def prepare_info(
    config: EvaluationConfig, model: MaskedLM, *, baseline: MaskedLM | None = None, **fields: Any
) -> RunInfo:
    """The `RunInfo` of a new run, its config resolved for the models; `fields` are more of its own.

    An `OptionError` if the config asks for more than the models take.
    """
    from fillmask_ui import __version__

    models = [model] if baseline is None else [model, baseline]
    versions = {"fillmask-ui": __version__}
    for entry in models:
        versions |= entry.signature.versions
    return RunInfo(
        name="",
        created="",
        config=config.resolved(*(entry.max_tokens for entry in models)),
        model=model.signature.to_dict(),
        baseline=None if baseline is None else baseline.signature.to_dict(),
        versions=versions,
        **fields,
    )


@dataclass(frozen=True)
class _Version:
    """What run.json says of how it is to be read."""

    format: int
    protocol: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)


def read_info(folder: Path) -> RunInfo:
    """run.json of a folder; a `DataError` if it is missing, broken or of another version."""
    # A folder that was copied or renamed is its own run.
    name = printable(folder.absolute().name)
    path = folder / RUN_FILE
    if not path.exists():
        raise DataError(f"{folder} is no run: it has no {RUN_FILE}")
    with opening("a run", path):
        content = path.read_bytes()
    what = f"run {name}: {RUN_FILE}"
    version = from_json(_Version, content, what)
    if version.format != FORMAT:
        maker = version.versions.get("fillmask-ui", "unknown")
        raise DataError(
            f"run {name} has format {version.format}, this version of fillmask-ui reads format "
            f"{FORMAT}: open it with the version that wrote it (fillmask-ui {maker}) or evaluate "
            "again"
        )
    if version.protocol not in PROTOCOLS:
        raise DataError(
            f"run {name} was measured by protocol {version.protocol}, this version of fillmask-ui "
            f"measures by protocol {PROTOCOL_VERSION}; their figures do not compare: evaluate again"
        )
    try:
        with opening("a run", path):
            info = from_json(RunInfo, content, what)
    except OptionError as error:
        raise DataError(f"{what}: {error}") from error
    return replace(info, name=name, config=replace(info.config, protocol=version.protocol))


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
