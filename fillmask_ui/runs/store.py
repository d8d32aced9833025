"""The store of evaluation runs: a folder each.

<root>/<name>/run.json     every choice and version; the figures once the run is done
<root>/<name>/rows.jsonl   one line per text, appended and flushed when it is measured
<root>/<name>/lock         held by the one process that writes

A line without its newline is half-written: readers leave it out, and a resumed run drops it.
"""

import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from filelock import FileLock, Timeout

from fillmask_ui.errors import DataError, OptionError, opening, unknown
from fillmask_ui.evaluation import EvaluatedText, RunningSummary, Summary
from fillmask_ui.files import writing
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import DONE, RUN_FILE, RUNNING, STOPPED, RunInfo, read_info, write_info
from fillmask_ui.runs.rows_file import StoredRow, read_row

LOCK_FILE = "lock"
MOST_TITLE_CHARACTERS = 60
ELSEWHERE = "; name another folder with the environment variable FILLMASK_UI_RUNS"


def lock_file(path: Path, title: str, advice: str = "") -> FileLock:
    """Lock a file until the lock is released or the process ends, however it ends.

    A `DataError` that names `title` is written if another writer holds it; one that ends with
    `advice` if the file system has no locks.
    """
    # Never a marker file, which a killed process leaves behind.
    lock = FileLock(path, fallback_to_soft=False, thread_local=False, is_singleton=False)
    with writing(path, advice):
        try:
            # A reader that looks whether it is locked holds it for an instant.
            lock.acquire(timeout=0.2, poll_interval=0.02)
        except Timeout as error:
            raise DataError(
                f"{title} is being written by another process: wait for it to end, or stop it"
            ) from error
    return lock


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of a file right now."""
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0, fallback_to_soft=False, is_singleton=False):
            return False
    except OSError as error:
        # Another user's lock may be held; a file system without locks has no run being written.
        return isinstance(error, (Timeout, PermissionError))


class Run:
    """A stored run, to be read; a `DataError` if the folder has none, or of another version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows_path = folder / "rows.jsonl"
        self.info = read_info(folder)

    @property
    def state(self) -> str:
        """As stored, but a run that claims to be running while nobody writes it is stopped."""
        if self.info.state == RUNNING and not is_locked(self.folder / LOCK_FILE):
            return STOPPED
        return self.info.state

    def lines(self) -> Iterator[StoredRow]:
        """All whole lines; a `DataError` for a line that is not a row, and for missing rows."""
        start, seen, name = 0, set[int](), self.info.name
        for number, content in enumerate(self._whole_lines(), start=1):
            line = read_row(content, f"run {name}, line {number}", start)
            if line.row.id in seen:
                raise DataError(f"run {name}, line {number}: it repeats text {line.row.id}")
            seen.add(line.row.id)
            start += len(content)
            yield line
        if len(seen) < self._measured:
            raise DataError(
                f"run {name} measured {self._measured:,} texts and has the rows of {len(seen):,}: "
                f"measure the missing ones with fillmask-ui eval --resume {name}, or delete the run"
            )

    def line_at(self, start: int) -> StoredRow:
        """The line at an offset in bytes."""
        with opening("a run", self.rows_path), self.rows_path.open("rb") as file:
            file.seek(start)
            return read_row(file.readline(), f"run {self.info.name}", start)

    def _whole_lines(self) -> Iterator[bytes]:
        if self.rows_path.exists():
            with opening("a run", self.rows_path), self.rows_path.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n"))

    def rows(self) -> Iterator[EvaluatedText | SkippedText]:
        """All rows in the order of the file."""
        metric = self.info.config.metric
        for line in self.lines():
            row = line.row
            yield row if isinstance(row, SkippedText) else replace(row, metric=metric)

    def row(self, example: int) -> EvaluatedText:
        """The row of one text, by its id; a `DataError` if it was not measured."""
        head = b'{"id":%d,' % example
        content = next((line for line in self._whole_lines() if line.startswith(head)), None)
        row = read_row(content, f"run {self.info.name}").row if content else None
        if isinstance(row, EvaluatedText):
            return row
        raise DataError(
            f"run {self.info.name} has not measured text {example}: choose a text of its rows"
        )

    @property
    def row_count(self) -> int:
        return sum(1 for _ in self._whole_lines())

    @property
    def _measured(self) -> int:
        """Rows that it must have: none before it is done."""
        result = self.info.result if self.info.state == DONE else None
        return result["texts"] + sum(result["skipped"].values()) if result else 0

    @property
    def lacks_rows(self) -> bool:
        return self.row_count < self._measured

    @property
    def expected(self) -> int | None:
        """Texts in all, once it is done; None where that is not known."""
        counts = [self.info.texts.get(name) for name in ("samples", "available")]
        return min((count for count in counts if count), default=None)

    def summary(self) -> Summary:
        """The figures of the rows so far; a `DataError` as of `lines`, or before the first row."""
        if self.info.state != DONE and not self.row_count:
            raise DataError(
                f"run {self.info.name} has measured no text yet: go on with `fillmask-ui eval "
                f"--resume {self.info.name}`, or delete it"
            )
        return self.running().summary()

    def running(self) -> RunningSummary:
        running = self.info.running()
        for row in self.rows():
            running.add(row)
        return running


class RunStore:
    """All runs under one folder; `clock` gives the time for names."""

    file = RUN_FILE  # in the folder of each

    def __init__(
        self, root: Path, clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    ) -> None:
        self.root = root
        self._clock = clock

    def create(self, info: RunInfo) -> RunInfo:
        """Make the folder of a new run; `name` and `created` are filled in here."""
        created = self._clock()
        stem = f"{created:%Y%m%d-%H%M%S}-{slug(info.model['name'])}-{info.config.metric.name}"
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        with writing(self.root, ELSEWHERE):
            self.root.mkdir(parents=True, exist_ok=True)
            for name in names:
                with suppress(FileExistsError):
                    (self.root / name).mkdir()
                    break
            info = replace(info, name=name, created=created.isoformat(timespec="seconds"))
            write_info(self.root / name, info)  # without it a folder is not listed
        return info

    def open(self, name: str) -> Run:
        """A run, by its name as for `folder`."""
        return Run(self.folder(name))

    def folder(self, name: str) -> Path:
        """The folder of a run by its name, the beginning of it, its title, or `latest`."""
        names = self.names()
        if name == "latest" and names:
            return self.root / names[-1]
        if name in names:
            return self.root / name
        matches = [run for run in names if name and run.startswith(name)]
        matches = matches or [run for run in names if name and self._title(run) == name]
        if len(matches) == 1:
            return self.root / matches[0]
        if matches:
            raise DataError(
                f"several runs begin with {name!r}: {', '.join(matches)}; write more of the name"
            )
        older = f" and {len(names) - 5} older" if len(names) > 5 else ""
        raise DataError(unknown("run", name, names[-5:]) + older)

    def names(self) -> list[str]:
        """Names of all runs, oldest first."""
        folders = self.root.iterdir() if self.root.is_dir() else ()
        return sorted(folder.name for folder in folders if os.path.lexists(folder / self.file))

    def rename(self, name: str, title: str) -> RunInfo:
        """Give a run a title in place of any other; a blank one takes it away.

        An `OptionError` for a title that is too long or another run's, a `DataError` while the run
        is being written.
        """
        folder, title = self.folder(name), " ".join(title.split())
        if len(title) > MOST_TITLE_CHARACTERS:
            raise OptionError(
                f"a name has at most {MOST_TITLE_CHARACTERS} characters; this one had {len(title)}"
            )
        for run in self.names():
            if title and run != folder.name and title in (run, self._title(run)):
                raise OptionError(f"run {run} is called {title!r}: give another name")
        lock = lock_file(folder / LOCK_FILE, f"run {folder.name}", ELSEWHERE)
        try:
            info = replace(read_info(folder), title=title)
            with writing(folder):
                write_info(folder, info)
        finally:
            lock.release()
        return info

    def _title(self, name: str) -> str:
        """Of a run; blank for one without, or that cannot be read."""
        with suppress(DataError, OSError):
            return read_info(self.root / name).title
        return ""

    def delete(self, name: str) -> str:
        """Remove a run and give its full name back; a `DataError` while it is being written."""
        folder = self.folder(name)
        if is_locked(folder / LOCK_FILE):
            raise DataError(f"run {folder.name} is being written: stop it first")
        with writing(folder):
            shutil.rmtree(folder)
        return folder.name


def slug(name: str) -> str:
    """A model's name as part of a folder's.

    >>> slug("org/BERT base@main"), slug("/tmp/models/tiny.onnx")
    ('org-BERT-base-main', 'models-tiny.onnx')
    """
    last = "/".join(re.split(r"[/\\]", name)[-2:])
    return re.sub(r"[^A-Za-z0-9._]+", "-", last).strip("-.")[:60] or "model"
