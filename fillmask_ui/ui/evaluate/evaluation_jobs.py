"""The jobs and stored runs behind the Evaluate tab: `PageJobs` for each open page.

A browser tells who it is by an id that it keeps, and which of its pages asks by one that outlives
a reload (`static/visitor.js`). So a page that is reloaded finds its job again.
"""

from __future__ import annotations

import functools
import re
import shutil
import tempfile
import threading
import time
import weakref
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fillmask_ui.cluster import LOCAL, EngineChoice
from fillmask_ui.errors import DataError
from fillmask_ui.files import user_folder
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Run, RunInfo, RunStore, export, perform, perform_rest
from fillmask_ui.runs.compare import paired
from fillmask_ui.runs.info import model_choice
from fillmask_ui.show.report import write_report
from fillmask_ui.ui.evaluate.evaluate_form import (
    SetControls,
    Values,
    controls_of_run,
    engine_of,
    plan_of,
)
from fillmask_ui.ui.evaluate.job import Job, Measure
from fillmask_ui.ui.evaluate.result_view import Result, stored_result
from fillmask_ui.ui.evaluate.tokens import FoundTokens, TokenFilter, find_tokens
from fillmask_ui.ui.evaluate.uploads import drop_upload

if TYPE_CHECKING:
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


@dataclass(frozen=True)
class Listing:
    """What is stored."""

    runs: list[Run]  # newest first
    # Why others cannot be read, such as those of another version; by name, newest first.
    unreadable: dict[str, str]


class EvaluationJobs:
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
            root = self.scratch / "visitors" if session.public else user_folder("runs")
        self.root = root
        self.slots = threading.Semaphore(PUBLIC_SLOTS if session.public else SLOTS)
        # A process has one connection to Ray.
        self.ray_slot = threading.Semaphore(1)
        # A change of view costs nothing.
        self.result = functools.lru_cache(_KEPT_RESULTS)(stored_result)
        self._pages: dict[str, PageJobs] = {}
        self._jobs: list[Job] = []  # that go on or are news, the newest last
        self._lock = threading.Lock()

    def page_jobs(self, opened: str) -> PageJobs:
        """The state of an open page, by its session."""
        with self._lock:
            return self._pages.setdefault(opened, PageJobs(self))

    def store(self, visitor: str) -> RunStore:
        """As `PageJobs.store`, for callers without a page."""
        if not self.session.public:
            return RunStore(self.root)
        if not re.fullmatch(r"[0-9A-Za-z]{1,64}", visitor):
            raise DataError("this page does not know who is asking: reload it")
        return RunStore(self.root / visitor)

    def arrive(self, opened: str, visitor: str, page: str) -> PageJobs:
        """A page has opened: whose it is, and which of theirs, which a reload does not change."""
        page_jobs = self.page_jobs(opened)
        page_jobs.visitor, page_jobs.page = visitor, page
        return page_jobs

    def forget(self, opened: str) -> None:
        """A page was closed or reloaded: its job goes on for a while, its downloads are removed."""
        with self._lock:
            page_jobs = self._pages.pop(opened, None)
        if page_jobs is not None:
            page_jobs.clear()

    def add_job(self, job: Job) -> None:
        with self._lock:
            self._jobs = [*(own for own in self._jobs if not own.ended or own.news), job]

    def news(self, visitor: str, page: str) -> Job | None:
        """The job that a page should show as it opens: its own, or one that no page shows."""
        with self._lock:
            found = [job for job in self._jobs if job.visitor == visitor and job.news]
        own = [job for job in found if job.page == page]
        left = [job for job in found if not job.ended and not job.followed]
        return next(reversed(own or left), None)

    def files_in_use(self) -> list[str]:
        """Paths that jobs read or will read."""
        with self._lock:
            return [job.reads for job in self._jobs]

    def sweep(self) -> None:
        """Remove what visitors left hours ago, so that strangers cannot fill the disk for good."""
        if not self.root.is_dir():
            return
        now = time.time()
        for folder in self.root.iterdir():
            if now - folder.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


class PageJobs:
    """What one open page has: its job, and the runs of its visitor.

    Args:
        all_jobs: that all visitors share.
    """

    def __init__(self, all_jobs: EvaluationJobs) -> None:
        self.session = all_jobs.session
        self.job: Job | None = None
        self.visitor = self.page = ""  # not known until the page says so
        self._all = all_jobs
        self._downloads = Downloads(all_jobs.scratch)
        self._lock = threading.Lock()

    @property
    def store(self) -> RunStore:
        """The runs that the visitor may see: all of them, or on a public page their own.

        Raises:
            DataError: on a public page, if the visitor cannot be told from others.
        """
        return self._all.store(self.visitor)

    def begin(self, values: Values) -> Job:
        """Start what the controls ask for; a job of the visitor that runs is stopped.

        Raises:
            FillmaskError: for values that make no sense.
        """
        store, session, engine = self.store, self.session, engine_of(values)
        if session.public:
            self._all.sweep()
        plan = plan_of(
            values, store.root, default_model=session.default_model, public=session.public
        )
        return self._start(partial(perform, plan, store), engine, reads=plan.source.where)

    def resume(self, name: str, values: Values | None = None) -> Job:
        """Go on with a stopped run, where the controls say.

        Raises:
            OptionError: for values that make no sense.
            DataError: if there is none of that name, or nothing is left to do.
        """
        run = self.store.open(name)
        if run.state == "done":
            raise DataError(f"run {run.info.name} is done: nothing is left to measure")
        measure = partial(perform_rest, run.info.name, self.store)
        return self._start(measure, engine_of(values or {}))

    def _start(self, measure: Measure, engine: EngineChoice, reads: str = "") -> Job:
        all_jobs = self._all
        job = Job(
            self.session,
            self.store,
            [all_jobs.slots] if engine.engine == LOCAL else [all_jobs.ray_slot, all_jobs.slots],
            measure,
            engine,
            reads,
            visitor=self._owner,
            page=self.page,
        )
        with self._lock:
            before, self.job = self.job, job
        if before is not None:
            before.cancel()
        all_jobs.add_job(job)
        job.begin(after=before)
        return job

    @property
    def _owner(self) -> str:
        """Whose jobs the page may show; blank for everybody's."""
        return self.visitor if self.session.public else ""

    def take_up(self) -> Job | None:
        """The job that the page showed before it was reloaded, or one that no page shows."""
        job = self._all.news(self._owner, self.page)
        if job is not None:
            job.page, self.job = self.page, job
        return job

    def cancel(self) -> None:
        """Stop the job that the page shows, if there is one."""
        if self.job is not None:
            self.job.cancel()

    def clear(self) -> None:
        """Remove the files that were made to be downloaded."""
        self._downloads.clear()

    def runs(self) -> Listing:
        """Stored runs, newest first; a `DataError` if none can be listed."""
        store = self.store
        names = reversed(store.names()[-LISTED_RUNS:])
        found = {name: _opened(store, name) for name in names}
        return Listing(
            [run for run in found.values() if isinstance(run, Run)],
            {name: str(error) for name, error in found.items() if isinstance(error, DataError)},
        )

    def result(self, selection: Selection) -> Result:
        """The figures of a stored run, or of two compared.

        Raises:
            DataError: if there is no such run, nothing was measured, or they do not compare.
        """
        run, other = self.store.open(selection.run), self._other(selection)
        if other is None:
            found = self._all.result(run.folder, run.row_count)
        else:
            found = self._all.result(run.folder, run.row_count, other.folder, other.row_count)
        both = [run] if other is None else [run, other]
        return replace(
            found,
            done=all(run.state == "done" for run in both),
            expected=min((run.expected for run in both if run.expected), default=None),
        )

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
        try:
            texts = store.open(name).info.texts
        except DataError:
            texts = {}  # it is broken, or the next line says what is wrong
        gone = store.delete(name)
        drop_upload(texts, store, self._all.files_in_use())
        return gone

    def download(self, selection: Selection, file_format: str) -> Path:
        """A run as a file to download, in place of the visitor's last one of this format.

        Args:
            selection: the run; only a report is also of the one that it is compared with.
            file_format: `report` for a page, else as of `runs.tokens`.

        Raises:
            DataError: if it is unknown, or the disk is full.
        """
        run = self.store.open(selection.run)
        folder = self._downloads.fresh_folder(file_format)
        if file_format == REPORT:
            target = folder / f"{run.info.name}.html"
            write_report(run, target, self._other(selection))
        else:
            target = folder / f"{run.info.name}.{file_format}"
            export(run, target, file_format)
        return target

    def controls(self, info: RunInfo) -> SetControls:
        """What the controls held for a run."""
        fresh_folder = partial(self._downloads.fresh_folder, "upload")
        return controls_of_run(info, self.store.root, fresh_folder, public=self.session.public)

    def _other(self, selection: Selection) -> Run | None:
        return self.store.open(selection.other) if selection.other else None


def _opened(store: RunStore, name: str) -> Run | DataError:
    try:
        run = store.open(name)
        _ = run.row_count  # which the list shows
    except DataError as error:
        return error
    return run


class Downloads:
    """Folders of one page.

    Args:
        scratch: the folder that they are made in.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._folders: dict[str, Path] = {}

    def fresh_folder(self, purpose: str) -> Path:
        """A folder for a file, in place of the last one of this purpose."""
        self._drop(purpose)
        self._folders[purpose] = Path(tempfile.mkdtemp(dir=self._scratch))
        return self._folders[purpose]

    def clear(self) -> None:
        """Remove them all."""
        for purpose in [*self._folders]:
            self._drop(purpose)

    def _drop(self, purpose: str) -> None:
        folder = self._folders.pop(purpose, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
