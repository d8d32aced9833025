"""How numbers are written for people; unrounded values stay in the records."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fillmask_ui.evaluation.catalogue import COUNT, LOSS, PERPLEXITY, RANK, SHARE, WORDS, Figure
from fillmask_ui.intervals import Interval

_FORMATS = {COUNT: ",", LOSS: ".4f", SHARE: ".4f", PERPLEXITY: ",.3f", RANK: ",.1f", WORDS: ""}


def figure_text(figure: Figure, record: object) -> str:
    """A figure of a record as its form is written; nothing where the record does not have it.

    >>> figure_text(Figure("real", "a share", SHARE), 0.25)
    '0.2500'
    """
    value = figure.value(record)
    return "" if value is None else format(value, _FORMATS[figure.form])


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

    >>> cell_text(1234), cell_text(0.25), cell_text(1.5e-7), cell_text(None)
    ('1,234', '0.2500', '1.5e-07', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    return f"{value:.4f}" if 0.001 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"
