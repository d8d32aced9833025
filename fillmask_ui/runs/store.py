"""The store of evaluation runs: a folder each.

<root>/<name>/run.json     every choice and version; the figures once the run is done
<root>/<name>/rows.jsonl   one line per text, appended and flushed as it is measured
<root>/<name>/lock         held by the one process that writes; lock.pid says which
"""

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from fillmask_ui.assets import RUNS
from fillmask_ui.errors import DataError, unknown
from fillmask_ui.evaluation import EvaluatedText, Summary, summarize
from fillmask_ui.output import printable
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.files import check_regular
from fillmask_ui.runs.info import DONE, RUN_FILE, RUNNING, STOPPED, RunInfo, read_info, write_info
from fillmask_ui.runs.lock import is_locked
from fillmask_ui.runs.rows_file import Measured, RowsFile

ROWS_FILE, LOCK_FILE = "rows.jsonl", "lock"


class Run:
    """A stored run, to be read; a `DataError` if the folder has none, or of another version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info = read_info(folder)
        self.lines = rows_file(folder, self.info)  # as they are stored
        key, result = self.info.config.scheme.figure_key, self.info.result
        if result is not None and key not in result and not self.lacks_rows:
            # As of older runs by `uniform`, whose figure was the mean over hidden tokens.
            self.info = replace(self.info, result=self.summary().to_dict())

    @property
    def state(self) -> str:
        """As stored, but a run that claims to be running while nobody writes it is stopped."""
        if self.info.state == RUNNING and not is_locked(self.folder / LOCK_FILE):
            return STOPPED
        return self.info.state

    def rows(self) -> Iterator[EvaluatedText | SkippedText]:
        """All rows in the order in which they were written, a half-written last one left out."""
        return (line.row() for line in self.lines)

    def row(self, example: int) -> EvaluatedText:
        """What was measured of one text, by its id; a `DataError` if nothing was."""
        line = self.lines.of(example)
        row = None if line is None else line.row()
        if not isinstance(row, EvaluatedText):
            raise DataError(f"run {self.info.name} has not measured a text {example}")
        return row

    @property
    def row_count(self) -> int:
        return len(self.lines)

    @property
    def expected(self) -> int | None:
        """Texts in all, once it is done; None where that is not known."""
        known = [self.info.texts.get(name) for name in ("samples", "available")]
        return min((number for number in known if number), default=None)

    def summary(self) -> Summary:
        """The figures of the rows so far, to the last digit those of the run itself.

        Raises:
            DataError: if a row is not as it was written, or if the run is done and has more or
                fewer of them than it measured, or if it stopped before the first.
        """
        if not len(self.lines) and self.info.state != DONE:
            raise DataError(
                f"run {self.info.name} has measured no text yet: go on with `fillmask-ui eval "
                f"--resume {self.info.name}`, or delete it"
            )
        return summarize(
            self.rows(),
            config=self.info.config,
            vocabulary_size=self.info.model["vocabulary_size"],
            limits=self.info.limits,
        )

    @property
    def lacks_rows(self) -> bool:
        """Whether it is done, and somebody took rows away since."""
        return self.lines.measured is not None and len(self.lines) < self.lines.measured.rows


def rows_file(folder: Path, info: RunInfo) -> RowsFile:
    """The rows of a run; a `DataError` if they cannot be read."""
    path = folder / ROWS_FILE
    try:
        check_regular(path)
    except FileNotFoundError:
        pass  # nothing was measured yet
    except OSError as error:
        why = error.strerror
        raise DataError(
            f"run {info.name}: {path} cannot be read ({why}): delete the run"
        ) from error
    return RowsFile(path, info.name, info.row_models, _measured(info), info.plan_checksum)


def _measured(info: RunInfo) -> Measured | None:
    result = info.result
    if info.state != DONE or result is None:
        return None
    rows = result["texts"] + sum(result["skipped"].values())
    return Measured(rows, result["texts"], result["tokens"], result["mean_nll_nats"])


class RunStore:
    """All runs under one folder, made when the first run is; `clock` gives the time for names."""

    def __init__(
        self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    ) -> None:
        self.root = root
        self._clock = clock

    def create(self, info: RunInfo) -> RunInfo:
        """Make the folder of a new run; `name` and `created` are filled in here."""
        now = self._clock()
        stem = f"{now:%Y%m%d-%H%M%S}-{slug(info.model['name'])}-{info.config.metric}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for number in itertools.count(1):
                name = stem if number == 1 else f"{stem}-{number}"
                with contextlib.suppress(FileExistsError):
                    (self.root / name).mkdir()
                    break
            made = replace(info, name=name, created=now.isoformat(timespec="seconds"))
            try:
                write_info(self.root / name, made)
            except OSError:
                shutil.rmtree(self.root / name, ignore_errors=True)  # no run to list
                raise
            return made
        except OSError as error:
            raise DataError(
                f"no run can be stored in {_short(self.root)}: {error.strerror}; name another "
                "folder with the environment variable FILLMASK_UI_RUNS"
            ) from error

    def open(self, name: str) -> Run:
        """A run by its name, by the beginning of its name if no other has it, or `latest`.

        Raises:
            DataError: if there is none, several, or one of another version.
        """
        return Run(self.folder(name))

    def find(self, name: str) -> str:
        """The full name of a run, given as for `open`, also of one that is broken."""
        return printable(self.folder(name).name)

    def folder(self, name: str) -> Path:
        """The folder of a run, given as for `open`, also of one that is broken."""
        folders = self._folders()
        names, name = [*folders], printable(name)
        if name == "latest" and names:
            return folders[names[-1]]
        found = [known for known in names if known == name]
        found = found or [known for known in names if name and known.startswith(name)]
        if len(found) == 1:
            return folders[found[0]]
        if found:
            raise DataError(f"several runs begin with {name!r}: {', '.join(found)}")
        older = f" and {len(names) - 5} older" if len(names) > 5 else ""
        raise DataError(unknown("run", name, names[-5:]) + older)

    def names(self) -> list[str]:
        """Of all runs, oldest first; what is not UTF-8 in the name of a folder is escaped.

        Raises:
            DataError: if the folder of runs cannot be listed.
        """
        return [*self._folders()]

    def _folders(self) -> dict[str, Path]:
        """By the names of the runs, oldest first."""
        try:
            found = sorted(path.name for path in self.root.iterdir())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:  # the latter for a zero character in its name
            why = getattr(error, "strerror", None) or error
            raise DataError(
                f"the runs in {_short(self.root)} cannot be listed: {why}; name another "
                "folder with the environment variable FILLMASK_UI_RUNS"
            ) from error
        folders = {printable(name): self.root / name for name in found}
        return {name: own for name, own in folders.items() if _may_be_run(own)}

    def delete(self, name: str) -> str:
        """Remove a run and give its full name back.

        Raises:
            DataError: while it is being written, or where it may not be removed.
        """
        folder = self.folder(name)
        full = printable(folder.name)
        if folder.is_symlink():
            raise DataError(
                f"run {full} cannot be deleted: {folder} is a link to another folder; remove the "
                "link, or delete the run where it lies"
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise DataError(f"run {full} cannot be deleted: {folder} may not be written")
        if is_locked(folder / LOCK_FILE):
            raise DataError(f"run {full} is being written: stop it first")
        try:
            shutil.rmtree(folder)
        except OSError as error:
            where, why = error.filename or folder, error.strerror or error
            raise DataError(f"run {full} cannot be deleted: {where}: {why}") from error
        return full


def _may_be_run(folder: Path) -> bool:
    """Whether it has a run.json, or may have one that nobody else can see."""
    hidden = folder.is_dir() and not os.access(folder, os.X_OK)
    return hidden or os.path.lexists(folder / RUN_FILE)


def _short(path: Path) -> str:
    """A path for a message; one too long for any file system is cut."""
    text = str(path)
    return text if len(text) < 500 else f"{text[:60]}... ({len(text):,} characters)"


def default_root(environment: Mapping[str, str], platform: str, home: Path) -> Path:
    """Where runs are kept: `FILLMASK_UI_RUNS`, or where a `sys.platform` has user data.

    >>> default_root({}, "linux", Path("/home/ada")).as_posix()
    '/home/ada/.local/share/fillmask-ui/runs'
    """
    return RUNS.path(environment, platform, home)


def slug(name: str) -> str:
    """A model's name as part of a folder's.

    >>> slug("org/BERT base@main"), slug("/tmp/models/tiny.onnx")
    ('org-BERT-base-main', 'models-tiny.onnx')
    """
    last = "/".join(re.split(r"[/\\]", name)[-2:])
    return re.sub(r"[^A-Za-z0-9._]+", "-", last).strip("-.")[:60] or "model"
