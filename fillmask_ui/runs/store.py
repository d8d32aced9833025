"""The store of evaluation runs: a folder each.

    <root>/<name>/run.json     every choice and version; the figures once the run is done
    <root>/<name>/rows.jsonl   one line a text, appended and flushed as it is measured
    <root>/<name>/lock         held by the one process that writes

A line holds what `EvaluatedText.to_dict` gives, or `{"id", "skipped"}`, and the checksum of the
text that it was made from. A line without its newline is half-written: readers leave it out, and a
resumed run drops it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, unknown
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, Summary, summarize
from fillmask_ui.evaluation.config import PROTOCOL_VERSION
from fillmask_ui.intervals import Limits
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.lock import is_locked

FORMAT = 1
RUN_FILE, ROWS_FILE, LOCK_FILE = "run.json", "rows.jsonl", "lock"

RUNNING, DONE, STOPPED, FAILED = "running", "done", "stopped", "failed"


@dataclass(frozen=True)
class RunInfo:
    """What run.json holds.

    Attributes:
        name: of the folder.
        created: ISO 8601, UTC.
        config: what is measured.
        model: signature of the model, as `ModelSignature.to_dict` gives it.
        baseline: of the second model; None without one.
        texts: where the texts come from: `TextSource.to_dict`, its `signature`, and how many rows
            were `available` when the run began.
        choices: whatever else is needed to start it again (how the models were asked for).
        limits: borders of the verdict.
        versions: of this package and of what the models ran on.
        state: `running`, `done`, `stopped` or `failed`.
        error: why it failed, in words.
        notes: what a reader should know of the texts (fewer than asked for, ...).
        result: the figures, as `Summary.to_dict` gives them, once it is done.
    """

    name: str
    created: str
    config: EvaluationConfig
    model: Mapping[str, Any]
    baseline: Mapping[str, Any] | None = None
    texts: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    versions: Mapping[str, str] = field(default_factory=dict)
    state: str = RUNNING
    error: str | None = None
    notes: tuple[str, ...] = ()
    result: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {
            "format": FORMAT,
            "protocol": PROTOCOL_VERSION,
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "config": self.config.to_dict(),
            "limits": {"pass_below": self.limits.pass_below, "risk_below": self.limits.risk_below},
        }

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
    return "@".join(
        (model["name"], model["runtime"], model["device"], model["precision"], model["sha256"][:12])
    )


class Run:
    """A stored run, to be read.

    Args:
        folder: of the run.

    Raises:
        DataError: if there is no run, or one of another version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info = read_info(folder)

    @property
    def state(self) -> str:
        """As stored, but a run that claims to be running while nobody writes it is stopped."""
        if self.info.state == RUNNING and not is_locked(self.folder / LOCK_FILE):
            return STOPPED
        return self.info.state

    def rows(self) -> Iterator[EvaluatedText | SkippedText]:
        """All rows in the order in which they were written, a half-written last one left out.

        Raises:
            DataError: if a line before the last cannot be read.
        """
        for number, line in enumerate(self.lines(), start=1):
            yield row_from_dict(line, self.folder / ROWS_FILE, number)

    def lines(self) -> Iterator[dict[str, Any]]:
        """`rows` as plain values."""
        path = self.folder / ROWS_FILE
        if not path.exists():
            return
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield parse_line(line, path, number)

    @property
    def row_count(self) -> int:
        """Whole lines."""
        path = self.folder / ROWS_FILE
        if not path.exists():
            return 0
        with path.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))

    def summary(self) -> Summary:
        """The figures of the rows so far, to the last digit those of the run itself.

        Raises:
            DataError: if no text was measured.
        """
        return summarize(
            self.rows(),
            config=self.info.config,
            vocabulary_size=self.info.model["vocabulary_size"],
            limits=self.info.limits,
        )


class RunStore:
    """All runs under one folder.

    Args:
        root: made when the first run is; passed in, never global.
        clock: the time, for names.
    """

    def __init__(
        self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    ) -> None:
        self.root = root
        self._clock = clock

    def create(self, info: RunInfo) -> RunInfo:
        """Make the folder of a new run.

        Args:
            info: its `name` and `created` are filled in here.

        Raises:
            DataError: if the folder cannot be written.
        """
        now = self._clock()
        stem = f"{now:%Y%m%d-%H%M%S}-{_slug(info.model['name'])}-{info.config.metric}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for number in range(1, 10_000):
                name = stem if number == 1 else f"{stem}-{number}"
                try:
                    (self.root / name).mkdir()
                except FileExistsError:
                    continue
                made = replace(info, name=name, created=now.isoformat(timespec="seconds"))
                write_info(self.root / name, made)
                return made
        except OSError as error:
            raise DataError(
                f"no run can be stored in {self.root}: {error.strerror}; name another folder with "
                "the environment variable FILLMASK_UI_RUNS"
            ) from error
        raise DataError(f"{self.root} has ten thousand runs of this second already")

    def open(self, name: str) -> Run:
        """A run by its name, by the beginning of its name if no other has it, or `latest`.

        Raises:
            DataError: if there is none, several, or one of another version.
        """
        names = self.names()
        if name == "latest" and names:
            return Run(self.root / names[-1])
        if name in names:
            return Run(self.root / name)
        found = [known for known in names if name and known.startswith(name)]
        if len(found) == 1:
            return Run(self.root / found[0])
        if found:
            raise DataError(f"several runs begin with {name!r}: {', '.join(found)}")
        recent = names[-5:]
        raise DataError(
            unknown("run", name, recent)
            + (f" and {len(names) - 5} older" if len(names) > 5 else "")
        )

    def names(self) -> list[str]:
        """Names of all runs, oldest first."""
        if not self.root.is_dir():
            return []
        return sorted(path.parent.name for path in self.root.glob(f"*/{RUN_FILE}"))

    def delete(self, name: str) -> str:
        """Remove a run and give its full name back.

        Raises:
            DataError: if it is unknown or being written.
        """
        matches = [known for known in self.names() if known == name]
        folder = self.root / matches[0] if matches else self.open(name).folder
        if is_locked(folder / LOCK_FILE):
            raise DataError(f"run {folder.name} is being written: stop it first")
        shutil.rmtree(folder)
        return folder.name


def default_root(environment: Mapping[str, str], platform: str, home: Path) -> Path:
    """Where runs are kept unless a face says otherwise.

    Args:
        environment: `FILLMASK_UI_RUNS` wins over the platform's place for user data.
        platform: as `sys.platform` gives it.
        home: of the user.

    >>> default_root({}, "linux", Path("/home/ada")).as_posix()
    '/home/ada/.local/share/fillmask-ui/runs'
    """
    if environment.get("FILLMASK_UI_RUNS"):
        return Path(environment["FILLMASK_UI_RUNS"]).expanduser()
    if platform == "win32":
        data = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        data = home / "Library" / "Application Support"
    else:
        data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    return data / "fillmask-ui" / "runs"


def read_info(folder: Path) -> RunInfo:
    """run.json of a folder.

    Raises:
        DataError: if it is missing, broken or of another version.
    """
    path = folder / RUN_FILE
    try:
        values = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{folder} is no run: it has no {RUN_FILE}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): delete the run") from error
    found = values.get("format") if isinstance(values, dict) else None
    if found != FORMAT:
        raise DataError(
            f"run {folder.name} has format {found!r}, this version of fillmask-ui reads format "
            f"{FORMAT}: open it with the version that wrote it "
            f"({_writer(values)}) or evaluate again"
        )
    if values.get("protocol") != PROTOCOL_VERSION:
        raise DataError(
            f"run {folder.name} was measured by protocol {values.get('protocol')!r}, this version "
            f"of fillmask-ui measures by protocol {PROTOCOL_VERSION}; their figures do not "
            "compare: evaluate again"
        )
    try:
        known = {name: values[name] for name in RunInfo.__dataclass_fields__}
        # A folder that was copied or renamed is a run of its own.
        known["name"] = folder.absolute().name
        known["config"] = EvaluationConfig.from_dict(values["config"])
        known["limits"] = Limits(**values["limits"])
        known["notes"] = tuple(values["notes"])
        return RunInfo(**known)
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} lacks or misspells a field ({error}): delete the run") from error


def _writer(values: Any) -> str:
    versions = values.get("versions") if isinstance(values, dict) else None
    known = versions if isinstance(versions, dict) else {}
    return f"fillmask-ui {known.get('fillmask-ui', 'unknown')}"


def write_info(folder: Path, info: RunInfo) -> None:
    """Replace run.json in one step: a reader sees the old or the new one, never half of it."""
    path = folder / RUN_FILE
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as file:
        # Escapes, as the name of a text file may hold bytes that UTF-8 cannot write.
        json.dump(info.to_dict(), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """One whole line of rows.jsonl.

    Raises:
        DataError: if it is no JSON object.
    """
    try:
        values = json.loads(line)
    except ValueError as error:
        raise DataError(f"line {number} of {path} is broken ({error}): evaluate again") from error
    if not isinstance(values, dict) or "id" not in values:
        raise DataError(f"line {number} of {path} is no row of a run: evaluate again")
    return values


def row_from_dict(
    values: Mapping[str, Any], path: Path, number: int
) -> EvaluatedText | SkippedText:
    """A row from its plain values.

    Args:
        values: of one line.
        path: of the file, for the message.
        number: of the line, for the message.

    Raises:
        DataError: if a field is missing or of another kind.
    """
    try:
        if "skipped" in values:
            return SkippedText(values["id"], values["skipped"])
        return EvaluatedText.from_dict(values)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"line {number} of {path} lacks or misspells a field ({error}): evaluate again"
        ) from error


def _slug(name: str) -> str:
    """A model's name as part of a folder's.

    >>> _slug("org/BERT base@main"), _slug("/tmp/models/tiny.onnx")
    ('org-BERT-base-main', 'models-tiny.onnx')
    """
    last = "/".join(re.split(r"[/\\]", name)[-2:])
    return re.sub(r"[^A-Za-z0-9._]+", "-", last).strip("-.")[:60] or "model"
