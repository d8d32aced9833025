"""The runs behind the Evaluate tab: whose they are, what is shown of them, what is done to them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import History, MeanSoFar, RunningSummary, Summary
from fillmask_ui.runs import Run, RunInfo, RunStore, compare, default_root, export
from fillmask_ui.ui.evaluate_job import Job, chosen_model
from fillmask_ui.ui.evaluate_request import Form, read_form
from fillmask_ui.ui.evaluate_tokens import MAX_TEXTS, Choice, Found, View, find, paired
from fillmask_ui.ui.evaluate_uploads import drop_upload

if TYPE_CHECKING:
    from fillmask_ui.evaluation import TokenExample
    from fillmask_ui.ui.session import Session

LISTED_RUNS = 200
_KEPT_RESULTS = 6
# Jobs that measure at a time; the others wait.
SLOTS, PUBLIC_SLOTS = 2, 1
LEFT_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Shown:
    """Which run is on the page.

    Attributes:
        run: its name; blank for none.
        other: name of the run it is compared with; blank for none.
    """

    run: str = ""
    other: str = ""


@dataclass(frozen=True, eq=False)
class Result:
    """A stored run, or two compared, as the page shows it.

    Attributes:
        info: of the run; where two are compared, with the other's model as its baseline.
        summary: the figures.
        history: of the mean; empty where two are compared.
    """

    info: RunInfo
    summary: Summary
    history: tuple[MeanSoFar, ...]

    @property
    def seen(self) -> int:
        """Texts measured or skipped."""
        return self.summary.texts + sum(self.summary.skipped.values())


@dataclass(frozen=True)
class Listing:
    """What is stored.

    Attributes:
        runs: newest first.
        unreadable: why others cannot be read, such as those of another version.
    """

    runs: tuple[Run, ...] = ()
    unreadable: tuple[str, ...] = ()


class Workbench:
    """Jobs and runs of all visitors of one page.

    Args:
        session: the page's models.
        root: where runs are kept; by default where the command line keeps them, or on a public
            page a folder that ends with the server, with a part for each visitor.
    """

    def __init__(self, session: Session, root: Path | None = None) -> None:
        self.session = session
        # For files to download and the runs of a public page; gone when the server ends.
        self._scratch = Path(tempfile.mkdtemp(prefix="fillmask-ui-"))
        weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        if root is None:
            root = (
                self._scratch / "visitors"
                if session.public
                else default_root(os.environ, sys.platform, Path.home())
            )
        self._root = root
        self._slots = threading.Semaphore(PUBLIC_SLOTS if session.public else SLOTS)
        self._jobs: dict[str, Job] = {}
        self._results: OrderedDict[tuple, Result] = OrderedDict()
        self._files: dict[tuple[str, str], Path] = {}
        self._logarithmic: set[str] = set()
        self._lock = threading.Lock()

    def store(self, visitor: str) -> RunStore:
        """The runs that a visitor may see: all of them, or on a public page their own."""
        if not self.session.public:
            return RunStore(self._root)
        if not visitor.isalnum():
            raise DataError("this page does not know who is asking: reload it")
        return RunStore(self._root / visitor)

    def begin(self, visitor: str, form: Form) -> Job:
        """Start what the controls ask for; a job of the same visitor that runs is stopped.

        Raises:
            FillmaskError: for values that make no sense.
        """
        store = self.store(visitor)
        if self.session.public:
            self._sweep()
        request = read_form(
            form,
            store.root,
            default_model=self.session.default_model,
            public=self.session.public,
        )
        return self._start(visitor, Job(self.session, store, self._slots, request))

    def _sweep(self) -> None:
        """Remove what visitors left hours ago, so that strangers cannot fill the disk for good."""
        if not self._root.is_dir():
            return
        now = time.time()
        for folder in self._root.iterdir():
            if now - folder.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)

    def resume(self, visitor: str, name: str) -> Job:
        """Go on with a stopped run.

        Raises:
            DataError: if there is none of that name, or nothing is left to do.
        """
        store = self.store(visitor)
        run = store.open(name)
        if run.state == "done":
            raise DataError(f"run {run.info.name} is done: nothing is left to measure")
        return self._start(visitor, Job(self.session, store, self._slots, run=run.info.name))

    def _start(self, visitor: str, job: Job) -> Job:
        with self._lock:
            before = self._jobs.get(visitor)
            self._jobs[visitor] = job
        if before is not None:
            before.cancel()
        job.begin(after=before)
        return job

    def cancel(self, visitor: str) -> None:
        """Stop the visitor's job, if there is one."""
        job = self._jobs.get(visitor)
        if job is not None:
            job.cancel()

    def forget(self, visitor: str) -> None:
        """A visitor has left: stop their job, keep nothing for them but their runs."""
        with self._lock:
            job = self._jobs.pop(visitor, None)
            left = [key for key in self._files if key[0] == visitor]
            folders = [self._files.pop(key) for key in left]
            self._logarithmic.discard(visitor)
        if job is not None:
            job.cancel()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def keep_axis(self, visitor: str, *, log: bool) -> None:
        """Remember whether the visitor wants the counts of histograms on a logarithmic axis."""
        with self._lock:
            if log:
                self._logarithmic.add(visitor)
            else:
                self._logarithmic.discard(visitor)

    def has_log_axis(self, visitor: str) -> bool:
        """What `keep_axis` was told last."""
        return visitor in self._logarithmic

    def runs(self, visitor: str) -> Listing:
        """Stored runs, newest first."""
        store = self.store(visitor)
        found = [_opened(store.root / name) for name in reversed(store.names()[-LISTED_RUNS:])]
        return Listing(
            tuple(run for run in found if isinstance(run, Run)),
            tuple(str(error) for error in found if isinstance(error, DataError)),
        )

    def result(self, visitor: str, shown: Shown) -> Result:
        """The figures of a stored run, or of two compared.

        Raises:
            DataError: if there is no such run, nothing was measured, or they do not compare.
        """
        store = self.store(visitor)
        run = store.open(shown.run)
        other = store.open(shown.other) if shown.other else None
        key = (run.folder, run.row_count, other and (other.folder, other.row_count))
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
        result = _replayed(run) if other is None else _compared(run, other)
        self.keep(key, result)
        return result

    def keep(self, key: tuple, result: Result) -> None:
        """Remember a result, so that a change of view costs nothing."""
        with self._lock:
            self._results[key] = result
            while len(self._results) > _KEPT_RESULTS:
                self._results.popitem(last=False)

    def tokens(self, visitor: str, shown: Shown, choice: Choice) -> Found:
        """The tokens of what is shown that fit a choice.

        Raises:
            DataError: if a run is gone or broken.
        """
        store = self.store(visitor)
        run = store.open(shown.run)
        if not shown.other:
            return find(run.rows(), choice)
        other = store.open(shown.other)
        found = find(paired(run, other), choice)
        return replace(found, all_texts=found.all_texts and other.row_count <= MAX_TEXTS)

    def choices(self, visitor: str, shown: Shown) -> list[Mapping[str, Any]]:
        """How the models of what is shown were asked for: A, and B where there is one.

        Raises:
            DataError: if a run does not say.
        """
        store = self.store(visitor)
        run = store.open(shown.run)
        wanted = [(run, "model")]
        if shown.other:
            wanted.append((store.open(shown.other), "model"))
        elif run.info.baseline is not None:
            wanted.append((run, "baseline"))
        return [_choice(one.info, which) for one, which in wanted]

    def views(
        self,
        visitor: str,
        shown: Shown,
        token: TokenExample,
        on_progress: Callable[..., None] | None = None,
    ) -> list[View]:
        """The models to ask about a token.

        Raises:
            FillmaskError: if a model cannot be loaded any more.
        """
        losses = (token.nll_nats, token.baseline_nll_nats)
        return [
            View(letter, chosen_model(self.session, choice, on_progress), loss)
            for letter, choice, loss in zip(
                "AB", self.choices(visitor, shown), losses, strict=False
            )
        ]

    def delete(self, visitor: str, name: str) -> str:
        """Remove a run, and its upload if no other run has it; its name is given back.

        Raises:
            DataError: if it is unknown or being written.
        """
        store = self.store(visitor)
        run = store.open(name)
        texts = run.info.texts
        gone = store.delete(run.folder.name)
        with self._lock:
            used = [job.reads for job in self._jobs.values()]
        drop_upload(texts, store, used)
        return gone

    def file(self, visitor: str, name: str, file_format: str) -> Path:
        """A run as a file to download, in place of the visitor's last one of this format.

        Raises:
            DataError: if it is unknown, or the disk is full.
        """
        run = self.store(visitor).open(name)
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        with self._lock:
            before = self._files.get((visitor, file_format))
            self._files[visitor, file_format] = folder
        if before is not None:
            shutil.rmtree(before, ignore_errors=True)
        target = folder / f"{run.info.name}.{file_format}"
        export(run, target, file_format)
        return target


def _opened(folder: Path) -> Run | DataError:
    try:
        return Run(folder)
    except DataError as error:
        return error


def _choice(info: RunInfo, which: str) -> Mapping[str, Any]:
    choice = info.choices.get(which)
    if not choice:
        raise DataError(f"run {info.name} does not say how its {which} was asked for")
    return choice


def _replayed(run: Run) -> Result:
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


def _compared(run: Run, other: Run) -> Result:
    info = replace(
        run.info, baseline=other.info.model, name=f"{run.info.name} and {other.info.name}"
    )
    return Result(info, compare(run, other), ())
