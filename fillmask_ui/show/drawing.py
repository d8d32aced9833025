"""Scales of the drawings that the page makes itself, as SVG in templates."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Numbers along an axis, placed between two ends of a drawing.

    >>> axis = Scale(0, 10, 40, 240)
    >>> axis(5), axis.ticks()
    (140.0, (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))
    """

    low: float  # of the numbers
    high: float
    start: float  # where `low` stands, in units of the drawing
    end: float  # where `high` stands

    def __call__(self, value: float) -> float:
        """Where a number stands; one beyond the ends stands at the end."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, most: int = 6) -> tuple[float, ...]:
        """Round numbers between the ends, at most so many."""
        span = (self.high - self.low) or 1.0
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(s * power for s in (1, 2, 5, 10) if span / (s * power) <= most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(round(i * step, 12) for i in range(first, last + 1))
