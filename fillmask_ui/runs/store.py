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
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from fillmask_ui.errors import DataError, unknown
from fillmask_ui.evaluation import EvaluatedText, Summary, summarize
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import DONE, RUN_FILE, RUNNING, STOPPED, RunInfo, read_info, write_info
from fillmask_ui.runs.rows_file import RowsFile

LOCK_FILE = "lock"
# A reader that looks whether a run is being written holds the lock for an instant.
_PATIENCE_SECONDS = 0.2
# Never a marker file, which a killed process leaves behind.
_file_lock = partial(FileLock, fallback_to_soft=False, thread_local=False, is_singleton=False)


def lock_run(path: Path, name: str) -> FileLock:
    """Lock the run of a name until the lock is released or the process ends, however it ends.

    A `DataError` if another process, or another writer in this one, holds it, or the file system
    has no locks.
    """
    lock = _file_lock(path)
    # Beside the lock: Windows forbids others to read a locked file.
    holder = path.with_suffix(".pid")
    try:
        lock.acquire(timeout=_PATIENCE_SECONDS, poll_interval=0.02)
    except Timeout as error:
        number = ""
        with contextlib.suppress(OSError):
            number = f" (process {holder.read_text('ascii')})"
        raise DataError(
            f"run {name} is being written by another process{number}: wait for it to end, or stop "
            "it first"
        ) from error
    except OSError as error:
        raise _unusable("no run can be locked in", path.parent, error) from error
    with contextlib.suppress(OSError):  # only a hint for others
        holder.write_text(str(os.getpid()), "ascii")
    return lock


def is_locked(path: Path) -> bool:
    """Whether some process writes the run right now."""
    if not path.exists():
        return False
    try:
        with _file_lock(path).acquire(blocking=False):
            return False
    except (Timeout, PermissionError):
        # What may not be written here may be written by its owner.
        return True
    except OSError:
        return False  # where nothing can be locked, nobody writes


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
        return (line.row for line in self.lines)

    def row(self, example: int) -> EvaluatedText:
        """What was measured of one text, by its id; a `DataError` if nothing was."""
        line = self.lines.of(example)
        if line is None or isinstance(line.row, SkippedText):
            raise DataError(f"run {self.info.name} has not measured a text {example}")
        return line.row

    @property
    def row_count(self) -> int:
        return len(self.lines)

    @property
    def lacks_rows(self) -> bool:
        """Whether it is done and rows are missing."""
        return self.row_count < (self.lines.measured or 0)

    @property
    def expected(self) -> int | None:
        """Texts in all, once it is done; None where that is not known."""
        known = [self.info.texts.get(name) for name in ("samples", "available")]
        return min((number for number in known if number), default=None)

    def summary(self) -> Summary:
        """The figures of the rows so far, to the last digit those of the run itself.

        A `DataError` if a line is no row, if the run is done and rows are missing, or if it
        stopped before the first.
        """
        if self.info.state != DONE and not self.row_count:
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


def rows_file(folder: Path, info: RunInfo) -> RowsFile:
    """The rows of a run."""
    measured = None
    if info.state == DONE and info.result is not None:
        measured = info.result["texts"] + sum(info.result["skipped"].values())
    return RowsFile(folder / "rows.jsonl", info.name, measured)


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
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for name in names:
                with contextlib.suppress(FileExistsError):
                    (self.root / name).mkdir()
                    break
            made = replace(info, name=name, created=now.isoformat(timespec="seconds"))
            write_info(self.root / name, made)  # without it a folder is not listed
            return made
        except OSError as error:
            raise _unusable("no run can be stored in", self.root, error) from error

    def open(self, name: str) -> Run:
        """A run, by its name as for `folder`; a `DataError` if it is of another version."""
        return Run(self.folder(name))

    def folder(self, name: str) -> Path:
        """Of a run, by its name, by the beginning of its name if no other has it, or `latest`.

        A `DataError` if there is none, or several.
        """
        names = self.names()
        if name == "latest" and names:
            return self.root / names[-1]
        found = [name] if name in names else [own for own in names if name and own.startswith(name)]
        if len(found) == 1:
            return self.root / found[0]
        if found:
            raise DataError(f"several runs begin with {name!r}: {', '.join(found)}")
        older = f" and {len(names) - 5} older" if len(names) > 5 else ""
        raise DataError(unknown("run", name, names[-5:]) + older)

    def names(self) -> list[str]:
        """Of all runs, oldest first."""
        found = self.root.iterdir() if self.root.is_dir() else ()
        return sorted(own.name for own in found if os.path.lexists(own / RUN_FILE))

    def delete(self, name: str) -> str:
        """Remove a run and give its full name back; a `DataError` while it is being written."""
        folder = self.folder(name)
        if is_locked(folder / LOCK_FILE):
            raise DataError(f"run {folder.name} is being written: stop it first")
        try:
            shutil.rmtree(folder)
        except OSError as error:
            where, why = error.filename or folder, error.strerror or error
            raise DataError(f"run {folder.name} cannot be deleted: {where}: {why}") from error
        return folder.name


def _unusable(what: str, root: Path, error: OSError) -> DataError:
    return DataError(
        f"{what} {root}: {error.strerror}; name another folder with the environment variable "
        "FILLMASK_UI_RUNS"
    )


def slug(name: str) -> str:
    """A model's name as part of a folder's.

    >>> slug("org/BERT base@main"), slug("/tmp/models/tiny.onnx")
    ('org-BERT-base-main', 'models-tiny.onnx')
    """
    last = "/".join(re.split(r"[/\\]", name)[-2:])
    return re.sub(r"[^A-Za-z0-9._]+", "-", last).strip("-.")[:60] or "model"
