"""What a stored row has to hold, field by field: JSON that others may have altered becomes arrays.

Axes: T tokens of the text, M hidden positions, V vocabulary.
"""

# Each kind of field is asked alike, whatever it makes of `sizes`.
# ruff: noqa: ARG002

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import le
from typing import Any

import numpy as np

# Logits are float32, so a loss that is larger is infinite.
MOST_NATS = 1e39
# How far a number may be out of its bounds by rounding.
ROUNDING = 1e-6
# A bound of a field that depends on the row, by its name in `Sizes`.
TOKENS, HIDDEN, CHARACTERS, VOCABULARY = "tokens", "hidden", "characters", "vocabulary"
LAST_TOKEN, LAST_ID = "last token", "last id"
Sizes = Mapping[Any, int]
_STRING, _WHOLE, _NUMBER = {str}, {int}, {int, float}


def sizes_of(characters: int, tokens: int, hidden: int, vocabulary: int) -> Sizes:
    """The bounds of a row's fields: characters of its text, T, M and V."""
    return {
        CHARACTERS: characters,
        TOKENS: tokens,
        HIDDEN: hidden,
        VOCABULARY: vocabulary,
        LAST_TOKEN: tokens - 1,
        LAST_ID: vocabulary - 1,
    }


@dataclass(frozen=True)
class Stored(ABC):
    """One field: what it must hold."""

    def wrong(self, name: str, value: Any, sizes: Sizes) -> ValueError:
        """What to say of a value that does not fit."""
        return ValueError(f"{name} must be {self.wanted(sizes)}, it was {self.was(value, sizes)}")

    @abstractmethod
    def fits(self, value: Any, sizes: Sizes) -> bool:
        """Whether a value of JSON is what it must be."""

    @abstractmethod
    def wanted(self, sizes: Sizes) -> str:
        """What it must be, in words."""

    def was(self, value: Any, sizes: Sizes) -> str:
        """What a value that does not fit is, in words."""
        return said(value)

    def made(self, value: Any) -> Any:
        """A value that fits as a record has it."""
        return value


@dataclass(frozen=True)
class Flag(Stored):
    """True or false."""

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return type(value) is bool

    def wanted(self, sizes: Sizes) -> str:
        return "true or false"


@dataclass(frozen=True)
class String(Stored):
    """Any text."""

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return type(value) is str

    def wanted(self, sizes: Sizes) -> str:
        return "a text"


@dataclass(frozen=True)
class Count(Stored):
    """A whole number that is not negative."""

    most: Any  # a number, or the name of one of `Sizes`
    least: Any = 0  # as `most`

    def fits(self, value: Any, sizes: Sizes) -> bool:
        least, most = self._bounds(sizes)
        return type(value) is int and least <= value <= most

    def wanted(self, sizes: Sizes) -> str:
        return "a whole number from {:,} to {:,}".format(*self._bounds(sizes))

    def _bounds(self, sizes: Sizes) -> tuple[int, int]:
        return sizes.get(self.least, self.least), sizes.get(self.most, self.most)


@dataclass(frozen=True)
class Values(Stored):
    """A list with an entry for each of something, at least one."""

    count: str = HIDDEN  # how many, one of `Sizes`

    def was(self, value: Any, sizes: Sizes) -> str:
        if type(value) is not list or len(value) != sizes[self.count]:
            return said(value)
        one = {**sizes, self.count: 1}
        wrong = next((entry for entry in value if not self.fits([entry], one)), value)
        return f"a list with {said(wrong)} in it"

    def wanted(self, sizes: Sizes) -> str:
        return f"a list of {sizes[self.count] or 'one or more'} {self.entries(sizes)}"

    @abstractmethod
    def entries(self, sizes: Sizes) -> str:
        """What each entry must be, in words, in the plural."""


# In the methods below each step is one call of C, since they run for each field of each row.
@dataclass(frozen=True)
class Strings(Values):
    """Any texts, as a tuple."""

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return (
            type(value) is list
            and len(value) == sizes[self.count] > 0
            and {*map(type, value)} == _STRING
        )

    def entries(self, sizes: Sizes) -> str:
        return "texts"

    def made(self, value: Any) -> Any:
        return tuple(value)


@dataclass(frozen=True)
class Names(Strings):
    """Some of a few names, as numbers."""

    places: Mapping[str, int] = field(default_factory=dict)  # name to number

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return (
            type(value) is list
            and len(value) == sizes[self.count] > 0
            and {*map(type, value)} == _STRING
            and {*value} <= self.places.keys()
        )

    def entries(self, sizes: Sizes) -> str:
        return f"of {', '.join(self.places)}"

    def made(self, value: Any) -> Any:
        return np.array([*map(self.places.__getitem__, value)], np.uint8)


@dataclass(frozen=True)
class Whole(Values):
    """Whole numbers, as an array."""

    least: int = 0
    most: Any = 0  # a number, or the name of one of `Sizes`
    dtype: type = np.int64

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return (
            type(value) is list
            and len(value) == sizes[self.count] > 0
            and {*map(type, value)} == _WHOLE
            and min(value) >= self.least
            and max(value) <= sizes.get(self.most, self.most)
        )

    def entries(self, sizes: Sizes) -> str:
        return f"whole numbers from {self.least} to {sizes.get(self.most, self.most):,}"

    def made(self, value: Any) -> Any:
        return np.array(value, self.dtype)


@dataclass(frozen=True)
class Spans(Whole):
    """Pairs of whole numbers, of which the first is not the larger: int64 [M, 2]."""

    def fits(self, value: Any, sizes: Sizes) -> bool:
        if type(value) is not list or len(value) != sizes[self.count]:
            return False
        if {*map(type, value)} != {list} or {*map(len, value)} != {2}:
            return False
        ends = [*chain.from_iterable(value)]
        return (
            {*map(type, ends)} == _WHOLE
            and min(ends) >= self.least
            and max(ends) <= sizes.get(self.most, self.most)
            and all(map(le, ends[::2], ends[1::2]))
        )

    def entries(self, sizes: Sizes) -> str:
        return f"pairs of a start and an end, {super().entries(sizes)}"


@dataclass(frozen=True)
class Numbers(Values):
    """Numbers of at least 0, as an array of float64."""

    most: float = MOST_NATS
    infinite: bool = False  # whether infinity fits beyond `most`

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return (
            type(value) is list
            and len(value) == sizes[self.count] > 0
            and {*map(type, value)} <= _NUMBER
            and min(value) >= -ROUNDING
            and (max(value) <= self.most + ROUNDING or self._only_infinite_beyond(value))
            # Not a number where one of them is none, which comparisons may pass over.
            and (total := sum(value)) == total
        )

    def _only_infinite_beyond(self, values: list[float]) -> bool:
        return self.infinite and all(value <= self.most or value == math.inf for value in values)

    def entries(self, sizes: Sizes) -> str:
        most = "" if self.most >= MOST_NATS else f" and at most {self.most:g}"
        return f"numbers of at least 0{most}"

    def made(self, value: Any) -> Any:
        return np.array(value, np.float64)


@dataclass(frozen=True)
class Number(Numbers):
    """One such number."""

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return super().fits([value], {self.count: 1})

    def wanted(self, sizes: Sizes) -> str:
        return "a number of at least 0"

    def was(self, value: Any, sizes: Sizes) -> str:
        return said(value)

    def made(self, value: Any) -> Any:
        return float(value)


def said(value: Any) -> str:
    """A value of JSON in a few words.

    >>> said(None), said([1, 2]), said({}), said("x"), said(10**30)
    ('null', 'a list of 2', 'an object', "'x'", '1000000000...')
    """
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value[:20] if isinstance(value, str) else value)
    return shown if len(shown) <= 24 else f"{shown[:10]}..."
