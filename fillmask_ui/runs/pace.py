"""How fast a run goes, and how long it will take: from its `Progress`, of late.

Of late is the last half minute, or longer where signs of progress are rare: an engine may have
whole blocks of texts measured before it says so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from fillmask_ui.runs.perform import Progress

_WINDOW_SECONDS = 30.0
_STEP_SECONDS = 0.5
_LEAST_SAMPLES = 8


@dataclass(frozen=True)
class _Sample:
    seconds: float
    tokens: int
    through: float


class Pace:
    """Tokens per second and the time left.

    Args:
        first: what the run yielded first; what was done by then is not counted.
        clock: seconds since whenever.
    """

    def __init__(self, first: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._expected = clock, first.expected
        self._samples = deque([_Sample(clock(), first.tokens, first.through or 0.0)])

    def add(self, step: Progress) -> None:
        """Take note of a sign of life; steps that only bring rows say nothing new."""
        last = self._samples[-1]
        self._expected = step.expected
        if step.through is None or (step.tokens <= last.tokens and step.through <= last.through):
            return
        now = self._clock()
        if len(self._samples) > 1 and now - self._samples[-2].seconds < _STEP_SECONDS:
            self._samples.pop()
        tokens, through = max(step.tokens, last.tokens), max(step.through, last.through)
        self._samples.append(_Sample(now, tokens, through))
        old = now - _WINDOW_SECONDS
        while len(self._samples) > _LEAST_SAMPLES and self._samples[0].seconds < old:
            self._samples.popleft()

    @property
    def tokens_per_second(self) -> float | None:
        """Hidden tokens scored per second; None before there are any."""
        return self._rate(self._samples[-1].tokens - self._samples[0].tokens)

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None where there is none."""
        through = self._samples[-1].through
        rate = self._rate(through - self._samples[0].through)
        return max(0.0, self._expected - through) / rate if self._expected and rate else None

    def _rate(self, amount: float) -> float | None:
        seconds = self._samples[-1].seconds - self._samples[0].seconds
        return amount / seconds if amount > 0 and seconds > 0 else None
