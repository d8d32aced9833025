"""How earlier versions read the rows and run.json of a stored run.

Axes: T tokens of the text, M hidden positions, V vocabulary.
"""

# Each kind of field is asked alike, whatever it makes of `sizes`.

from __future__ import annotations

import json
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

    def fits(self, value: Any, sizes: Sizes) -> bool:
        return type(value) is int and 0 <= value <= sizes.get(self.most, self.most)

    def wanted(self, sizes: Sizes) -> str:
        return f"a whole number from 0 to {sizes.get(self.most, self.most):,}"


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


from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.rows import *  # noqa: F403
from fillmask_ui.evaluation.rows import (
    KINDS,
    LATER,
    MOST_VOCABULARY,
    EvaluatedText,
    LogitDifference,
    MaskedText,
    TokenScores,
    UnmaskedScores,
)
from fillmask_ui.intervals import Limits
from fillmask_ui.records import SkippedText
from fillmask_ui.runs.info import RunInfo


@dataclass(frozen=True)
class StoredModels:
    """Which models made stored rows."""

    second: bool  # whether there are two
    vocabulary: int = MOST_VOCABULARY  # V
    baseline: int = MOST_VOCABULARY  # V of the second
    unmasked: bool | None = None  # whether texts were filled step by step; None: the row says it


def _masked(
    row: Mapping[str, Any], vocabulary: int, within: str = ""
) -> tuple[dict[str, Any], Sizes]:
    """The fields of `MaskedText`, and the bounds of all others."""
    text, ids, cols = row.get("text"), row.get("ids"), row.get("positions")
    sizes = sizes_of(
        len(text) if isinstance(text, str) else 0,
        len(ids) if isinstance(ids, list) else 0,
        len(cols) if isinstance(cols, list) else 0,
        vocabulary,
    )
    return _read(MaskedText, row, sizes, within), sizes


def _scores(row: Mapping[str, Any], sizes: Sizes, unmasked: bool, within: str = "") -> TokenScores:
    kind = UnmaskedScores if unmasked else TokenScores
    return kind(**_read(kind, row, sizes, within))


def _object(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if not isinstance(row[key], dict):
        raise ValueError(f"{key} must be an object, it was {said(row[key])}")
    found: Mapping[str, Any] = row[key]
    return found


_KEYS = {"cols": "positions"}  # in JSON, where it is not the name of the field
_SCORES: dict[str, Stored] = {
    "nll_nats": Numbers(infinite=True),
    "ranks": Whole(least=1, most=VOCABULARY),
    "entropy_nats": Numbers(most=1e3),
    "top_ids": Whole(most=LAST_ID),
    "top_probabilities": Numbers(most=1),
    "top_tokens": Strings(),
}
_WRITTEN: dict[str, Stored] = {
    "steps": Whole(least=1, most=2**31),
    "written_ids": Whole(most=LAST_ID),
    "written_probabilities": Numbers(most=1),
    "written_tokens": Strings(),
    # e^ of a loss, which is infinite from e^700 on.
    "pseudo_perplexity": Number(most=1e304, infinite=True),
}
# How JSON has the fields of each record.
_FIELDS: dict[type, dict[str, Stored]] = {
    MaskedText: {
        "id": Count(2**63 - 1),
        "text": String(),
        "characters": Count(CHARACTERS),
        "truncated": Flag(),
        "left_out": Count(TOKENS),
        "ids": Whole(TOKENS, most=LAST_ID),
        "cols": Whole(most=LAST_TOKEN),
        "tokens": Strings(),
        "kinds": Names(places={name: index for index, name in enumerate(KINDS)}),
        "shown_ids": Whole(most=LAST_ID),
        "parts": Whole(most=LATER, dtype=np.uint8),
        "spans": Spans(most=CHARACTERS),
    },
    TokenScores: _SCORES,
    UnmaskedScores: _SCORES | _WRITTEN,
    LogitDifference: dict.fromkeys(
        ("kl_nats", "kl_reverse_nats", "mean_abs", "max_abs"), Numbers(infinite=True)
    ),
}


# The same with the name in JSON of each, and its two functions looked up.
_READERS = {
    kind: [
        (name, _KEYS.get(name, name), stored, stored.fits, stored.made)
        for name, stored in known.items()
    ]
    for kind, known in _FIELDS.items()
}


def _read(kind: type, row: Mapping[str, Any], sizes: Sizes, within: str = "") -> dict[str, Any]:
    """Fields of a record from JSON, the inverse of `_plain`; `within` is the path of the row."""
    values = {}
    for name, key, stored, fits, made in _READERS[kind]:
        if key not in row:
            raise ValueError(f"{within}{key} is missing")
        value = row[key]
        if not fits(value, sizes):
            raise stored.wrong(within + key, value, sizes)
        values[name] = made(value)
    return values


def from_dict(row: Mapping[str, Any], stored: StoredModels | None = None) -> EvaluatedText:
    """The inverse of `to_dict`; `stored` says which models made the row, where that is known.

    Raises:
        ValueError: if a field is missing, of another kind or length, or out of its bounds; the
            message says what it must be.
    """
    stored = stored or StoredModels(second="baseline" in row or "other" in row)
    unmasked = "written_ids" in row if stored.unmasked is None else stored.unmasked
    if not unmasked and "written_ids" in row:
        raise ValueError("it has written_ids, and the run filled nothing step by step")
    own, sizes = _masked(row, stored.vocabulary)
    scores = _scores(row, sizes, unmasked)
    if ("baseline" in row) + ("other" in row) != stored.second:
        wanted = "a baseline, or other in its place," if stored.second else "no baseline"
        raise ValueError(f"it must have {wanted} as the run does")
    if not stored.second:
        return EvaluatedText(**own, scores=scores)
    second = {**sizes, VOCABULARY: stored.baseline, LAST_ID: stored.baseline - 1}
    if "other" in row:
        values = _object(row, "other")
        other, sizes = _masked(values, stored.baseline, "other.")
        alone = EvaluatedText(**other, scores=_scores(values, sizes, unmasked, "other."))
        return EvaluatedText(**own, scores=scores, other=alone)
    baseline = _scores(_object(row, "baseline"), second, unmasked, "baseline.")
    difference = None
    if "difference" in row:
        values = _read(LogitDifference, _object(row, "difference"), sizes, "difference.")
        difference = LogitDifference(**values)
    return EvaluatedText(**own, scores=scores, baseline=baseline, difference=difference)


def read_line(content):
    """The row and the checksum of a line."""
    values = json.loads(content)
    if "skipped" in values:
        return SkippedText(values["id"], values["skipped"]), values["checksum"]
    return from_dict(values), values["checksum"]


def read_info(folder):
    """run.json."""
    values = json.loads((folder / "run.json").read_bytes())
    config = EvaluationConfig.from_dict({**values["config"], "protocol": values["protocol"]})
    names = ("created", "model", "baseline", "texts", "choices", "versions", "state", "error")
    stored = {name: values[name] for name in names}
    return RunInfo(
        folder.name,
        **stored,
        config=config,
        result=values["result"],
        limits=Limits(**values["limits"]),
        notes=tuple(values["notes"]),
        engines=tuple(values.get("engines", ())),
        cell=values.get("cell", {}),
    )
