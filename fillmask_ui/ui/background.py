"""Slow work of an event: done in a thread, told about while it runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")

# Quicker answers come without any sign of waiting, slower ones say what is going on.
PATIENCE_SECONDS = 0.4


@dataclass(frozen=True)
class Waiting:
    """The work goes on.

    Attributes:
        message: what it does; empty where it has said nothing.
        fraction: part done, in [0, 1]; None where nothing is counted.
    """

    message: str = ""
    fraction: float | None = None


@dataclass(frozen=True)
class Done(Generic[Result]):
    """The work has ended."""

    result: Result


def run_in_background(
    work: Callable[[Callable[..., None]], Result],
) -> Iterator[Waiting | Done[Result]]:
    """Do slow work, yield now and then, end with its result.

    Whoever stops listening stops nothing but the telling: a model that is being loaded for one
    visitor is soon asked for by another.

    Args:
        work: called in a thread with a function that takes a `LoadProgress`.

    Yields:
        `Waiting` while it runs, `Done` at its end.

    Raises:
        Exception: what the work raised.
    """
    news: queue.SimpleQueue = queue.SimpleQueue()
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work(news.put))
        except BaseException as error:  # noqa: BLE001 - raised again below, in the event's thread
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True, name="explore")
    thread.start()
    thread.join(PATIENCE_SECONDS)
    latest = Waiting()
    while thread.is_alive():
        while not news.empty():
            progress = news.get()
            latest = Waiting(progress.message, progress.fraction)
        yield latest
        thread.join(PATIENCE_SECONDS)
    if failure:
        raise failure[0]
    yield Done(outcome[0])
