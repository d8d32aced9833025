"""Slow tasks behind the page: run in a thread, with news of them while they run."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Result = TypeVar("Result")

# Quicker answers come without any sign of waiting, slower ones say what is going on.
PATIENCE_SECONDS = 0.4


class News(Protocol):
    """How far a task is, as `Waiting` and `LoadProgress` say it."""

    @property
    def message(self) -> str: ...

    @property
    def fraction(self) -> float | None: ...


Report = Callable[[News], None]


@dataclass(frozen=True)
class Waiting:
    """The task goes on."""

    message: str = ""  # what it does; empty where it has not said so
    fraction: float | None = None  # part done, in [0, 1]; None where nothing is counted
    so_far: Any = None  # what is known of the result by then; None for nothing


@dataclass(frozen=True)
class Done(Generic[Result]):
    """The task has ended."""

    result: Result


class Task(Generic[Result]):
    """Work in a thread that is given what takes news of its progress."""

    def __init__(self, work: Callable[[Report], Result]) -> None:
        self._latest = Waiting()
        self._future = Future[Result]()
        threading.Thread(target=self._run, args=[work], daemon=True, name="page-task").start()

    def _run(self, work: Callable[[Report], Result]) -> None:
        try:
            self._future.set_result(work(self._report))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._future.set_exception(error)

    def _report(self, step: News) -> None:
        if not isinstance(step, Waiting):
            step = Waiting(step.message, step.fraction)
        self._latest = step

    def wait(self, seconds: float = PATIENCE_SECONDS) -> Waiting | Done[Result]:
        """Its state after at most so long; what it raised is raised."""
        wait([self._future], seconds)
        return Done(self._future.result()) if self._future.done() else self._latest


def run_in_background(
    work: Callable[[Report], Result],
) -> Iterator[Waiting | Done[Result]]:
    """Run a slow task in a thread: `Waiting` now and then, `Done` at its end.

    Who stops listening does not stop the task: a model that is being loaded for one visitor is
    soon asked for by another. What the task raises is raised here.
    """
    task = Task(work)
    while isinstance(state := task.wait(), Waiting):
        yield state
    yield state


class Tasks(Generic[Result]):
    """Tasks that are asked about again and again, each begun once; safe to use from threads."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Task[Result]] = {}
        self._lock = threading.Lock()

    def wait(self, key: Hashable, work: Callable[[Report], Result]) -> Waiting | Done[Result]:
        """The state of the task of this key, which is begun if it does not run.

        Once it has ended, who asks next begins it anew; what it raised is raised.
        """
        with self._lock:
            task = self._running.get(key) or Task(work)
            self._running[key] = task
        ended = True
        try:
            state = task.wait()
            ended = isinstance(state, Done)
            return state
        finally:
            if ended:
                with self._lock:
                    if self._running.get(key) is task:
                        del self._running[key]


class _ForgottenError(Exception):
    """Nobody asks about a task any more."""


class TasksInTurn(Tasks[Result]):
    """Tasks of which one runs at a time, and that end once nobody asks about them.

    Args:
        most: tasks that may run or wait; a later caller is told to ask again.
        patience_seconds: how long a task goes on without anybody asking about it. It notices when
            it reports on itself.
    """

    def __init__(self, most: int = 32, patience_seconds: float = 10.0) -> None:
        super().__init__()
        self._most = most
        self._patience_seconds = patience_seconds
        self._asked_at: dict[Hashable, float] = {}
        self._turn = threading.Lock()

    def wait(self, key: Hashable, work: Callable[[Report], Result]) -> Waiting | Done[Result]:
        now = time.monotonic()
        with self._lock:
            for other in [k for k in self._asked_at if self._forgotten(k)]:
                del self._asked_at[other]
                self._running.pop(other, None)
            if key not in self._asked_at and len(self._asked_at) >= self._most:
                return Waiting("Many are computing at the moment; yours begins soon…")
            self._asked_at[key] = now
        try:
            state = super().wait(key, lambda report: self._in_turn(key, work, report))
        except _ForgottenError:
            return Waiting()  # the next caller begins it anew
        except BaseException:
            self._leave(key)
            raise
        if isinstance(state, Done):
            self._leave(key)
        return state

    def _leave(self, key: Hashable) -> None:
        with self._lock:  # others may be looking through them
            self._asked_at.pop(key, None)

    def _forgotten(self, key: Hashable) -> bool:
        return time.monotonic() - self._asked_at.get(key, 0.0) > self._patience_seconds

    def _in_turn(self, key: Hashable, work: Callable[[Report], Result], report: Report) -> Result:
        def told(news: News) -> None:
            if self._forgotten(key):
                raise _ForgottenError
            report(news)

        told(Waiting("Waiting for another computation…"))
        with self._turn:
            told(Waiting("Computing…"))
            return work(told)
