"""How fast a run goes, and how long it will take: what was done by the time that it took."""

import time
from collections.abc import Callable

from fillmask_ui.runs.perform import Progress


class Pace:
    """Tokens per second and the time left.

    Args:
        first: what the run yielded first; what was done by then is not counted.
        clock: seconds since any moment.
    """

    def __init__(self, first: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()
        self._first = self._through = first.through or 0.0
        self._tokens, self._expected, self._seconds = 0, first.expected, 0.0

    def add(self, step: Progress) -> None:
        """Take note of progress; a step that only brings rows says nothing new."""
        self._expected = step.expected
        through = step.through or 0.0
        if step.tokens > self._tokens or through > self._through:
            self._seconds = self._clock() - self._began
            self._tokens = max(self._tokens, step.tokens)
            self._through = max(self._through, through)

    @property
    def tokens_per_second(self) -> float | None:
        """Hidden tokens scored per second; None before there are any."""
        return self._tokens / self._seconds if self._tokens and self._seconds else None

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None where the number of texts is not known, or nothing is done yet."""
        done = self._through - self._first
        if not self._expected or not done:
            return None
        return max(0.0, self._expected - self._through) * self._seconds / done
