"""A function over a stream of items on several threads, results in the order of the items.

NumPy, ONNX Runtime and PyTorch release Python's lock while they compute, so threads are enough.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Of a model at a time: beyond a few they gain nothing and hold the more logits.
MOST_CALLS = 4

_OWN = threading.local()


def sharing() -> int:
    """How many threads share the machine with this one, itself counted; 1 outside of `in_order`."""
    return getattr(_OWN, "sharing", 1)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result]:
    """`map` on `workers` threads, a few items ahead of the caller, in whose thread they are read.

    With one worker the caller's thread does the work too, and nothing is ahead. Closing the
    generator drops what waits and returns when the calls under way have ended.

    Raises:
        Exception: what `function` or `items` raises, after the results of all items before.

    >>> list(in_order(abs, [-3, 1, -2], workers=2))
    [3, 1, 2]
    """
    if workers <= 1:
        yield from map(function, items)
        return
    unread = iter(items)
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers, "fillmask", _share, (workers,))
    try:
        while True:
            try:
                item = next(unread)
            except StopIteration:
                break
            except Exception:
                yield from (future.result() for future in waiting)
                raise
            waiting.append(pool.submit(function, item))
            # More than can run, so that no worker waits for the caller.
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)
    finally:
        pool.shutdown(cancel_futures=True)


def _share(workers: int) -> None:
    _OWN.sharing = workers


class Budget:
    """Threads take a part each of what is there, and wait while it is not: a bound on memory."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._changed = threading.Condition()

    @contextmanager
    def part(self, amount: int) -> Iterator[None]:
        """Hold `amount`, at most `total`, while inside; take one part at a time."""
        if amount > self.total:
            raise ValueError(f"{amount} of {self.total} can never be had")
        with self._changed:
            self._changed.wait_for(lambda: self._free >= amount)
            self._free -= amount
        try:
            yield
        finally:
            with self._changed:
                self._free += amount
                self._changed.notify_all()
