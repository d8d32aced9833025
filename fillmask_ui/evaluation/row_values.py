"""What a stored row has to hold, field by field: JSON that others may have altered becomes arrays.

Axes: T tokens of the text, M hidden positions, V vocabulary.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from operator import le
from typing import Any

import numpy as np

# Logits are float32, so a loss that is larger is infinite.
MOST_NATS = 1e39
# How far a number may be out of its bounds by rounding.
_ROUNDING = 1e-6
# A bound of a field that depends on the row, by its name in `Sizes`.
TOKENS, HIDDEN, CHARACTERS, VOCABULARY = "tokens", "hidden", "characters", "vocabulary"
LAST_TOKEN, LAST_ID = "last token", "last id"
Sizes = Mapping[str, int]
_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def sizes_of(text: str, tokens: int, hidden: int, vocabulary: int) -> Sizes:
    """The bounds of a row's fields: characters of its text, T, M and V."""
    return {
        CHARACTERS: len(text),
        TOKENS: tokens,
        HIDDEN: hidden,
        VOCABULARY: vocabulary,
        LAST_TOKEN: tokens - 1,
        LAST_ID: vocabulary - 1,
    }


@dataclass(frozen=True)
class Stored(ABC):
    """One field; `kind` is the type of its value in JSON, or of each entry of its list."""

    kind: type
    least: float = 0
    most: float | str = math.inf  # of numbers; a name is one of `Sizes`
    infinite: bool = False  # whether infinity fits beyond `most`

    def read(self, name: str, value: Any, sizes: Sizes) -> Any:
        """The value as a record has it; a `ValueError` that says what it must be."""
        if not self._fits(value, sizes):
            raise ValueError(f"{name} must be {self._wanted(sizes)}, it was {self._was(value, sizes)}")
        return self._made(value)

    @abstractmethod
    def _fits(self, value: Any, sizes: Sizes) -> bool: ...

    @abstractmethod
    def _wanted(self, sizes: Sizes) -> str: ...

    def _was(self, value: Any, sizes: Sizes) -> str:
        return said(value)

    def _made(self, value: Any) -> Any:
        return value

    def _all_fit(self, values: list[Any], sizes: Sizes) -> bool:
        """Whether each of one value or more is of the kind and in its bounds."""
        kinds = {*map(type, values)}
        if self.kind not in (int, float):
            return kinds == {self.kind}
        if not kinds <= ({int} if self.kind is int else {int, float}):
            return False
        most = sizes[self.most] if isinstance(self.most, str) else self.most
        if self.kind is int:
            return bool(self.least <= min(values) and max(values) <= most)
        if not self.least - _ROUNDING <= min(values):  # nor where the first is NaN
            return False
        if max(values) > most + _ROUNDING:
            finite = [value for value in values if value != math.inf]
            if not self.infinite or max(finite, default=0) > most:
                return False
        return not math.isnan(sum(values))

    def _bounds(self, sizes: Sizes) -> str:
        if self.kind not in (int, float):
            return ""
        most = sizes[self.most] if isinstance(self.most, str) else self.most
        return f" from {self.least:g}" + (f" to {most:,}" if most < MOST_NATS else "")


class Value(Stored):
    """A single value."""

    def _fits(self, value: Any, sizes: Sizes) -> bool:
        return self._all_fit([value], sizes)

    def _wanted(self, sizes: Sizes) -> str:
        article = "" if self.kind is bool else "a "
        return f"{article}{_WORDS[self.kind]}{self._bounds(sizes)}"


@dataclass(frozen=True)
class Values(Stored):
    """A list, which becomes an array, or a tuple of strings."""

    count: str = HIDDEN  # length of the list, one of `Sizes`
    names: tuple[str, ...] = ()  # of strings that stand for their places here
    dtype: Any = None  # of the array; that of the kind if None

    def _fits(self, value: Any, sizes: Sizes) -> bool:
        return (
            type(value) is list
            and len(value) == sizes[self.count] > 0
            and self._all_fit(value, sizes)
            and (not self.names or {*value} <= {*self.names})
        )

    def _wanted(self, sizes: Sizes) -> str:
        return f"a list of {sizes[self.count] or 'one or more'} {self._entries(sizes)}"

    def _entries(self, sizes: Sizes) -> str:
        if self.names:
            return f"of {', '.join(self.names)}"
        return f"{_WORDS[self.kind]}s{self._bounds(sizes)}"

    def _was(self, value: Any, sizes: Sizes) -> str:
        if type(value) is not list or len(value) != sizes[self.count]:
            return said(value)
        one = {**sizes, self.count: 1}
        wrong = next((entry for entry in value if not self._fits([entry], one)), None)
        return f"a list with {said(wrong)}"

    def _made(self, value: Any) -> Any:
        if self.names:
            return np.array([self.names.index(name) for name in value], np.uint8)
        return tuple(value) if self.kind is str else np.array(value, self.dtype or self.kind)


class Spans(Values):
    """Pairs of whole numbers, of which the first is not the larger."""

    def _fits(self, value: Any, sizes: Sizes) -> bool:
        if type(value) is not list or len(value) != sizes[self.count]:
            return False
        if {*map(type, value)} != {list} or {*map(len, value)} != {2}:
            return False
        ends = [*chain.from_iterable(value)]
        return self._all_fit(ends, sizes) and all(map(le, ends[::2], ends[1::2]))

    def _entries(self, sizes: Sizes) -> str:
        return f"pairs of a start and an end{self._bounds(sizes)}"


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
    shown = repr(value[:20] if isinstance(value, str) else value)
    return shown if len(shown) <= 24 else f"{shown[:10]}..."
