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
from pathlib import Path

from fillmask_ui.errors import DataError, unknown
from fillmask_ui.evaluation import EvaluatedText, Summary, summarize
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import DONE, RUN_FILE, RUNNING, STOPPED, RunInfo, read_info, write_info
from fillmask_ui.runs.lock import is_locked
from fillmask_ui.runs.rows_file import RowsFile

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
    def expected(self) -> int | None:
        """Texts in all, once it is done; None where that is not known."""
        known = [self.info.texts.get(name) for name in ("samples", "available")]
        return min((number for number in known if number), default=None)

    def summary(self) -> Summary:
        """The figures of the rows so far, to the last digit those of the run itself.

        Raises:
            DataError: if a line is no row, if the run is done and rows are missing, or if it
                stopped before the first.
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
        """Whether it is done and rows are missing, as after a loss of power."""
        return self.row_count < (self.lines.measured or 0)


def rows_file(folder: Path, info: RunInfo) -> RowsFile:
    """The rows of a run."""
    measured = None
    if info.state == DONE and info.result is not None:
        measured = info.result["texts"] + sum(info.result["skipped"].values())
    return RowsFile(folder / ROWS_FILE, info.name, measured)


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
        """Of all runs, oldest first; a `DataError` if the folder of runs cannot be listed."""
        try:
            found = self.root.iterdir()
            return sorted(own.name for own in found if os.path.lexists(own / RUN_FILE))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable("the runs cannot be listed:", self.root, error) from error

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
