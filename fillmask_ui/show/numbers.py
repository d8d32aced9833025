"""Numbers as people read them; the records keep every digit."""

import math
from collections.abc import Callable
from typing import Any

from fillmask_ui.intervals import Interval


def interval_text(interval: Interval | None, render: Callable[[float], str]) -> str:
    """An interval; blank for None.

    >>> interval_text(Interval(0.011, 0.058, "bootstrap-t"), signed_percent)
    '+1.10% to +5.80%'
    """
    return "" if interval is None else f"{render(interval.low)} to {render(interval.high)}"


# Equal as printed is equal: a difference of which no digit is printed has no sign, no bar and no
# sentence, and an axis is at least so many times as long as the smallest difference printed.
_LEAST_STEPS = 50


def is_zero(value: float, digits: int) -> bool:
    """Whether a number is printed as zero with so many decimals.

    >>> is_zero(-0.004, 2), is_zero(0.006, 2), is_zero(math.nan, 2)
    (True, False, False)
    """
    return math.isfinite(value) and round(value, digits) == 0


def least_axis(digits: int) -> float:
    """The shortest axis of numbers that are printed with so many decimals."""
    return _LEAST_STEPS * 10.0**-digits


def signed(value: float, digits: int = 3) -> str:
    """A difference; zero as printed has no sign.

    >>> signed(0.0126), signed(-0.21784, 2), signed(-0.004, 2), signed(math.nan)
    ('+0.013', '−0.22', '0.00', 'unknown')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return f"{'−' if value < 0 else '+'}infinite"
    sign = "" if is_zero(value, digits) else "−" if value < 0 else "+"
    return f"{sign}{abs(value):,.{digits}f}"


def signed_percent(value: float) -> str:
    """A relative change.

    >>> signed_percent(0.0304), signed_percent(-0.00001), signed_percent(math.nan)
    ('+3.04%', '0.00%', 'unknown')
    """
    return signed(100 * value, 2) + "%" * math.isfinite(value)


_LEAST_PERCENT = 1e-6  # with digits of its own


def percent(probability: float) -> str:
    """A probability or another share.

    >>> percent(0.4127), percent(0.00034), percent(0.000056), percent(3.4e-8), percent(2e-9)
    ('41.3%', '0.034%', '0.0056%', '0.0000034%', '< 0.000001%')
    >>> percent(1), percent(0), percent(math.nan)
    ('100.0%', '0%', '')
    """
    value = 100 * probability
    if 0 < value < _LEAST_PERCENT:
        return f"< {_LEAST_PERCENT:.6f}%"
    if not value or math.isnan(value):
        return "0%" if value == 0 else ""
    # Two digits that count, one behind the point from 1% on.
    digits = 1 if value >= 1 else 1 - math.floor(math.log10(value))
    return f"{value:.{digits}f}%"


def in_unit(nats: float, unit: str) -> float:
    """Nats as `nats` or `bits`.

    >>> in_unit(math.log(8), "bits")
    3.0
    """
    return nats / math.log(2) if unit == "bits" else nats


def loss_form(unit: str, digits: int = 4) -> Callable[[float], str]:
    """The format of a column of losses in nats that is shown in `nats` or `bits`.

    >>> loss_form("bits")(math.log(8)), loss_form("nats", 2)(math.inf)
    ('3.0000', 'inf')
    """
    return lambda nats: f"{in_unit(nats, unit):.{digits}f}"


def loss_number(nats: float, unit: str) -> str:
    """A loss or an entropy in `nats` or `bits`, without the unit."""
    return f"{in_unit(nats, unit):,.3f}" if math.isfinite(nats) else "infinite"


def loss_text(nats: float, unit: str) -> str:
    """The same with its unit.

    >>> loss_text(math.log(8), "bits"), loss_text(0.5, "nats"), loss_text(math.inf, "nats")
    ('3.000 bits', '0.500 nats', 'infinite')
    """
    number = loss_number(nats, unit)
    return f"{number} {unit}" if math.isfinite(nats) else number


def signed_loss(nats: float, unit: str) -> str:
    """A difference of losses, without the unit.

    >>> signed_loss(-0.21784, "nats"), signed_loss(0.0001, "nats"), signed_loss(math.inf, "bits")
    ('−0.218', '0.000', '+infinite')
    """
    return signed(in_unit(nats, unit))


class Share(float):
    """A share of something, which tables write as a percentage."""


def cell_text(value: Any) -> str:
    """A cell of a table: whole numbers in full, others to four digits, blank for None.

    >>> cell_text(1234), cell_text(0.25), cell_text(1.5e-7), cell_text(math.inf), cell_text(None)
    ('1,234', '0.2500', '1.5e-07', 'infinite', '')
    >>> cell_text(Share(0.25)), cell_text(Share(-0.00001)), cell_text(-0.0), cell_text(-1.5)
    ('25.00%', '0.00%', '0.0000', '−1.5000')
    """
    if isinstance(value, Interval):
        return interval_text(value, cell_text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    if math.isnan(value):
        return ""
    if isinstance(value, Share):
        text = f"{round(value, 4) + 0.0:.2%}"
    elif isinstance(value, int):
        text = f"{value:,}"
    elif math.isinf(value):
        text = "infinite" if value > 0 else "-infinite"
    elif 0.001 <= abs(value) < 1e6 or value == 0:
        text = f"{value + 0.0:,.4f}"
    else:
        text = f"{value:.4g}"
    return with_minus(text)


def with_minus(number: str) -> str:
    """A formatted number with a true minus sign; that of an exponent stays.

    >>> with_minus("-1.5e-07")
    '−1.5e-07'
    """
    return f"−{number[1:]}" if number.startswith("-") else number


def cosine_text(cosine: float | None) -> str:
    """A similarity.

    >>> cosine_text(0.857), cosine_text(-0.0002), cosine_text(None)
    ('0.86', '0.00', '–')
    """
    return "–" if cosine is None else f"{round(cosine, 2) + 0.0:.2f}"


def three_digits(value: float | None) -> str:
    """A measured figure of any size; blank for None.

    >>> three_digits(3195.4), three_digits(32.68), three_digits(4.0316), three_digits(0.95)
    ('3,195', '32.7', '4.03', '0.950')
    """
    if value is None:
        return ""
    digits = next((n for n, least in enumerate((100, 10, 1)) if abs(value) >= least), 3)
    return f"{value:,.{digits}f}"


def grouped(value: float, digits: int = 0) -> str:
    """A number with commas between its thousands.

    >>> grouped(22400), grouped(1234.56, 1)
    ('22,400', '1,234.6')
    """
    return f"{value:,.{digits}f}"


def general(value: float) -> str:
    """A number of people or percents, whole or not.

    >>> general(1200.0), general(100 / 3)
    ('1,200', '33.3333')
    """
    return f"{float(f'{value:.6g}'):,.10g}"


def duration(seconds: float) -> str:
    """A time left.

    >>> duration(3.2), duration(75), duration(7300)
    ('about 4 s', 'about 2 min', 'about 2 h 2 min')
    """
    if seconds < 60:
        return f"about {math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"about {minutes} min" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min"
