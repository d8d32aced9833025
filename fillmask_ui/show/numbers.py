"""How numbers are written for people; unrounded values stay in the records."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fillmask_ui.intervals import Interval


def interval_text(
    interval: Interval | None, render: Callable[[float], str] = lambda value: f"{value:,.4f}"
) -> str:
    """An interval for reading; nothing where there is none.

    >>> interval_text(Interval(0.011, 0.058, "bootstrap-t"), render=signed_percent)
    '+1.10% to +5.80%'
    """
    return "" if interval is None else f"{render(interval.low)} to {render(interval.high)}"


def signed_percent(value: float) -> str:
    """A relative change.

    >>> signed_percent(0.0304)
    '+3.04%'
    """
    return f"{value:+.2%}"


def cell_text(value: Any) -> str:
    """A cell of a table: whole numbers in full, others to four digits, nothing for None.

    >>> cell_text(1234), cell_text(0.25), cell_text(1.5e-7), cell_text(math.inf), cell_text(None)
    ('1,234', '0.2500', '1.5e-07', 'infinite', '')
    """
    if isinstance(value, Interval):
        return interval_text(value, cell_text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "" if math.isnan(value) else f"{'-' * (value < 0)}infinite"
    return f"{value:,.4f}" if 0.001 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"
