"""Slow tasks in threads that report their progress to the page."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Result = TypeVar("Result")

# Slower answers show their progress.
PATIENCE_SECONDS = 0.4


class News(Protocol):
    """The progress of a task, as `Waiting` and `LoadProgress` hold it."""

    @property
    def message(self) -> str: ...

    @property
    def fraction(self) -> float | None: ...


Report = Callable[[News], None]


@dataclass(frozen=True)
class Waiting:
    """The task is still running."""

    message: str = ""  # what it does; empty where it has not said so
    fraction: float | None = None  # part done, in [0, 1]; None where nothing is counted
    so_far: Any = None  # what is known of the result by then; None for nothing


@dataclass(frozen=True)
class Done(Generic[Result]):
    """The task has ended."""

    result: Result


class Task(Generic[Result]):
    """Work in a thread; it is given a callback for its progress."""

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
        """Its state after at most `seconds`; re-raises what the task raised."""
        wait([self._future], seconds)
        return Done(self._future.result()) if self._future.done() else self._latest


def run_in_background(
    work: Callable[[Report], Result],
) -> Iterator[Waiting | Done[Result]]:
    """Run a slow task in a thread: `Waiting` now and then, `Done` at its end.

    The task goes on if the caller stops listening: another visitor may soon want the same model.
    Re-raises what the task raised.
    """
    task = Task(work)
    while isinstance(state := task.wait(), Waiting):
        yield state
    yield state


class Tasks(Generic[Result]):
    """Tasks polled by key, each started once; thread-safe."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Task[Result]] = {}
        self._lock = threading.Lock()

    def wait(self, key: Hashable, work: Callable[[Report], Result]) -> Waiting | Done[Result]:
        """The state of the task of this key, started if it is not running.

        Re-raises what the task raised; the call after its end starts it anew.
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
    """Nobody polls the task any more."""


class TasksInTurn(Tasks[Result]):
    """Tasks that run one at a time and end once nobody polls them.

    Args:
        most: tasks that may run or wait; a later caller is told to ask again.
        patience_seconds: how long a task runs on unpolled; checked when it reports progress.
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
