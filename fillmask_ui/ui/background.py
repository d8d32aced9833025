"""Slow tasks of an event: run in a thread, with news of them while they run."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from fillmask_ui.models.progress import LoadProgress, ProgressCallback

Result = TypeVar("Result")

# Quicker answers come without any sign of waiting, slower ones say what is going on.
PATIENCE_SECONDS = 0.4


@dataclass
class Turns:
    """The order of one visitor's questions, kept in a `gr.State`.

    Questions are numbered by the page. An answer that comes after the answer to a later question
    is dropped, and a question that was given up is answered no more.
    """

    asked: int = 0
    answered: int = 0
    given_up: int = 0

    def ask(self, number: int) -> None:
        self.asked = max(self.asked, number)

    def give_up(self) -> None:
        """No question that has come in so far needs an answer."""
        self.given_up = self.asked

    def wants(self, number: int) -> bool:
        """Whether the question still needs its answer."""
        return number >= self.answered and number > self.given_up

    def answer(self, number: int) -> bool:
        """Whether the answer may be shown; from then on no earlier one may."""
        if not self.wants(number):
            return False
        self.answered = number
        return True


@dataclass(frozen=True)
class Waiting:
    """The task goes on."""

    message: str = ""  # what it does; empty where it has not said so
    fraction: float | None = None  # part done, in [0, 1]; None where nothing is counted


@dataclass(frozen=True)
class Done(Generic[Result]):
    """The task has ended."""

    result: Result


def run_in_background(
    task: Callable[[ProgressCallback], Result],
) -> Iterator[Waiting | Done[Result]]:
    """Run a slow task in a thread: `Waiting` now and then, `Done` at its end.

    Who stops listening does not stop the task: a model that is being loaded for one visitor is
    soon asked for by another. The task is given what takes each step of loading a model.

    Raises:
        RuntimeError: if the task raised; what it raised is on the server's log.
    """
    latest, outcome = Waiting(), list[Result]()

    def report(step: LoadProgress) -> None:
        nonlocal latest
        latest = Waiting(step.message, step.fraction)

    thread = threading.Thread(
        target=lambda: outcome.append(task(report)), daemon=True, name="page-task"
    )
    thread.start()
    thread.join(PATIENCE_SECONDS)
    while thread.is_alive():
        yield latest
        thread.join(PATIENCE_SECONDS)
    if not outcome:
        raise RuntimeError("the page's task failed; the log of the server says why")
    yield Done(outcome[0])
