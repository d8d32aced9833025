"""The evaluations behind the Evaluate tab, and stored runs: `PageJobs` for each open page.

A job stores each row, so that what was measured can be resumed. Cancelling ends the run at once
with the rows on disk; the current batch is finished and dropped.
"""

import functools
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import fillmask_ui.runs as evaluations
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import MeanSoFar, Summary
from fillmask_ui.files import user_folder
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.runs.compare import compared_info, paired
from fillmask_ui.runs.engines import LOCAL, EngineChoice, open_engine
from fillmask_ui.runs.info import model_choice
from fillmask_ui.runs.listed import ListedRun, RunBeside, listed_run, runs_beside
from fillmask_ui.runs.perform import Load, Pace
from fillmask_ui.show.numbers import duration
from fillmask_ui.show.report import write_report
from fillmask_ui.show.sentences import speed_text
from fillmask_ui.ui.evaluate.evaluate_form import PASTE, Values, controls_of_run, engine_of, plan_of
from fillmask_ui.ui.evaluate.uploads import drop_upload, pasted_file
from fillmask_ui.ui.job import Job, Jobs, Page, Slots, Waiting
from fillmask_ui.ui.session import Session

LISTED_RUNS = 200
REPORT = "report"  # downloaded as an HTML page
_KEPT_RESULTS = 6
# Jobs that run at a time; the others wait.
SLOTS, PUBLIC_SLOTS = 2, 1
LEFT_SECONDS = 4 * 3600
FIGURES_SECONDS = 1.0  # between two sets of figures
# `perform` or `perform_rest`, still to be given the model loader and the engine.
Measure = Callable[[Load, evaluations.Engine | None], Generator[evaluations.RunProgress]]


@dataclass(frozen=True)
class Selection:
    """The run on the page."""

    run: str = ""  # its name; blank for none
    reference: str = ""  # name of the run to compare with; blank for none


@dataclass(frozen=True, eq=False)
class Result:
    """A stored run, or two compared, or a run as it grows."""

    info: evaluations.RunInfo  # of two runs, with the second's model as baseline
    summary: Summary | None  # the figures; None before there are any
    history: tuple[MeanSoFar, ...] = ()  # of the mean; empty where two are compared
    done: bool = True  # whether all texts are in it
    expected: int | None = None  # texts in all; None if unknown


def stored_result(
    folder: Path, _rows: int, reference_folder: Path | None = None, _reference_rows: int = 0
) -> Result:
    """The figures of a run, or of two; the row counts are cache keys for growing runs."""
    run = evaluations.Run(folder)
    if reference_folder is not None:
        reference = evaluations.Run(reference_folder)
        info = compared_info(reference, run)
        return Result(info, evaluations.compare_runs(reference, run))
    running = run.running()
    return Result(run.info, running.summary(), running.history())


class EvaluationJobs(Jobs):
    """State shared by all visitors of a page.

    Runs are kept in `root`: by default where the command line keeps them, or for a public page in a
    temporary folder with a subfolder for each visitor.
    """

    def __init__(self, session: Session, root: Path | None = None) -> None:
        slots = PUBLIC_SLOTS if session.public else SLOTS
        super().__init__(
            slots,
            public=session.public,
            title="an evaluation",
            pauses_for=session.short_jobs,
            new_page=PageJobs,
        )
        self.session = session
        # Downloads and the runs of a public page; removed when the server ends.
        self.scratch = Path(tempfile.mkdtemp(prefix="fillmask-ui-"))
        weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)
        if root is None:
            root = self.scratch / "visitors" if session.public else user_folder("runs")
        self.root = root
        # A process has one connection to Ray.
        self.ray_slot = Slots()
        # A change of view reads nothing again.
        self.result = functools.lru_cache(_KEPT_RESULTS)(stored_result)

    def store(self, visitor: str) -> evaluations.RunStore:
        """The runs that a visitor may see: all, or on a public page their own.

        A `DataError` on a public page for an id that is none.
        """
        if not self.session.public:
            return evaluations.RunStore(self.root)
        if not re.fullmatch(r"[0-9A-Za-z]{1,64}", visitor):
            raise DataError("this page does not know who is asking: reload it")
        return evaluations.RunStore(self.root / visitor)

    def sweep(self) -> None:
        """Remove visitors' folders after some hours, so that strangers cannot fill the disk."""
        for folder in self.root.iterdir() if self.root.is_dir() else ():
            if time.time() - folder.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


class PageJobs(Page):
    """The job of one open page, and the runs of its visitor."""

    def __init__(self, jobs: EvaluationJobs) -> None:
        super().__init__(jobs)
        self.session = jobs.session
        self.taken_up = False  # whether its job was begun by the page before a reload
        self._downloads: dict[str, Path] = {}  # purpose -> folder

    @property
    def store(self) -> evaluations.RunStore:
        """The runs that the visitor may see."""
        return self.jobs.store(self.visitor)

    def begin(self, values: Values) -> Job:
        """Start the evaluation that the form describes; stops the page's running job."""
        store, session, engine = self.store, self.session, engine_of(values)
        if session.public:
            self.jobs.sweep()
        plan = plan_of(
            values, store.root, default_model=session.default_model, public=session.public
        )

        def measure(*how: Any) -> Generator[evaluations.RunProgress]:
            if values["where"] == PASTE:  # now that it has its turn: waiting jobs fill no disk
                pasted_file(values["pasted"], store.root, write=True)
            yield from evaluations.perform(plan, store, *how)

        return self._measure(measure, engine, reads=plan.source.where)

    def resume(self, name: str, values: Values | None = None) -> Job:
        """Resume a stopped run on the engine that the form names."""
        run = self.store.open(name)
        if run.state == "done":
            raise DataError(f"run {run.info.name} is done: nothing is left to measure")
        measure = partial(evaluations.perform_rest, run.info.name, self.store)
        return self._measure(measure, engine_of(values or {}))

    def _measure(self, measure: Measure, engine: EngineChoice, reads: str = "") -> Job:
        """Start a job; `so_far` of its steps is a `Result`, once the run has begun."""
        self.taken_up, store = False, self.store

        def work(job: Job) -> Generator[Waiting]:
            def load(choice: ModelChoice) -> MaskedLM:
                job.report(Waiting("Loading the model…"))
                model = self.session.model(choice, job.report)
                job.report(Waiting("Reading the texts…"))  # an unwanted job makes no run
                return model

            if engine.engine != LOCAL:
                yield Waiting("Starting Ray…")
            with open_engine(engine) as opened:
                yield Waiting("Reading the texts…")
                with closing(measure(load, opened)) as steps:
                    last = yield from _followed(job, steps)
            run, running = store.open(last.info.name), last.running
            summary = running.summary() if running.texts else None
            yield Waiting(so_far=Result(run.info, summary, running.history(), run.state == "done"))

        slots = [self.jobs.slots]
        if engine.engine != LOCAL:
            slots.insert(0, self.jobs.ray_slot)
        return self.start(work, slots, reads=reads)

    def take_up(self) -> Job | None:
        job = super().take_up()
        self.taken_up = job is not None
        return job

    def close(self) -> None:
        while self._downloads:
            shutil.rmtree(self._downloads.popitem()[1], ignore_errors=True)

    def fresh_folder(self, purpose: str) -> Path:
        """A new folder for a file to download; removes the last one of this purpose."""
        if purpose in self._downloads:
            shutil.rmtree(self._downloads[purpose], ignore_errors=True)
        self._downloads[purpose] = Path(tempfile.mkdtemp(dir=self.jobs.scratch))
        return self._downloads[purpose]

    def runs(self) -> dict[str, ListedRun | DataError]:
        """Stored runs by name, newest first; those that cannot be read have the reason."""
        store, runs = self.store, dict[str, ListedRun | DataError]()
        for name in reversed(store.names()[-LISTED_RUNS:]):
            try:
                runs[name] = listed_run(store.open(name))
            except DataError as error:  # noqa: PERF203 - once a run
                runs[name] = error
        return runs

    def runs_beside(self, names: Sequence[str]) -> tuple[RunBeside, ...]:
        """Runs over the same texts, the reference first."""
        return runs_beside([self.store.open(name) for name in names])

    def opened(self, selection: Selection) -> list[evaluations.Run]:
        names = filter(None, (selection.run, selection.reference))
        return [self.store.open(name) for name in names]

    def result(self, selection: Selection) -> Result:
        """The figures of a stored run, or of two; a `DataError` if they cannot be compared."""
        runs = self.opened(selection)
        return replace(
            self._stored_result(*runs),
            done=all(run.state == "done" for run in runs),
            expected=min((run.expected for run in runs if run.expected), default=None),
        )

    def _stored_result(
        self, run: evaluations.Run, reference: evaluations.Run | None = None
    ) -> Result:
        """The figures of the rows that are stored by now, cached."""
        if reference is None:
            return self.jobs.result(run.folder, run.row_count)
        return self.jobs.result(run.folder, run.row_count, reference.folder, reference.row_count)

    def rows(self, selection: Selection) -> Any:
        """The rows of the shown run, or pairs of two."""
        run, *references = self.opened(selection)
        return paired(references[0], run) if references else run.rows()

    def models(self, selection: Selection) -> list[ModelChoice]:
        """The candidate of the shown run, and the reference if there is one."""
        run, *reference_runs = self.opened(selection)
        models = [model_choice(shown_run.info, "model") for shown_run in (run, *reference_runs)]
        if not reference_runs and run.info.baseline is not None:
            models.append(model_choice(run.info, "baseline"))
        return models

    def delete(self, name: str) -> str:
        """Remove a run and return its name; its upload goes too if no other run needs it."""
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
        """
        run, *reference_runs = self.opened(selection)
        ending = "html" if file_format == REPORT else file_format
        target = self.fresh_folder(file_format) / f"{run.info.name}.{ending}"
        if file_format == REPORT:
            write_report(run, target, *reference_runs)
        else:
            evaluations.export(run, target, file_format)
        return target

    def controls(self, info: evaluations.RunInfo) -> tuple[dict[str, Any], str]:
        """The values of the form for a run, and a note of what is missing."""
        folder = partial(self.fresh_folder, "upload")
        return controls_of_run(info, self.store.root, folder)


def _followed(
    job: Job, steps: Generator[evaluations.RunProgress]
) -> Generator[Waiting, None, evaluations.RunProgress]:
    """Measure to the end; returns the last step."""
    first = next(steps)
    job.on_cancel(first.stop)
    pace, told_at = Pace(first), time.monotonic()
    result = Result(first.info, None, done=False)
    for step in chain([first], steps):
        result = replace(result, info=step.info, expected=step.expected)
        if step.through is not None:
            pace.add(step)
            if step.running.texts and time.monotonic() - told_at >= FIGURES_SECONDS:
                summary = step.running.summary(quick=True)
                result = replace(result, summary=summary, history=step.running.history())
                told_at = time.monotonic()  # however long they took
        yield _progress(step, pace, result)
    return step


def _progress(step: evaluations.RunProgress, pace: Pace, result: Result) -> Waiting:
    """A step in words: texts, speed and the time left."""
    # An engine measures whole blocks before it returns their rows.
    through = max(float(step.running.seen), step.through or 0.0)
    total = f" of {step.expected:,}" if step.expected else ""
    speed = speed_text(step.info, step.workers, pace.tokens_per_second)
    left = "" if pace.seconds_left is None else f"{duration(pace.seconds_left)} left"
    text = ", ".join(filter(None, (f"{int(through):,}{total} texts", speed, left)))
    text = ". ".join([text, *step.warnings])
    return Waiting(text, min(1.0, through / step.expected) if step.expected else 0.0, result)
