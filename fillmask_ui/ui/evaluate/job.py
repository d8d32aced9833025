"""An evaluation in the background that can be followed, stopped at once and resumed.

A thread consumes `runs.perform`, which stores each row. Pages poll the job's status; a reloaded
page finds its job again. A job that nobody polls for a minute stops, so that a closed browser
leaves a stopped run, which can be resumed.

Cancelling ends the run at once with the rows on disk; the thread finishes its current batch and
drops it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fillmask_ui.cluster import LOCAL, EngineChoice, open_engine
from fillmask_ui.errors import FillmaskError, explain
from fillmask_ui.evaluation import History, MeanSoFar, Summary
from fillmask_ui.runs import Engine, Progress, RunInfo, RunStore
from fillmask_ui.runs.perform import Pace

if TYPE_CHECKING:
    from fillmask_ui.models import LoadProgress
    from fillmask_ui.models.model_choice import ModelChoice
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.runs.perform import Load
    from fillmask_ui.ui.session import Session

STATUS_SECONDS = 1.0
ABANDONED_SECONDS = 60.0
# A page that polled within this time still follows the job.
_FOLLOWED_SECONDS = 2.0
# An opening page shows a job that ended this recently.
_NEWS_SECONDS = 10.0
# How long the page waits for the current batch after a stop.
STOP_SECONDS = 0.4


@dataclass(frozen=True, eq=False)
class JobStatus:
    """The progress of a job."""

    state: str = "waiting"  # `waiting`, `running`, `done`, `stopped` or `failed`
    message: str = ""  # current step, or why it failed
    fraction: float | None = None  # part done, in [0, 1]; None where nothing is counted
    seen: int = 0  # texts measured or skipped
    through: float = 0.0  # the same, with texts in progress counted in part
    expected: int | None = None  # texts in all; None where that is not known
    seconds_left: float | None = None  # an estimate, if there is one
    tokens_per_second: float | None = None  # recently; None at first
    workers: int = 1  # as of `Progress`
    info: RunInfo | None = None  # of the run, once it has begun
    summary: Summary | None = None  # figures so far, once there are any
    history: tuple[MeanSoFar, ...] = ()  # of the mean

    @property
    def ended(self) -> bool:
        return self.state in ("done", "stopped", "failed")


Measure = Callable[["Load", Engine | None], Generator[Progress]]


class _UnwantedError(Exception):
    """Nobody follows the job any more; raised before a run is made."""


class Job:
    """One evaluation; start it with `begin`.

    Args:
        session: the page's models.
        store: where the run is kept.
        slots: the job takes one of each before it measures.
        measure: `perform` or `perform_rest`, still to be given the model loader and the engine.
        engine: where to measure.
        reads: path of the file of texts; blank for none.
        visitor: its owner; blank where everybody sees all runs.
        page: that shows it.
    """

    def __init__(
        self,
        session: Session,
        store: RunStore,
        slots: Sequence[threading.Semaphore],
        measure: Measure,
        engine: EngineChoice,
        reads: str = "",
        visitor: str = "",
        page: str = "",
    ) -> None:
        self.visitor, self.page = visitor, page
        self._session, self._store, self._slots = session, store, slots
        self._measure, self._engine, self._reads = measure, engine, reads
        self._stop, self._ended = threading.Event(), threading.Event()
        self._asked_at = time.monotonic()
        self._ended_at: float | None = None
        self._stop_run: Callable[[], None] | None = None  # set once there is a run
        self._history = History()
        self.status = JobStatus(message="Starting…")

    def begin(self, after: Job | None = None) -> None:
        """Start a thread, which first waits until `after`, a job being stopped, has ended."""
        thread = threading.Thread(target=self._work, args=[after], daemon=True, name="evaluation")
        thread.start()

    def cancel(self) -> None:
        """Stop at once: rows on disk stay, the current batch is dropped."""
        self._stop.set()
        if self._stop_run is not None:
            self._stop_run()

    @property
    def reads(self) -> str:
        """Path of the file that it still needs; blank for none."""
        return "" if self.ended else self._reads

    @property
    def cancelled(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the end; polling keeps the job alive."""
        self._asked_at = time.monotonic()
        return self._ended.wait(seconds)

    @property
    def ended(self) -> bool:
        """Whether the thread has ended, its last batch included."""
        return self._ended.is_set()

    @property
    def followed(self) -> bool:
        """Whether some page polls it."""
        return time.monotonic() - self._asked_at < _FOLLOWED_SECONDS

    @property
    def news(self) -> bool:
        """Whether an opening page should show it."""
        if self.cancelled:
            return False
        return self._ended_at is None or time.monotonic() - self._ended_at < _NEWS_SECONDS

    def _set(self, **changes: Any) -> None:
        self.status = replace(self.status, **changes)

    def _check_wanted(self) -> None:
        if self._unwanted:
            raise _UnwantedError

    @property
    def _unwanted(self) -> bool:
        return self.cancelled or time.monotonic() - self._asked_at > ABANDONED_SECONDS

    def _work(self, after: Job | None) -> None:
        try:
            while after is not None and not after._ended.wait(0.2):
                self._set(message="Waiting for the evaluation before to stop…")
                self._check_wanted()
            with ExitStack() as opened:
                for slot in self._slots:
                    self._take(slot)
                    opened.callback(slot.release)
                if self._engine.engine != LOCAL:
                    self._set(message="Starting Ray…")
                engine = opened.enter_context(open_engine(self._engine))
                self._check_wanted()
                self._set(message="Reading the texts…")
                steps = opened.enter_context(closing(self._measure(self._load, engine)))
                last = self._follow(steps)
            self._set_result(last)
        except _UnwantedError:
            self._set(state="stopped", message="")
        except Exception as error:
            self._set(state="failed", message=explain(error)[0])
            if not isinstance(error, FillmaskError):
                raise
        finally:
            self._ended_at = time.monotonic()
            self._ended.set()

    def _take(self, slot: threading.Semaphore) -> None:
        while not slot.acquire(timeout=0.2):
            self._set(message="Waiting for another evaluation to end…")
            self._check_wanted()

    def _load(self, choice: ModelChoice) -> MaskedLM:
        """Load a model; an unwanted job stops here, before it makes a run."""

        def report(step: LoadProgress) -> None:
            self._set(message=step.message, fraction=step.fraction)

        self._set(message="Loading the model…", fraction=None)
        self._check_wanted()
        model = self._session.model(choice, report)
        self._check_wanted()
        return model

    def _follow(self, steps: Iterator[Progress]) -> Progress:
        """Measure until the end, or until the job is unwanted; returns the last step."""
        first = step = next(steps)
        told_at, pace = time.monotonic(), Pace(first)
        self._stop_run = first.stop
        if self.cancelled:  # before `cancel` had a run to stop
            first.stop()
        for row in self._store.open(first.info.name).rows():  # of a resumed run
            self._history.add(row)
        self._set(state="running", message="", fraction=None, info=first.info)
        self._set(seen=first.running.seen, expected=first.expected, workers=first.workers)
        for step in steps:
            for row in step.rows:
                self._history.add(row)
            self._set(seen=step.running.seen, expected=step.expected, info=step.info)
            if step.through is not None:
                pace.add(step)
                if time.monotonic() - told_at >= STATUS_SECONDS:
                    self._set_figures(step, step.through, pace)
                    # A second after this status, however long it took.
                    told_at = time.monotonic()
            if self._unwanted:
                break
        return step

    def _set_figures(self, step: Progress, through: float, pace: Pace) -> None:
        self._set(
            through=through,
            fraction=min(1.0, through / step.expected) if step.expected else None,
            seconds_left=pace.seconds_left,
            tokens_per_second=pace.tokens_per_second,
            workers=step.workers,
            summary=step.running.summary(quick=True) if step.running.texts else None,
            history=self._history.means(),
        )

    def _set_result(self, last: Progress) -> None:
        run = self._store.open(last.info.name)
        self._set(
            state=run.state,
            fraction=None,
            info=run.info,
            seen=last.running.seen,
            summary=last.running.summary() if last.running.texts else None,
            history=self._history.means(),
        )


def follow(job: Job) -> Iterator[JobStatus]:
    """Yield each new status of a started job until it ends; several callers may follow."""
    latest: JobStatus | None = None
    while not job.wait(0.1) and not job.cancelled:
        if job.status is not latest:
            latest = job.status
            yield latest
    over = job.wait(STOP_SECONDS)
    yield job.status if over else replace(job.status, state="stopped", message="")
