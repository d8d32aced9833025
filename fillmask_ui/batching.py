"""Token sequences of many lengths as padded batches of about equal cost.

Sorted by length within a window, sequences of similar length share a batch, so little is padding.
A window is bounded, so that the whole data set never lies in memory; what it holds depends only
on the sequences before it, so that a resumed run forms the same batches as one never interrupted.

Axes: B sequences in a batch, T tokens of the longest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fillmask_ui.errors import ModelOutputError
from fillmask_ui.protocol import MaskedLM

Item = TypeVar("Item")


@dataclass(frozen=True)
class PaddedBatch:
    """Sequences filled up to one length."""

    input_ids: np.ndarray  # int64 [B, T]
    attention_mask: np.ndarray  # int64 [B, T], 1 for real tokens


def pad(sequences: Sequence[np.ndarray], pad_id: int) -> PaddedBatch:
    """Fill shorter sequences up on the right.

    Raises:
        ValueError: if there is no sequence.

    >>> pad([np.array([5, 6, 7]), np.array([8])], pad_id=0).input_ids
    array([[5, 6, 7],
           [8, 0, 0]])
    """
    if not sequences:
        raise ValueError("a batch needs at least one sequence")
    lengths = np.array([len(sequence) for sequence in sequences])  # [B]
    input_ids = np.full((len(sequences), lengths.max()), pad_id, dtype=np.int64)  # [B, T]
    for row, sequence in zip(input_ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    attention_mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    return PaddedBatch(input_ids, attention_mask)


def logits_of_batch(
    model: MaskedLM, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray
) -> np.ndarray:
    """`MaskedLM.logits_at` of a batch, float32 [M, V].

    Raises:
        ModelOutputError: where the model, whoever wrote it, does not keep to its protocol.
    """
    logits = np.asarray(model.logits_at(batch.input_ids, batch.attention_mask, rows, cols))
    name, size = model.signature.name, model.vocabulary.size
    if np.ndim(logits) != 2 or len(logits) != len(rows):
        raise ModelOutputError(
            f"{name} gave logits {list(np.shape(logits))} for {len(rows)} asked positions: one row "
            "per position is wanted, as MaskedLM.logits_at says"
        )
    if logits.dtype.kind != "f":
        raise ModelOutputError(f"{name} gave logits of {logits.dtype}: float32 is wanted")
    if logits.shape[1] < size:
        raise ModelOutputError(
            f"{name} gave logits for {logits.shape[1]:,} tokens, and its tokenizer knows {size:,}: "
            "the two do not belong together"
        )
    return logits


def windows(
    items: Iterable[Item], size_of: Callable[[Item], int], *, max_size: int, max_items: int
) -> Iterator[list[Item]]:
    """Cut a stream into lists of bounded size, in order.

    Args:
        items: any stream; read no further than one item past a window.
        size_of: what an item adds to the size of its window.
        max_size: largest sum of sizes; an item above it is alone in its window.
        max_items: largest number of items.

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
    """Group sequences of similar length.

    Args:
        lengths: tokens of each sequence.
        max_tokens: largest B * T of a batch, padding counted; a longer sequence is alone.
        targets: positions of each sequence that the model is asked about.
        max_targets: largest sum of `targets` in a batch; a sequence above it is alone.

    Returns:
        Indices into `lengths`, shortest first; each occurs once. The same lengths give the same
        batches.

    >>> plan_batches([3, 8, 4, 8], max_tokens=16)
    [[0, 2], [1, 3]]
    """
    order = np.argsort(np.asarray(lengths), kind="stable").tolist()
    batches: list[list[int]] = []
    batch: list[int] = []
    asked = 0
    for index in order:
        own = targets[index] if targets is not None else 0
        # Lengths ascend, so this sequence is the longest of the batch so far.
        too_long = (len(batch) + 1) * lengths[index] > max_tokens
        too_many = max_targets is not None and asked + own > max_targets
        if batch and (too_long or too_many):
            batches.append(batch)
            batch, asked = [], 0
        batch.append(index)
        asked += own
    if batch:
        batches.append(batch)
    return batches
