"""The jobs and stored runs behind the Evaluate tab: a `Desk` for each visitor of a `Workbench`."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import History, MeanSoFar, RunningSummary, Summary
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.runs import (
    Progress,
    Run,
    RunInfo,
    RunStore,
    compare,
    default_root,
    export,
    perform,
    perform_rest,
)
from fillmask_ui.runs.compare import compared_info, paired
from fillmask_ui.runs.plan import model_choice
from fillmask_ui.show.report import write_report
from fillmask_ui.ui.evaluate.form import Values, plan_of
from fillmask_ui.ui.evaluate.job import Job
from fillmask_ui.ui.evaluate.tokens import FoundTokens, TokenFilter, find_tokens
from fillmask_ui.ui.evaluate.uploads import drop_upload

if TYPE_CHECKING:
    from fillmask_ui.runs.perform import Load
    from fillmask_ui.ui.session import Session

LISTED_RUNS = 200
REPORT = "report"  # the file that is a page
_KEPT_RESULTS = 6
# Jobs that measure at a time; the others wait.
SLOTS, PUBLIC_SLOTS = 2, 1
LEFT_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Selection:
    """Which run is on the page."""

    run: str = ""  # its name; blank for none
    other: str = ""  # name of the run it is compared with; blank for none


@dataclass(frozen=True, eq=False)
class Result:
    """A stored run, or two compared, as the page shows it."""

    info: RunInfo  # of the run; where two are compared, with the other's model as its baseline
    summary: Summary  # the figures
    history: tuple[MeanSoFar, ...]  # of the mean; empty where two are compared


@dataclass(frozen=True)
class Listing:
    """What is stored."""

    runs: list[Run]  # newest first
    unreadable: list[str]  # why others cannot be read, such as those of another version


class Workbench:
    """What all visitors of one page share.

    Args:
        session: the page's models.
        root: where runs are kept; by default where the command line keeps them, or on a public
            page a folder that ends with the server, with a part for each visitor.
    """

    def __init__(self, session: Session, root: Path | None = None) -> None:
        self.session = session
        # For files to download and the runs of a public page; gone when the server ends.
        self.scratch = Path(tempfile.mkdtemp(prefix="fillmask-ui-"))
        weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)
        if root is None:
            root = (
                self.scratch / "visitors"
                if session.public
                else default_root(os.environ, sys.platform, Path.home())
            )
        self.root = root
        self.slots = threading.Semaphore(PUBLIC_SLOTS if session.public else SLOTS)
        # A change of view costs nothing.
        self.result = functools.lru_cache(_KEPT_RESULTS)(_result)
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def desk(self, visitor: str) -> Desk:
        """What one visitor has; a page that is open in a browser is a visitor."""
        with self._lock:
            return self._desks.setdefault(visitor, Desk(self, visitor))

    def store(self, visitor: str) -> RunStore:
        """As `Desk.store`, for whoever has no desk."""
        if not self.session.public:
            return RunStore(self.root)
        if not visitor.isalnum():
            raise DataError("this page does not know who is asking: reload it")
        return RunStore(self.root / visitor)

    def forget(self, visitor: str) -> None:
        """A visitor has left: stop their job, keep nothing for them but their runs."""
        with self._lock:
            desk = self._desks.pop(visitor, None)
        if desk is not None:
            desk.clear()

    def files_in_use(self) -> list[str]:
        """Paths that jobs read or will read."""
        with self._lock:
            return [desk.job.reads for desk in self._desks.values() if desk.job is not None]

    def sweep(self) -> None:
        """Remove what visitors left hours ago, so that strangers cannot fill the disk for good."""
        if not self.root.is_dir():
            return
        now = time.time()
        for folder in self.root.iterdir():
            if now - folder.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


class Desk:
    """The jobs and runs of one visitor.

    Args:
        bench: that all visitors share.
        visitor: who it is.
    """

    def __init__(self, bench: Workbench, visitor: str) -> None:
        self.session = bench.session
        self.job: Job | None = None
        self._bench, self._visitor = bench, visitor
        self._downloads: dict[str, Path] = {}
        self._lock = threading.Lock()

    @property
    def store(self) -> RunStore:
        """The runs that the visitor may see: all of them, or on a public page their own.

        Raises:
            DataError: on a public page, if the visitor cannot be told from others.
        """
        return self._bench.store(self._visitor)

    def begin(self, values: Values) -> Job:
        """Start what the controls ask for; a job of the visitor that runs is stopped.

        Raises:
            FillmaskError: for values that make no sense.
        """
        store, session = self.store, self.session
        if session.public:
            self._bench.sweep()
        plan = plan_of(
            values, store.root, default_model=session.default_model, public=session.public
        )
        return self._start(partial(perform, plan, store), reads=plan.source.where)

    def resume(self, name: str) -> Job:
        """Go on with a stopped run.

        Raises:
            DataError: if there is none of that name, or nothing is left to do.
        """
        run = self.store.open(name)
        if run.state == "done":
            raise DataError(f"run {run.info.name} is done: nothing is left to measure")
        return self._start(partial(perform_rest, run.info.name, self.store))

    def _start(self, measure: Callable[[Load], Generator[Progress]], reads: str = "") -> Job:
        job = Job(self.session, self.store, self._bench.slots, measure, reads)
        with self._lock:
            before, self.job = self.job, job
        if before is not None:
            before.cancel()
        job.begin(after=before)
        return job

    def cancel(self) -> None:
        """Stop the visitor's job, if there is one."""
        if self.job is not None:
            self.job.cancel()

    def clear(self) -> None:
        """Stop the job and remove the files that were made for the visitor to download."""
        self.cancel()
        for file_format in [*self._downloads]:
            self._drop_download(file_format)

    def runs(self) -> Listing:
        """Stored runs, newest first."""
        store = self.store
        found = [_opened(store.root / name) for name in reversed(store.names()[-LISTED_RUNS:])]
        return Listing(
            [run for run in found if isinstance(run, Run)],
            [str(error) for error in found if isinstance(error, DataError)],
        )

    def result(self, selection: Selection) -> Result:
        """The figures of a stored run, or of two compared.

        Raises:
            DataError: if there is no such run, nothing was measured, or they do not compare.
        """
        run, other = self.store.open(selection.run), self._other(selection)
        if other is None:
            return self._bench.result(run.folder, run.row_count)
        return self._bench.result(run.folder, run.row_count, other.folder, other.row_count)

    def tokens(self, selection: Selection, wanted: TokenFilter) -> FoundTokens:
        """The tokens of the run on the page that are wanted.

        Raises:
            DataError: if a run is gone or broken.
        """
        run, other = self.store.open(selection.run), self._other(selection)
        return find_tokens(run.rows() if other is None else paired(run, other), wanted)

    def models(self, selection: Selection) -> list[ModelChoice]:
        """How the models of the run on the page were asked for: A, and B where there is one.

        Raises:
            DataError: if a run does not say.
        """
        run, other = self.store.open(selection.run), self._other(selection)
        models = [model_choice(run.info, "model")]
        if other is not None:
            models.append(model_choice(other.info, "model"))
        elif run.info.baseline is not None:
            models.append(model_choice(run.info, "baseline"))
        return models

    def delete(self, name: str) -> str:
        """Remove a run, and its upload if no other run has it; its name is given back.

        Raises:
            DataError: if it is unknown or being written.
        """
        store = self.store
        run = store.open(name)
        gone = store.delete(run.folder.name)
        drop_upload(run.info.texts, store, self._bench.files_in_use())
        return gone

    def download(self, selection: Selection, file_format: str) -> Path:
        """A run as a file to download, in place of the visitor's last one of this format.

        Args:
            selection: the run; only a report is also of the one that it is compared with.
            file_format: `report` for a page, else as of `runs.export`.

        Raises:
            DataError: if it is unknown, or the disk is full.
        """
        run = self.store.open(selection.run)
        folder = Path(tempfile.mkdtemp(dir=self._bench.scratch))
        self._drop_download(file_format)
        self._downloads[file_format] = folder
        if file_format == REPORT:
            target = folder / f"{run.info.name}.html"
            write_report(run, target, self._other(selection))
        else:
            target = folder / f"{run.info.name}.{file_format}"
            export(run, target, file_format)
        return target

    def _drop_download(self, file_format: str) -> None:
        folder = self._downloads.pop(file_format, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _other(self, selection: Selection) -> Run | None:
        return self.store.open(selection.other) if selection.other else None


def _opened(folder: Path) -> Run | DataError:
    try:
        return Run(folder)
    except DataError as error:
        return error


def _result(folder: Path, _rows: int, other: Path | None = None, _other_rows: int = 0) -> Result:
    """The figures of a run, or of two; the numbers of rows tell a run from what it grows to."""
    run = Run(folder)
    if other is not None:
        second = Run(other)
        return Result(compared_info(run, second), compare(run, second), ())
    running = RunningSummary(
        config=run.info.config,
        vocabulary_size=run.info.model["vocabulary_size"],
        limits=run.info.limits,
    )
    history = History()
    for row in run.rows():
        running.add(row)
        history.add(row)
    return Result(run.info, running.summary(), history.means())
