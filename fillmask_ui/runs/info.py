"""run.json: every choice, version and state of a run, and its figures once it is done."""

import json
import math
import os
import stat
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.config import PROTOCOL_VERSION, PROTOCOLS
from fillmask_ui.evaluation.row_values import said
from fillmask_ui.evaluation.rows import MOST_VOCABULARY, StoredModels
from fillmask_ui.evaluation.schemes import Scheme, Unmasking
from fillmask_ui.intervals import Limits
from fillmask_ui.json_text import parse_object
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.output import printable
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import ModelSignature
from fillmask_ui.runs.files import open_file
from fillmask_ui.runs.shapes import check_shape, get_hints
from fillmask_ui.texts import TextSource

FORMAT = 1
RUN_FILE = "run.json"
_MOST_BYTES = 2**24  # a thousand times what it has
RUNNING, DONE, STOPPED, FAILED = STATES = ("running", "done", "stopped", "failed")
# Of `RunInfo.texts`; where they lie may change.
_PLANNED_TEXTS = (
    *("signature", "kind", "column", "config", "split", "samples", "shuffle", "seed", "by"),
    *("encoding", "format"),
)
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
        return {
            "format": FORMAT,
            "protocol": self.config.protocol,
            **own,
            "config": self.config.to_dict(),
            "limits": asdict(self.limits),
        }

    @property
    def row_models(self) -> StoredModels:
        """Which models made its rows."""
        own, second = (
            MOST_VOCABULARY if model is None else model["vocabulary_size"]
            for model in (self.model, self.baseline)
        )
        unmasked = isinstance(self.config.scheme, Unmasking)
        return StoredModels(self.baseline is not None, own, second, unmasked)

    @property
    def plan_checksum(self) -> int:
        """Of what its rows depend on, in [0, 2^32): rows of another run carry another one.

        Nothing in it changes while a run goes on, or in a later version.
        """
        models = [model and model["sha256"] for model in (self.model, self.baseline)]
        config = self.config
        options = [config.metric, *config.scheme.signature, config.seed, config.max_tokens]
        plan = [*options, *models, *map(self.texts.get, _PLANNED_TEXTS)]
        return zlib.crc32(json.dumps(plan).encode("ascii"))

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
class _Texts(TextSource):
    """`RunInfo.texts`; a run that was made from Python may have any part of it."""

    signature: str = ""
    available: int | None = None


@dataclass(frozen=True)
class _Choices:
    """`RunInfo.choices`, where the run was not made from Python."""

    model: ModelChoice | None = None
    baseline: ModelChoice | None = None


@dataclass(frozen=True)
class _Engine:
    """An entry of `RunInfo.engines`."""

    name: str
    version: str | None = None
    workers: int | None = None
    threads_per_worker: int | None = None


@dataclass(frozen=True)
class _Result:
    """What is read of `RunInfo.result`, beside the figure that the metric names."""

    texts: int
    tokens: int
    interval_95: tuple[float | None, float | None] | None
    skipped: Mapping[str, int]
    mean_nll_nats: float | None
    verdict: str | None = None
    effective_texts: float | None = None


@dataclass(frozen=True)
class _Stored:
    """What run.json has to hold."""

    created: str
    model: ModelSignature
    baseline: ModelSignature | None
    texts: _Texts
    choices: _Choices
    limits: Limits
    versions: Mapping[str, str]
    state: str
    error: str | None
    notes: tuple[str, ...]
    result: _Result | None
    engines: tuple[_Engine, ...] = ()
    cell: Mapping[str, Any] = field(default_factory=dict)


@cache
def _config_kinds() -> dict[str, Any]:
    """The types of what `EvaluationConfig.to_dict` gives, by name."""
    owners = EvaluationConfig.option_owners()
    kinds = {name: kind for owner in owners for name, kind in get_hints(owner).items()}
    return {name: kind for name, kind in kinds.items() if name != "scheme"}


def read_info(folder: Path) -> RunInfo:
    """run.json of a folder; a `DataError` if it is missing, altered or of another version."""
    # A folder that was copied or renamed is its own run.
    name = printable(folder.absolute().name)
    path = folder / RUN_FILE
    try:
        with open_file(path) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        values = parse_object(content)
    except FileNotFoundError as error:
        raise DataError(f"{folder} is no run: it has no {RUN_FILE}") from error
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        closed = isinstance(error, PermissionError)
        remedy = "ask its owner" if closed else "delete the run"
        raise DataError(
            f"run {name}: {RUN_FILE} in {folder} cannot be read ({why}): {remedy}"
        ) from error
    try:
        known = {"versions": Mapping[str, str], "format": int, "protocol": int}
        check_shape(values, known, RUN_FILE)
        if values.get("format") != FORMAT:
            maker = values.get("versions", {}).get("fillmask-ui", "unknown")
            raise DataError(
                f"run {name} has format {said(values.get('format'))}, this version of fillmask-ui "
                f"reads format {FORMAT}: open it with the version that wrote it (fillmask-ui "
                f"{maker}) or evaluate again"
            )
        if values.get("protocol") not in PROTOCOLS:
            raise DataError(
                f"run {name} was measured by protocol {said(values.get('protocol'))}, this "
                f"version of fillmask-ui measures by protocol {PROTOCOL_VERSION}; their figures do "
                "not compare: evaluate again"
            )
        return _info(name, values)
    except (ValueError, OptionError) as error:
        raise DataError(f"run {name}: {error}; delete the run") from error


def _info(name: str, values: dict[str, Any]) -> RunInfo:
    """The record of run.json; a `ValueError` or `OptionError` for what is not as it was written."""
    check_shape(values, _Stored, RUN_FILE)
    check_shape(values, {"config": _config_kinds()}, RUN_FILE)
    if not _is_time(values["created"]):
        raise ValueError(
            f"{RUN_FILE}: created must be a time such as 2026-01-31T12:00:00+00:00, it was "
            f"{said(values['created'])}"
        )
    for which in ("model", "baseline"):
        size = (values[which] or {}).get("vocabulary_size", 1)
        if not 0 < size <= MOST_VOCABULARY:
            raise ValueError(
                f"{RUN_FILE}: {which}.vocabulary_size must be a whole number from 1 to "
                f"{MOST_VOCABULARY:,}, it was {size}"
            )
    if values["state"] not in STATES:
        raise ValueError(f"{RUN_FILE}: state must be one of {', '.join(STATES)}")
    try:
        config = EvaluationConfig.from_dict({**values["config"], "protocol": values["protocol"]})
    except (KeyError, TypeError) as error:
        raise ValueError(f"{RUN_FILE}: config is missing or has what it cannot: {error}") from error
    if values["result"] is not None:
        _check_figure(config.scheme, values["result"])
    stored = {own: values[own] for own in get_hints(_Stored) if own in values}
    stored |= {
        "config": config,
        "limits": Limits(**values["limits"]),
        "notes": tuple(values["notes"]),
        "engines": tuple(values.get("engines", ())),
    }
    return RunInfo(name=name, **stored)


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _check_figure(scheme: Scheme, result: Mapping[str, Any]) -> None:
    """Hold the figure, which lists show without reading rows, against the loss beside it."""
    key, mean = scheme.figure_key, result["mean_nll_nats"]
    check_shape(result.get(key), float | None, f"{RUN_FILE}: result.{key}")
    if mean is None or not scheme.per_token:
        return
    wanted, stored = scheme.figure(mean), result.get(key)
    if not math.isclose(math.inf if stored is None else stored, wanted):
        raise ValueError(
            f"{RUN_FILE}: result.{key} is {said(stored)}, but {wanted:g} by its mean_nll_nats"
        )


def write_info(folder: Path, info: RunInfo) -> None:
    """Replace run.json in one step: a reader sees the old or the new one, never half of it."""
    path = folder / RUN_FILE
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)  # what somebody put there may be no file
    with fresh.open("w", encoding="utf-8") as file:
        if path.is_file():
            fresh.chmod(stat.S_IMODE(path.stat().st_mode))
        # Escapes, as the name of a text file may hold bytes that UTF-8 cannot write.
        json.dump(info.to_dict(), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
