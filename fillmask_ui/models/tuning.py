"""Which batches a model runs fastest on this machine: measured once, then remembered.

Axes: B texts, T tokens.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence

import numpy as np

from fillmask_ui.batching import MOST_CALLS, in_order
from fillmask_ui.errors import OptionError
from fillmask_ui.models.cache import read_entry, write_entry
from fillmask_ui.protocol import MaskedLM

CANDIDATES = (256, 512, 1024, 2048)  # tokens of a batch
DEFAULT = 512  # where measuring would take too long, which is where batches matter least
# The smallest batch within this of the best: it takes the least memory and padding.
_GOOD_ENOUGH = 1.03
_SECONDS = 0.8
# Threads that may be asked for on every machine, however few cores it has.
_MOST_THREADS = 64
# Of the texts that are measured; of these one token in seven is asked, as in cross-entropy.
_TEXT_TOKENS = 128


def concurrent_calls(threads: int | None) -> int:
    """How many threads should call a model at a time; `threads` is the user's choice, if any."""
    return min(threads or MOST_CALLS, cores(), MOST_CALLS)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: int | None, words: str = "threads") -> None:
    """Stop with an OptionError for a number of threads that this machine cannot use.

    A run stored on a larger machine may still be looked at, so this is checked where threads start.
    """
    most = max(_MOST_THREADS, 4 * cores())
    if threads is not None and not 1 <= threads <= most:
        raise OptionError(
            f"{words} must be from 1 to {most} on this machine, four for each of its "
            f"{cores()} cores and at least {_MOST_THREADS}; it was {threads}"
        )


def best_batch_tokens(model: MaskedLM, threads: int | None) -> int:
    """Tokens of a padded batch that are fast; measured in about a second, or remembered."""
    own = model.signature
    versions, machine = sorted(own.versions.items()), (cores(), platform.node())
    ran = (own.sha256, own.device, own.precision, versions, own.cpu_features, own.notes)
    key = json.dumps([*ran, threads, *machine, CANDIDATES])
    kept = read_entry("batches", key)
    known = next((size for size in CANDIDATES if kept == str(size).encode()), None)
    if known is None:
        known = measure_batch_tokens(model, concurrent_calls(threads))
        write_entry(str(known).encode(), "batches", key)
    return known


def measure_batch_tokens(
    model: MaskedLM,
    workers: int,
    candidates: Sequence[int] = CANDIDATES,
    seconds: float = _SECONDS,
) -> int:
    """The smallest of the candidates that is about as fast as the best of them.

    Rounds in which each candidate has equal work, until the time is over; of each its median. Of a
    model whose first round would take longer the answer is `DEFAULT`.
    """
    length = min(_TEXT_TOKENS, model.max_tokens)
    sizes = {max(1, size // length): size for size in reversed(candidates)}  # texts: tokens
    most = max(sizes) * workers

    def round_seconds(texts: int, in_all: int) -> float:
        begun = time.perf_counter()
        calls = [texts] * max(1, in_all // texts)
        for _ in in_order(lambda rows: _call(model, rows, length), calls, workers):
            pass
        return (time.perf_counter() - begun) / (len(calls) * texts)

    # The first call of a size allocates; it also tells how long a round will take.
    expected = round_seconds(min(sizes), workers * min(sizes)) * most * len(sizes)
    if expected > 2 * seconds:
        return DEFAULT
    spent: dict[int, list[float]] = {texts: [] for texts in sizes}  # seconds a text
    end = time.perf_counter() + seconds
    while not spent[min(sizes)] or time.perf_counter() <= end:
        for texts, times in spent.items():
            times.append(round_seconds(texts, most))
    medians = {sizes[texts]: statistics.median(times) for texts, times in spent.items()}
    limit = _GOOD_ENOUGH * min(medians.values())
    return min(size for size, own in medians.items() if own <= limit)


def _call(model: MaskedLM, texts: int, length: int) -> None:
    """One call on made-up texts of one length: only its time counts."""
    vocabulary = model.vocabulary
    ids = np.random.default_rng(0).integers(0, vocabulary.size, (texts, length))  # [B, T]
    ids[:, 1:-1:7] = vocabulary.mask_id
    rows, cols = np.nonzero(ids == vocabulary.mask_id)
    model.logits_at(ids, np.ones_like(ids), rows, cols)
