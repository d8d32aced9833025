"""The two charts of the modes: rows of bars beside their words, and columns along a sentence."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fillmask_ui.records import ROLES
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.numbers import is_zero, least_axis, percent

# Beyond the ends of a fitted axis, for the numbers at the ends of the bars.
_ROOM = 0.2


class Tick(NamedTuple):
    """A number on an axis."""

    label: str
    share: float  # of the axis, in [0, 1]


class Mark(NamedTuple):
    """One bar from zero, in shares of the axis, and the number at its end."""

    role: str  # `reference` or `candidate`, or `rest`
    start: float
    size: float
    text: str
    below: bool  # whether it grows from zero to the left
    cut: bool = False  # whether it is longer than the axis


class Cell(NamedTuple):
    """A number behind the bars."""

    text: str
    quiet: bool = False  # whether it says little


class BarRow(NamedTuple):
    """A word with its bars and numbers."""

    name: str
    marks: tuple[Mark, ...]
    cells: tuple[Cell, ...] = ()  # a column each
    key: str = ""  # what a click does; blank for nothing
    title: str = ""  # says what a click does
    pressed: bool = False
    truth: bool = False  # whether it is the hidden word
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Axis:
    """The axis of rows."""

    scale: Scale  # from 0 to 1 across the axis
    unit: str
    signed: bool = False
    digits: int | None = None  # decimals that the numbers are printed with; None for counts

    @classmethod
    def shares(cls, zoom: int = 1) -> "Axis":
        """From 0 to 100%, or magnified."""
        return cls(Scale(0.0, 100.0 / zoom, 0.0, 1.0), "%")

    @classmethod
    def fitted(
        cls, values: Iterable[float], unit: str, *, signed: bool = False, digits: int | None = None
    ) -> "Axis":
        """As long as the values are, zero included, and never shorter than `least_axis`.

        >>> Axis.fitted([0.00001], "nats", digits=2).mark(0.00001, "candidate", "0.00").size
        0.0
        """
        values = [0.0, *filter(math.isfinite, values)]
        low, high = min(values), max(values)
        missing = 0.0 if digits is None else max(0.0, least_axis(digits) - (high - low))
        if signed:
            low, high = low - missing / 2, high + missing / 2
        else:
            high += missing
        room = _ROOM * ((high - low) or 1.0)
        return cls(Scale(low - room * (low < 0), high + room, 0.0, 1.0), unit, signed, digits)

    @property
    def zero(self) -> float:
        return self.scale(0.0)

    def mark(self, value: float, role: str, text: str) -> Mark:
        if self.digits is not None and is_zero(value, self.digits):
            value = 0.0
        tip, beyond = self.scale(value), not self.scale.low <= value <= self.scale.high
        return Mark(role, min(self.zero, tip), abs(tip - self.zero), text, value < 0, beyond)

    def pair(
        self, probabilities: Sequence[float | None], roles: Sequence[str] = ROLES
    ) -> tuple[Mark, ...]:
        """The bars of reference and candidate on an axis of shares; None has none."""
        return tuple(
            self.mark(100 * probability, role, percent(probability))
            for role, probability in zip(roles, probabilities, strict=True)
            if probability is not None
        )

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Round numbers along the axis, the first with the unit.

        >>> [tick.label for tick in Axis.shares().ticks]
        ['0%', '20', '40', '60', '80', '100']
        >>> [tick.label for tick in Axis.fitted([-1.2, 0.3], "points", signed=True).ticks]
        ['−1.5 points', '−1', '−0.5', '0', '+0.5']
        """
        numbers, sign = self.scale.ticks(5), "+" if self.signed else ""
        labels = [(f"{number:{sign}g}" if number else "0").replace("-", "−") for number in numbers]
        labels[0] += "%" if self.unit == "%" else f" {self.unit}"
        shares = [self.scale(number) for number in numbers]
        return tuple(Tick(label, share) for label, share in zip(labels, shares, strict=True))


class WordColumn(NamedTuple):
    """One word along a sentence."""

    word: str
    value: float  # in the reader's unit
    text: str  # the value in few digits
    below: str  # what stands below the word
    level: int = 0  # of its tint
    role: str = ""  # `reference` or `candidate` where it is a difference


@dataclass(frozen=True)
class WordColumns:
    """The words of a sentence as columns over an axis of percents of the height."""

    columns: tuple[tuple[WordColumn, Mark], ...]
    ticks: tuple[Tick, ...]
    zero: float

    @classmethod
    def of(cls, columns: Sequence[WordColumn], unit: str) -> "WordColumns | None":
        """None without a word; an infinite value reaches the end of the axis."""
        if not columns:
            return None
        values = [column.value for column in columns]
        signed = any(column.role for column in columns)
        axis = Axis.fitted(values, unit, signed=signed, digits=2)
        marks = [axis.mark(column.value, column.role, column.text) for column in columns]
        *ticks, last = (tick._replace(label=tick.label.split()[0]) for tick in axis.ticks)
        last = last._replace(label=f"{last.label} {unit}")
        return cls(tuple(zip(columns, marks, strict=True)), (*ticks, last), axis.zero)


def short(value: float) -> str:
    """A number on a column.

    >>> short(29.44), short(0.031), short(-0.31), short(-0.001), short(math.inf)
    ('29.4', '0.03', '−0.31', '0', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "?"
    text = f"{value:.{1 if abs(value) >= 1 else 2}f}"
    return "0" if is_zero(value, 2) else text.replace("-", "−")
