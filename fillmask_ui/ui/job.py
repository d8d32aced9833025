"""What takes long: work in a thread that a page starts, shows, cancels and finds again.

The work is handed its `Job` and tells what it does: as a generator that yields a `Waiting` at each
step, with what is known of the result by then in `so_far`, or by `Job.report` in a callback. It
ends there if it is cancelled, so whatever should stay is on disk before the next step. To resume is
to start work that leaves out what is there.

A job belongs to a `Page` of its visitor, not to a connection: a page that was closed or reloaded
finds it again by the ids that its browser keeps (`static/on_load/visitor.js`). `Jobs` holds the
pages of one tab, and `components.wire` connects them to its buttons. An answer that all visitors
share is a job of `SharedJobs`, found by its question. Long jobs pause between their steps while
short ones work.

>>> def count(job):
...     for number in (1, 2, 3):
...         yield Waiting(f"{number} of 3", number / 3, so_far=number)
>>> page = Jobs().page("session of Gradio")
>>> job = page.start(count)
>>> while not job.ended:
...     time.sleep(0.01)
>>> job.poll().state, job.poll().so_far
('done', 3)
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Any, TypeVar

from fillmask_ui.errors import DataError, FillmaskError, explain
from fillmask_ui.models import LoadProgress
from fillmask_ui.show.numbers import duration

# Slower answers show their progress.
PATIENCE_SECONDS = 0.4
# A public page ends a job that nobody has polled for this long.
ABANDONED_SECONDS = 60.0
# A page that polled within this time still follows the job.
FOLLOWED_SECONDS = 2.0
# An opening page shows a job of its own that ended this recently.
_NEWS_SECONDS = 10.0
MOST_JOBS = 64  # of a tab that wait or run; each has a thread, and holds what was typed for it
MOST_PAGES = 1000  # of a tab that are known; the one that was silent longest is forgotten first
# How long a page waits for the current step after a cancel.
STOP_SECONDS = 0.4
# A long job pauses at most so long at a step, so that many short ones cannot stop it.
PAUSE_SECONDS = 10.0
# The time left is estimated once this part is done.
_LEAST_FRACTION = 0.02


@dataclass(frozen=True)
class Waiting:
    """The work goes on, or a job has ended."""

    message: str = ""  # what it does; empty where it has not said so
    fraction: float | None = None  # part done, in [0, 1]; None where nothing is counted
    so_far: Any = None  # what is known of the result by then; None for nothing
    state: str = "running"  # of a job also `done`, `stopped`, or `failed`: `message` says why

    @property
    def ended(self) -> bool:
        return self.state != "running"

    def busy_answer(self) -> dict[str, Any]:
        """For the browser, which asks again; a job that has said nothing loads its model."""
        notice = self.message or "Loading the model…"
        return {"kind": "busy", "notice": notice, "fraction": self.fraction}


Report = Callable[[Waiting | LoadProgress], None]


class Unfinished(Exception):  # noqa: N818 - no error: the browser asks again
    """What is asked for is still being computed."""

    def __init__(self, state: Waiting) -> None:
        self.state = state


class UnwantedError(Exception):
    """The job was cancelled, or nobody follows it any more."""


class Slots:
    """As many jobs work at a time, and a job that waits is told which does."""

    def __init__(self, count: int = 1) -> None:
        self._free = threading.Semaphore(count)
        self._working: list[Job] = []  # the one that began first is first

    def acquire(self, job: Job, seconds: float) -> bool:
        """Whether the job got a slot within this time."""
        if not self._free.acquire(timeout=seconds):
            return False
        self._working.append(job)
        return True

    def release(self, job: Job) -> None:
        self._working.remove(job)
        self._free.release()

    def wait_message(self, waiting: Job) -> str:
        """Whose job it is that another one waits for, and how long that takes."""
        working = next(iter(self._working), None)
        if working is None:
            return "Waiting for another run to end…"
        title = working.title or "another answer"
        if working.visitor != waiting.visitor:
            title = f"{title} of another visitor"
        seconds_left = working.seconds_left
        if seconds_left is None:
            return f"Waiting for {title}, which began {duration(working.seconds)} ago…"
        return f"Waiting for {title}: {duration(seconds_left)} left…"


class Job:
    """One piece of work; `begin` it, or start it with `Page.start`."""

    def __init__(
        self,
        work: Work,
        slots: Sequence[Slots] = (),  # it takes one of each before it works
        *,
        title: str = "",  # what it is, for jobs that wait for it
        pauses_for: SharedJobs | None = None,  # between its steps, while any of these works
        visitor: str = "",  # its owner; blank where everybody sees all jobs
        page: str = "",  # that shows it, by the name that a reload keeps
        reads: str = "",  # path of a file that it needs to its end
        patience_seconds: float = math.inf,  # how long it goes on while nobody polls it
    ) -> None:
        self.visitor, self.page, self.reads, self.title = visitor, page, reads, title
        self.status = Waiting()
        self._pauses_for = pauses_for
        self._began_at = time.monotonic()  # once it has its slots, the time when it got them
        self._result: Any = None
        self._error: BaseException | None = None
        self._work, self._slots = work, slots
        self._patience_seconds = patience_seconds
        self._stop, self._ended = threading.Event(), threading.Event()
        self._polled_at = time.monotonic()
        self._ended_at = math.inf
        self._at_cancel: Callable[[], None] | None = None

    def begin(self, after: Job | None = None) -> Job:
        """Start a thread, which first waits until `after`, a job being stopped, has ended."""
        threading.Thread(target=self._run, args=[after], daemon=True, name="page-job").start()
        return self

    def wait(self, seconds: float = PATIENCE_SECONDS) -> Any:
        """What the work returned, or its `Waiting` after some time; raises what it raised."""
        self._polled_at = time.monotonic()
        if not self._ended.wait(seconds):
            return self.status
        if self._error is not None:
            raise self._error
        return self._result if self.status.state == "done" else Waiting()

    def cancel(self) -> None:
        """End it at its next step; for its pages it ends at once."""
        self._stop.set()
        if self._at_cancel is not None:
            self._at_cancel()

    def on_cancel(self, act: Callable[[], None]) -> None:
        """Let the work say what a cancel does at once, such as closing a file."""
        self._at_cancel = act
        if self.cancelled:
            act()

    def report(self, step: Waiting | LoadProgress) -> None:
        """Show a step; an `UnwantedError` if the job should end here."""
        if self.cancelled or self.abandoned:
            raise UnwantedError
        so_far = step.so_far if isinstance(step, Waiting) else None
        if so_far is None:
            so_far = self.status.so_far
        self.status = Waiting(step.message, step.fraction, so_far)
        pause_end = time.monotonic() + PAUSE_SECONDS
        while self._pauses_for is not None and self._pauses_for.working:
            if time.monotonic() > pause_end or self._stop.wait(0.05):
                break

    @property
    def seconds(self) -> float:
        """How long it has worked."""
        return time.monotonic() - self._began_at

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the part that is done; None without one."""
        fraction = self.status.fraction
        if fraction is None or fraction < _LEAST_FRACTION:
            return None
        return self.seconds * (1 - fraction) / fraction

    def poll(self) -> Waiting:
        """How it stands, for a page that follows it; a cancelled job has stopped at once."""
        self._polled_at = time.monotonic()
        if self.cancelled and not self._ended.wait(STOP_SECONDS):
            return replace(self.status, state="stopped", message="")
        return self.status

    @property
    def cancelled(self) -> bool:
        return self._stop.is_set()

    @property
    def abandoned(self) -> bool:
        """Whether nobody has polled it for too long."""
        return time.monotonic() - self._polled_at > self._patience_seconds

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    @property
    def followed(self) -> bool:
        return time.monotonic() - self._polled_at < FOLLOWED_SECONDS

    @property
    def news(self) -> bool:
        """Whether an opening page should show it."""
        return not self.cancelled and time.monotonic() - self._ended_at < _NEWS_SECONDS

    def _run(self, after: Job | None) -> None:
        state, message = "done", ""
        try:
            while after is not None and not after._ended.wait(0.2):
                self.report(Waiting("Waiting for the run before to stop…"))
            with ExitStack() as held_slots:
                before_waiting = self.status
                for slots in self._slots:
                    while not slots.acquire(self, 0.2):
                        self.report(Waiting(slots.wait_message(self)))
                    held_slots.callback(slots.release, self)
                self.status, self._began_at = before_waiting, time.monotonic()
                self._result = self._work(self)
                if isinstance(self._result, GeneratorType):
                    with closing(self._result) as steps:
                        for step in steps:
                            self.report(step)
        except UnwantedError:
            state = "stopped"
        except BaseException as error:  # noqa: BLE001 - a panic of Rust too
            state, message, self._error = "failed", explain(error)[0], error
            if not isinstance(error, FillmaskError):
                traceback.print_exception(error)
        finally:
            self.status = replace(self.status, state=state, message=message, fraction=None)
            self._ended_at = time.monotonic()
            self._ended.set()


class Page:
    """An open page of a tab, and the job that it shows."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs: Any = jobs
        self.job: Job | None = None
        self.visitor = self.name = ""  # unknown until the browser sends them
        self.drawn: Any = None  # what it shows of the job, which is not drawn again
        self._last_status: Waiting | None = None
        self._lock = threading.Lock()

    def start(self, work: Work, slots: Sequence[Slots] | None = None, *, reads: str = "") -> Job:
        """Start work, within the slots of the tab unless told others; stops the job before."""
        jobs = self.jobs
        job = Job(
            work,
            [jobs.slots] if slots is None else slots,
            title=jobs.title,
            pauses_for=jobs.pauses_for,
            visitor=self._owner,
            page=self.name,
            reads=reads,
            patience_seconds=ABANDONED_SECONDS if jobs.public else math.inf,
        )
        job.status = Waiting("Starting…")
        jobs.add(job)
        with self._lock:
            before, self.job = self.job, job
        if before is not None:
            before.cancel()
        return job.begin(after=before)

    def take_up(self) -> Job | None:
        """The job that the page showed before a reload, or one that no page follows."""
        self.drawn, job = None, self.jobs.news(self._owner, self.name)
        if job is not None:
            job.page, self.job = self.name, job
        return job

    def news(self) -> Waiting | None:
        """The status of its job; None if there is no job, or nothing new since the last call."""
        status = self.job.poll() if self.job is not None else None
        with self._lock:
            if status is self._last_status:
                return None
            self._last_status = status
        return status

    def cancel(self) -> None:
        if self.job is not None:
            self.job.cancel()

    def close(self) -> None:
        """The page was closed or reloaded; its job goes on."""

    @property
    def _owner(self) -> str:
        return self.visitor if self.jobs.public else ""


Result = TypeVar("Result")


class Jobs:
    """The jobs and open pages of one tab; on a `public` page each visitor sees only their own.

    `slots` jobs run at a time, the others wait and are told the `title` of what they wait for.
    Between their steps jobs pause while any of `pauses_for` works. `new_page` makes the state of a
    page.
    """

    def __init__(
        self,
        slots: int = 1,
        *,
        public: bool = False,
        title: str = "another run",
        pauses_for: SharedJobs | None = None,
        new_page: Callable[..., Any] = Page,
    ) -> None:
        self.public, self.title, self.pauses_for = public, title, pauses_for
        self.slots = Slots(slots)
        self._new_page = new_page
        self._pages: OrderedDict[str, Any] = OrderedDict()
        self._jobs: list[Job] = []  # running or recently ended, the newest last
        self._lock = threading.Lock()

    def page(self, opened: str) -> Any:
        """The state of an open page, by its session of Gradio."""
        with self._lock:
            page = self._pages.pop(opened, None) or self._new_page(self)
            self._pages[opened] = page
            if len(self._pages) > MOST_PAGES:  # also those of sessions that nobody ever opened
                self._pages.popitem(last=False)[1].close()
            return page

    def arrive(self, opened: str, visitor: str, name: str) -> Any:
        """Register an opened page under the ids of its visitor and page."""
        page = self.page(opened)
        page.visitor, page.name = visitor, name
        return page

    def forget(self, opened: str) -> None:
        """A page was closed or reloaded: its job continues."""
        with self._lock:
            page = self._pages.pop(opened, None)
        if page is not None:
            page.close()

    def add(self, new_job: Job) -> None:
        """Know a job; a `DataError` if too many wait already."""
        with self._lock:
            if sum(not job.ended for job in self._jobs) >= MOST_JOBS:
                raise DataError(f"{MOST_JOBS} runs wait already: try again in some minutes")
            self._jobs = [job for job in self._jobs if not job.ended or job.news] + [new_job]

    def news(self, visitor: str, name: str) -> Job | None:
        """The job for an opening page to show: its own, or one that no page follows."""
        with self._lock:
            candidates = [job for job in self._jobs if job.visitor == visitor and job.news]
        of_page = [job for job in candidates if job.page == name]
        unfollowed = [job for job in candidates if not job.ended and not job.followed]
        return next(reversed(of_page or unfollowed), None)

    def files_in_use(self) -> list[str]:
        """Paths that jobs read or will read."""
        with self._lock:
            return [job.reads for job in self._jobs if not job.ended]


class SharedJobs:
    """Jobs whose results all visitors share, by question; thread-safe."""

    def __init__(
        self,
        slots: Sequence[Slots] = (),
        *,
        doing: str = "",  # what a job does that has not said so
        pauses_for: SharedJobs | None = None,  # between the steps of jobs
        most: float = math.inf,  # jobs that may run or wait; a later caller is told to ask again
        patience_seconds: float = math.inf,
    ) -> None:
        self._slots, self._most, self._patience_seconds = slots, most, patience_seconds
        self._doing, self._pauses_for = doing, pauses_for
        self._jobs: dict[Hashable, Job] = {}
        self._lock = threading.Lock()

    @property
    def working(self) -> bool:
        """Whether any job works or waits."""
        with self._lock:
            return any(not job.ended for job in self._jobs.values())

    def result(
        self, question: Hashable, work: Callable[[Report], Result], title: str = ""
    ) -> Result:
        """What the work returns or raises, or `Unfinished` while it goes on; it runs once.

        The call after its end starts it anew. Jobs that wait for it are told its `title`.
        """
        with self._lock:
            self._jobs = {key: job for key, job in self._jobs.items() if not job.abandoned}
            job = self._jobs.get(question)
            if job is None:
                if len(self._jobs) >= self._most:
                    raise Unfinished(Waiting("Others are computing; your answer begins soon…"))
                job = Job(
                    lambda running: work(running.report),
                    self._slots,
                    title=title,
                    pauses_for=self._pauses_for,
                    patience_seconds=self._patience_seconds,
                )
                job.status = Waiting(self._doing)
                self._jobs[question] = job.begin()
        try:
            state = job.wait()
        finally:
            with self._lock:
                if job.ended and self._jobs.get(question) is job:
                    del self._jobs[question]
        if isinstance(state, Waiting):
            raise Unfinished(state)
        return state


Work = Callable[[Job], Any]  # the result, or a generator of `Waiting`
