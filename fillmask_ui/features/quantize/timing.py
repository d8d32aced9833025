"""A clock for calls of a model, times of two models in turns, and the sentence that is timed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median, quantiles
from typing import Any

from fillmask_ui.intervals import LEVEL, Interval
from fillmask_ui.protocol import Vocabulary

# Words of the texts at which a sentence is tried to start.
_MOST_STARTS = 50


def timed(call: Callable[[], Any], runs: int) -> tuple[tuple[float, ...], Any]:
    """Seconds of each run, and what the last one returned."""
    seconds, value = [], None
    for _ in range(runs):
        start = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - start)
    return tuple(seconds), value


# Equal turns on a quiet machine stay within a tenth or two (docs/bench.md).
_BUSY_SCATTER = 0.25


@dataclass(frozen=True)
class PairedTimes:
    """A variant and its baseline, timed in turns."""

    speedup: float  # median over turns of the baseline's time by the variant's
    interval: Interval | None  # of that median; None for fewer than six turns
    baseline_seconds: float  # median
    scatter: float  # interquartile range of a model's turns by their median; the larger of the two

    @property
    def faster(self) -> bool:
        """Whether the whole interval lies above 1, as printed."""
        return self.interval is not None and round(self.interval.low, 2) > 1

    @property
    def busy(self) -> bool:
        """Whether the machine did other things meanwhile."""
        return self.scatter > _BUSY_SCATTER


def paired_times(variant: Sequence[float], baseline: Sequence[float]) -> PairedTimes:
    """What the seconds of two models say, each [turns], two turns or more.

    What slows the machine for longer than a turn slows both models, and leaves the ratio.

    >>> paired_times([1.0, 4.0, 2.0], [1.5, 6.0, 3.0]).speedup
    1.5
    """
    ratios = [slow / fast for fast, slow in zip(variant, baseline, strict=True)]
    scatter = 0.0
    for seconds in (variant, baseline):
        low, middle, high = quantiles(seconds, n=4, method="inclusive")
        scatter = max(scatter, (high - low) / middle)
    return PairedTimes(median(ratios), median_interval(ratios), median(baseline), scatter)


def median_interval(values: Sequence[float]) -> Interval | None:
    """The interval of a median that the sign test gives, whatever the distribution of the values.

    Its limits are two of the values; fewer than six give none.

    Source:
        Conover 1999, Practical Nonparametric Statistics, section 3.2.
    """
    ordered, count = sorted(values), len(values)
    left_out, tail = 0, 0.5**count  # probability that so few values lie below the median
    while tail <= (1 - LEVEL) / 2:
        left_out += 1
        tail += math.comb(count, left_out) * 0.5**count
    if not left_out:
        return None
    return Interval(ordered[left_out - 1], ordered[count - left_out], "sign-test")


def sentence(vocabulary: Vocabulary, texts: Sequence[str], tokens: int, most: int) -> str | None:
    """Words of the texts, one of them a mask, that are so many tokens, special tokens included.

    None if no number of words gives that many tokens, or they are more than `most`.
    """
    if tokens > most:
        return None
    unusable = ("__", vocabulary.mask_token)
    words = [
        word
        for text in texts
        for word in text.split()
        if not any(mark in word for mark in unusable)
    ]
    for start in range(min(_MOST_STARTS, len(words))):
        ordered = list(islice(cycle(words[start:] + words[:start]), tokens))

        def masked(count: int, ordered: list[str] = ordered) -> str:
            middle = count // 2
            return " ".join((*ordered[:middle], vocabulary.mask_token, *ordered[middle:count]))

        low, high = 0, tokens
        while low < high:  # the fewest words that are enough
            count = (low + high) // 2
            enough = len(vocabulary.encode(masked(count))) >= tokens
            low, high = (low, count) if enough else (count + 1, high)
        if len(vocabulary.encode(masked(low))) == tokens:
            return masked(low)
    return None
