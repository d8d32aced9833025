"""The jobs and stored runs behind the Evaluate tab: `PageJobs` for each open page."""

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
from fillmask_ui.ui.evaluate.measuring import Measure, Result, measuring, stored_result
from fillmask_ui.ui.evaluate.tokens import FoundTokens, TokenFilter, find_tokens
from fillmask_ui.ui.evaluate.uploads import drop_upload
from fillmask_ui.ui.job import Job, Jobs, Page

if TYPE_CHECKING:
    from fillmask_ui.evaluation import Summary
    from fillmask_ui.ui.session import Session


LISTED_RUNS = 200
REPORT = "report"  # downloaded as an HTML page
_KEPT_RESULTS = 6
# Jobs that run at a time; the others wait.
SLOTS, PUBLIC_SLOTS = 2, 1
LEFT_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Selection:
    """The run on the page."""

    run: str = ""  # its name; blank for none
    other: str = ""  # name of the run to compare with; blank for none


@dataclass(frozen=True)
class Listing:
    """The stored runs."""

    runs: list[Run]  # newest first
    # Name -> why it cannot be read, e.g. its version; newest first.
    unreadable: dict[str, str]


class EvaluationJobs(Jobs["PageJobs"]):
    """State shared by all visitors of a page.

    Args:
        root: where runs are kept; by default where the command line keeps them, or for a public
            page a temporary folder with a subfolder for each visitor.
    """

    def __init__(self, session: Session, root: Path | None = None) -> None:
        slots = PUBLIC_SLOTS if session.public else SLOTS
        super().__init__(slots, public=session.public, new_page=PageJobs)
        self.session = session
        # Downloads and the runs of a public page; removed when the server ends.
        self.scratch = Path(tempfile.mkdtemp(prefix="fillmask-ui-"))
        weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)
        if root is None:
            root = self.scratch / "visitors" if session.public else user_folder("runs")
        self.root = root
        # A process has one connection to Ray.
        self.ray_slot = threading.Semaphore(1)
        # A change of view reads nothing again.
        self.result = functools.lru_cache(_KEPT_RESULTS)(stored_result)

    def store(self, visitor: str) -> RunStore:
        """`PageJobs.store`, for callers without a page."""
        if not self.session.public:
            return RunStore(self.root)
        if not re.fullmatch(r"[0-9A-Za-z]{1,64}", visitor):
            raise DataError("this page does not know who is asking: reload it")
        return RunStore(self.root / visitor)

    def sweep(self) -> None:
        """Remove visitors' folders after some hours, so that strangers cannot fill the disk."""
        if not self.root.is_dir():
            return
        now = time.time()
        for folder in self.root.iterdir():
            if now - folder.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


class PageJobs(Page):
    """The job of one open page, and the runs of its visitor."""

    def __init__(self, jobs: EvaluationJobs) -> None:
        super().__init__(jobs)
        self.session = jobs.session
        self.drawn: Summary | None = None  # the figures on the page, while they grow
        self.taken_up = False  # whether its job was begun by the page before a reload
        self._downloads = Downloads(jobs.scratch)

    @property
    def store(self) -> RunStore:
        """The runs that the visitor may see: all, or on a public page their own.

        Raises:
            DataError: on a public page, if the visitor has no valid id.
        """
        return self.jobs.store(self.visitor)

    def begin(self, values: Values) -> Job:
        """Start the evaluation that the controls describe; stops the page's running job.

        Raises:
            FillmaskError: for invalid values.
        """
        store, session, engine = self.store, self.session, engine_of(values)
        if session.public:
            self.jobs.sweep()
        plan = plan_of(
            values, store.root, default_model=session.default_model, public=session.public
        )
        return self._measure(partial(perform, plan, store), engine, reads=plan.source.where)

    def resume(self, name: str, values: Values | None = None) -> Job:
        """Resume a stopped run on the engine that the controls name.

        Raises:
            OptionError: for invalid values.
            DataError: if there is no such run, or it is complete.
        """
        run = self.store.open(name)
        if run.state == "done":
            raise DataError(f"run {run.info.name} is done: nothing is left to measure")
        measure = partial(perform_rest, run.info.name, self.store)
        return self._measure(measure, engine_of(values or {}))

    def _measure(self, measure: Measure, engine: EngineChoice, reads: str = "") -> Job:
        self.taken_up = False
        jobs: EvaluationJobs = self.jobs
        slots = [jobs.slots] if engine.engine == LOCAL else [jobs.ray_slot, jobs.slots]
        return self.start(measuring(self.session, self.store, measure, engine), slots, reads=reads)

    def take_up(self) -> Job | None:
        self.drawn, job = None, super().take_up()
        self.taken_up = job is not None
        return job

    def close(self) -> None:
        """Remove the downloads."""
        self._downloads.clear()

    def runs(self) -> Listing:
        """Stored runs, newest first; a `DataError` if they cannot be listed."""
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
            DataError: if a run is missing, nothing was measured, or the two cannot be compared.
        """
        run, other = self.store.open(selection.run), self._other(selection)
        if other is None:
            found = self.jobs.result(run.folder, run.row_count)
        else:
            found = self.jobs.result(run.folder, run.row_count, other.folder, other.row_count)
        both = [run] if other is None else [run, other]
        return replace(
            found,
            done=all(run.state == "done" for run in both),
            expected=min((run.expected for run in both if run.expected), default=None),
        )

    def tokens(self, selection: Selection, wanted: TokenFilter) -> FoundTokens:
        """The tokens of the shown run that fit the filter; a `DataError` if it cannot be read."""
        run, other = self.store.open(selection.run), self._other(selection)
        return find_tokens(run.rows() if other is None else paired(run, other), wanted)

    def models(self, selection: Selection) -> list[ModelChoice]:
        """The models of the shown run: the candidate, and the reference if there is one.

        Raises:
            DataError: if a run does not name its model.
        """
        run, other = self.store.open(selection.run), self._other(selection)
        models = [model_choice(run.info, "model")]
        if other is not None:
            models.append(model_choice(other.info, "model"))
        elif run.info.baseline is not None:
            models.append(model_choice(run.info, "baseline"))
        return models

    def delete(self, name: str) -> str:
        """Remove a run and return its name; its upload goes too if no other run needs it.

        Raises:
            DataError: if it is unknown or being written.
        """
        store = self.store
        try:
            texts = store.open(name).info.texts
        except DataError:
            texts = {}  # broken; or unknown, which the next line reports
        gone = store.delete(name)
        drop_upload(texts, store, self.jobs.files_in_use())
        return gone

    def download(self, selection: Selection, file_format: str) -> Path:
        """A run as a file to download; replaces the visitor's last one of this format.

        `file_format` is `report`, which includes a comparison, or a format of `runs.tokens`.

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
        """The values of the controls for a run."""
        fresh_folder = partial(self._downloads.fresh_folder, "upload")
        return controls_of_run(info, self.store.root, fresh_folder, public=self.session.public)

    def _other(self, selection: Selection) -> Run | None:
        return self.store.open(selection.other) if selection.other else None


def _opened(store: RunStore, name: str) -> Run | DataError:
    try:
        run = store.open(name)
        _ = run.row_count  # the list shows it
    except DataError as error:
        return error
    return run


class Downloads:
    """Folders of one page, made in `scratch`."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._folders: dict[str, Path] = {}

    def fresh_folder(self, purpose: str) -> Path:
        """A new folder for a file; removes the last one of this purpose."""
        self._drop(purpose)
        self._folders[purpose] = Path(tempfile.mkdtemp(dir=self._scratch))
        return self._folders[purpose]

    def clear(self) -> None:
        """Remove all folders."""
        for purpose in [*self._folders]:
            self._drop(purpose)

    def _drop(self, purpose: str) -> None:
        folder = self._folders.pop(purpose, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
