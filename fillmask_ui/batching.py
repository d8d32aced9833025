"""Token sequences of many lengths as padded batches of about equal cost, and threads for them.

Sequences of similar length share a batch, so little is padding. Axes: B sequences in a batch, T
tokens of the longest, M asked positions, V vocabulary.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fillmask_ui.errors import ModelOutputError
from fillmask_ui.protocol import MaskedLM

Item = TypeVar("Item")
Result = TypeVar("Result")

# Calls of a model at a time: more are no faster and hold more logits.
MOST_CALLS = 4

_THREAD = threading.local()


@dataclass(frozen=True)
class PaddedBatch:
    """Sequences filled up to one length."""

    input_ids: np.ndarray  # int64 [B, T]
    attention_mask: np.ndarray  # int64 [B, T], 1 for real tokens


def pad(sequences: Sequence[np.ndarray], pad_id: int) -> PaddedBatch:
    """Fill shorter sequences, of which there is at least one, up on the right.

    >>> pad([np.array([5, 6, 7]), np.array([8])], pad_id=0).input_ids
    array([[5, 6, 7],
           [8, 0, 0]])
    """
    lengths = np.array([len(sequence) for sequence in sequences])  # [B]
    input_ids = np.full((len(sequences), lengths.max()), pad_id, dtype=np.int64)
    for row, sequence in zip(input_ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    attention_mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    return PaddedBatch(input_ids, attention_mask)


def logits_of_batch(
    model: MaskedLM, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray
) -> np.ndarray:
    """`MaskedLM.logits_at` of a batch, [M, V]; a `ModelOutputError` if that breaks its protocol."""
    logits = np.asarray(model.logits_at(batch.input_ids, batch.attention_mask, rows, cols))
    size = model.vocabulary.size
    count, width = logits.shape if logits.ndim == 2 else (-1, 0)
    if count != len(rows) or width < size or logits.dtype.kind != "f":
        raise ModelOutputError(
            f"{model.signature.name} gave logits {list(logits.shape)} of {logits.dtype}: one row "
            f"per position is wanted, {len(rows)} in all, of a float for each of the {size:,} "
            "tokens or more that its tokenizer knows"
        )
    return logits


def windows(
    items: Iterable[Item], size_of: Callable[[Item], int], *, max_size: int, max_items: int
) -> Iterator[list[Item]]:
    """Cut a stream into lists of bounded size; an item above `max_size` is alone in its list.

    A list depends only on the items before it, so that a resumed run forms the same batches.

    >>> list(windows([3, 4, 9, 1], lambda size: size, max_size=8, max_items=10))
    [[3, 4], [9], [1]]
    """
    window: list[Item] = []
    filled = 0
    for item in items:
        size = size_of(item)
        if window and (filled + size > max_size or len(window) == max_items):
            yield window
            window, filled = [], 0
        window.append(item)
        filled += size
    if window:
        yield window


def plan_batches(
    lengths: Sequence[int],
    *,
    max_tokens: int,
    targets: Sequence[int] | None = None,
    max_targets: int | None = None,
) -> list[list[int]]:
    """Group sequences of similar length: indices into `lengths`, each once, shortest first.

    A batch has at most `max_tokens` tokens, padding counted, and `max_targets` asked positions
    (`targets` of each sequence); a longer sequence is alone.

    >>> plan_batches([3, 8, 4, 8], max_tokens=16)
    [[0, 2], [1, 3]]
    """
    batches: list[list[int]] = []
    batch: list[int] = []
    batch_targets = 0
    for index in np.argsort(np.asarray(lengths), kind="stable").tolist():
        sequence_targets = targets[index] if targets is not None else 0
        # Lengths ascend, so this sequence is the longest of the batch so far.
        too_long = (len(batch) + 1) * lengths[index] > max_tokens
        too_many = max_targets is not None and batch_targets + sequence_targets > max_targets
        if batch and (too_long or too_many):
            batches.append(batch)
            batch, batch_targets = [], 0
        batch.append(index)
        batch_targets += sequence_targets
    return [*batches, batch] if batch else batches


def sharing() -> int:
    """How many threads of `in_order` share the machine with this one; 1 outside of it."""
    return getattr(_THREAD, "sharing", 1)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result]:
    """`map` on `workers` threads, a few items ahead of the caller; with one, in its own thread.

    Items are read in the caller's thread. Errors come after the results before them. Closing the
    generator drops what waits and returns when the calls under way have ended.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    unread = iter(items)
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers, "fillmask", setattr, (_THREAD, "sharing", workers))
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


class Budget:
    """A bound on memory: threads take parts of it, and wait until there is enough."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._changed = threading.Condition()

    @contextmanager
    def part(self, amount: int) -> Iterator[None]:
        """Hold `amount`, at most `total`, while inside; one part a thread."""
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
