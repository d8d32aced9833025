"""Runs of one work with the time they took: what a contender answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fillmask_ui.bench.flops import EncoderShape


@dataclass(frozen=True)
class Timing:
    """One work, done once or several times."""

    seconds: tuple[float, ...]  # of each run
    amount: float  # what one run got through: tokens, calls or floating-point operations
    loss: float | None = None  # in nats, of the last run
    operations: int | None = None  # necessary floating-point operations of one run, where known


def timed(call: Callable[[], Any], runs: int) -> tuple[tuple[float, ...], Any]:
    """Seconds of each run, and what the last one returned."""
    seconds, value = [], None
    for _ in range(runs):
        start = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - start)
    return tuple(seconds), value


def evaluation_timing(
    seconds: tuple[float, ...],
    loss: float,
    sizes: Sequence[tuple[int, int]],
    metric: str,
    shape: EncoderShape | None,
) -> Timing:
    """An evaluation of texts given as (tokens, hidden tokens).

    What counts is every token, or for pseudo-perplexity, where a token costs a pass, every hidden
    one. Operations are known for the cross-entropy alone.
    """
    one_by_one = metric == "pseudo-perplexity"
    amount = sum(asked if one_by_one else tokens for tokens, asked in sizes)
    known = None if shape is None or one_by_one else shape.operations(sizes)
    return Timing(seconds, amount, loss, known)
