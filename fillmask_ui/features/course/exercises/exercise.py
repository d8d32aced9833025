"""Exercises with their numbers: each checks a response and explains its answer.

A response is text, as the page sends it: for `Numeric` a number with a decimal point or comma, for
`Choice` the index of an option, for `Ordering` the indexes of all items in the reader's order, with
commas between. Indexes start at 0.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

_NUMBER = re.compile(r"([+-]?\d*[.,]?\d*) ?(?:nats?|bits?|%)?")


@dataclass(frozen=True)
class Feedback:
    """What a reader is told of a response."""

    right: bool | None  # None: the response could not be read and does not count
    text: str


@dataclass(frozen=True, kw_only=True)
class BaseExercise:
    """What all exercises have, beside a `solution` in words and a `check`."""

    kind: ClassVar[str]
    text: str
    explanation: str  # a worked solution, in lines
    table: tuple[tuple[str, ...], ...] = ()  # rows of cells, the headings first


@dataclass(frozen=True)
class Slip:
    """A number that a common mistake gives."""

    value: float  # in the unit of the answer
    text: str  # what went wrong


@dataclass(frozen=True, kw_only=True)
class Numeric(BaseExercise):
    """Asks for a number."""

    kind: ClassVar[str] = "numeric"
    answer: float
    unit: str = ""
    decimals: int = 2  # that are enough; an answer may be off by one in the last of them
    slips: tuple[Slip, ...] = ()

    @property
    def refuses_slips(self) -> bool:
        """Whether no slip passes for the answer, even when rounded to `decimals`."""
        far = 1.5 * 10.0**-self.decimals + 1e-9  # rounding moves a number by half of the tolerance
        return all(abs(slip.value - self.answer) > far for slip in self.slips)

    @property
    def solution(self) -> str:
        space = "" if self.unit == "%" else " "
        return f"{written(self.answer, self.decimals + 1)}{space}{self.unit}".strip()

    def check(self, response: str) -> Feedback:
        number = read_number(response)
        if number is None and not response.strip():
            return Feedback(None, "Type a number such as 1.25 or 1,25.")
        if number is None:
            text = f"“{response[:40]}” is not a number. Type one such as 1.25 or 1,25."
            return Feedback(None, text)
        if self._meets(number, self.answer):
            return Feedback(True, f"Right: {self.solution}.")
        # Two mistakes may give nearly the same number.
        slip = min(self.slips, key=lambda slip: abs(number - slip.value), default=None)
        if slip is not None and self._meets(number, slip.value):
            return Feedback(False, f"Not yet. {slip.text}")
        size = "small" if number < self.answer else "large"
        return Feedback(False, f"Not yet: {response.strip()} is too {size}.")

    def _meets(self, number: float, expected: float) -> bool:
        return abs(number - expected) <= 10.0**-self.decimals + 1e-9


@dataclass(frozen=True)
class ChoiceOption:
    """One of the answers to choose from."""

    text: str
    why: str = ""  # it is wrong


@dataclass(frozen=True, kw_only=True)
class Choice(BaseExercise):
    """Asks for one of several options."""

    kind: ClassVar[str] = "choice"
    options: tuple[ChoiceOption, ...]
    right: int  # index of the right one

    @property
    def solution(self) -> str:
        return self.options[self.right].text

    def check(self, response: str) -> Feedback:
        if response not in map(str, range(len(self.options))):
            return Feedback(None, "Choose one of the answers.")
        chosen = self.options[int(response)]
        if int(response) == self.right:
            return Feedback(True, f"Right: {chosen.text}")
        return Feedback(False, f"Not yet. {chosen.why}".strip())


@dataclass(frozen=True)
class Item:
    """One of the things to be put in order."""

    name: str
    text: str  # what is known of it
    value: float  # decides the order; no two items share one
    note: str  # that value in words


@dataclass(frozen=True, kw_only=True)
class Ordering(BaseExercise):
    """Asks for the order of all items, the smallest value first."""

    kind: ClassVar[str] = "ordering"
    items: tuple[Item, ...]  # as first shown

    @property
    def order(self) -> tuple[int, ...]:
        """Indexes of the items in the right order."""
        return tuple(sorted(range(len(self.items)), key=lambda index: self.items[index].value))

    @property
    def solution(self) -> str:
        return " → ".join(self.items[index].name for index in self.order)

    def check(self, response: str) -> Feedback:
        indexes = response.split(",")
        if sorted(indexes) != [str(index) for index in range(len(self.items))]:
            return Feedback(None, "Put all of them in order.")
        ordered = [self.items[int(index)] for index in indexes]
        for before, after in pairwise(ordered):
            if before.value > after.value:
                reason = f"{before.name} ({before.note}) comes before {after.name} ({after.note})."
                return Feedback(False, f"Not yet. {reason}")
        return Feedback(True, f"Right: {self.solution}")


Exercise = Numeric | Choice | Ordering


def read_number(response: str) -> float | None:
    """A number with a decimal point or comma and perhaps its unit; None for anything else.

    >>> read_number(" 1,25 "), read_number("−0.5 nats"), read_number("12 %"), read_number("ln 2")
    (1.25, -0.5, 12.0, None)
    """
    match = _NUMBER.fullmatch(response.strip().replace("−", "-"))
    try:
        return float(match[1].replace(",", ".")) if match else None
    except ValueError:  # only a sign or a point
        return None


def written(number: float, decimals: int | None = None) -> str:
    """A number with a true minus, by default with as many decimals as it needs.

    >>> written(-0.25), written(-0.0001, 3), written(20.0)
    ('−0.25', '0.000', '20')
    """
    text = format(number, "g" if decimals is None else f".{decimals}f")
    if not text.strip("-0."):
        text = text.lstrip("-")
    return text.replace("-", "−")
