"""What an evaluation yields for each text, and its form as a line of JSON.

Axes: T tokens of the text, M hidden positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.evaluation.row_values import (
    CHARACTERS,
    HIDDEN,
    LAST_ID,
    LAST_TOKEN,
    TOKENS,
    VOCABULARY,
    Count,
    Flag,
    Names,
    Number,
    Numbers,
    Sizes,
    Spans,
    Stored,
    String,
    Strings,
    Whole,
    said,
    sizes_of,
)
from fillmask_ui.masking import KINDS

# What part of its word a token is.
PARTS = ("whole word", "first sub-token", "later sub-token")
WHOLE, FIRST, LATER = range(3)
# Sums are kept for each id up to the largest that occurs.
MOST_VOCABULARY = 2**24


@dataclass(frozen=True, eq=False)
class TokenScores:
    """What one model says at the hidden positions of one text."""

    nll_nats: np.ndarray  # float64 [M], of the true token
    ranks: np.ndarray  # int64 [M], of the true token, 1 for the best
    entropy_nats: np.ndarray  # float64 [M], of the distribution
    top_ids: np.ndarray  # int64 [M], the most probable token
    top_probabilities: np.ndarray  # float64 [M], its probability
    top_tokens: tuple[str, ...] = ()  # M vocabulary strings of `top_ids`


@dataclass(frozen=True, eq=False, kw_only=True)
class UnmaskedScores(TokenScores):
    """The same of a text that the model filled step by step, each token at its own step."""

    steps: np.ndarray  # int64 [M], number of the step that wrote it, from 1
    written_ids: np.ndarray  # int64 [M], the token that was written
    written_probabilities: np.ndarray  # float64 [M], its probability
    written_tokens: tuple[str, ...]  # M vocabulary strings of `written_ids`
    pseudo_perplexity: float  # of the finished text


@dataclass(frozen=True, eq=False)
class LogitDifference:
    """How far two models with one vocabulary are apart at the hidden positions of one text."""

    kl_nats: np.ndarray  # float64 [M], KL(model || baseline)
    kl_reverse_nats: np.ndarray  # float64 [M], KL(baseline || model)
    mean_abs: np.ndarray  # float64 [M], mean |difference| of the logits over the vocabulary
    max_abs: np.ndarray  # float64 [M], largest |difference| of the logits


@dataclass(frozen=True, eq=False)
class MaskedText:
    """One text and what is hidden of it."""

    id: int  # of the example
    text: str  # as far as it was measured; masks written as the model's mask token
    # Of the whole text (blanks inside counted) where each token is hidden once, else of the hidden.
    characters: int
    truncated: bool  # whether the text was longer than the model takes
    left_out: int  # tokens that cannot be hidden: unknown words, special tokens that stand in it
    can_hide: int  # tokens that can be hidden, M or more
    ids: np.ndarray  # int64 [T]
    cols: np.ndarray  # int64 [M], hidden positions
    tokens: tuple[str, ...]  # M vocabulary strings of the tokens to be found
    kinds: np.ndarray  # uint8 [M], index into `masking.KINDS`.
    shown_ids: np.ndarray  # int64 [M], what the model saw there
    parts: np.ndarray  # uint8 [M], index into `PARTS`
    spans: np.ndarray  # int64 [M, 2], characters of `text` that each hidden token stands for

    @property
    def true_ids(self) -> np.ndarray:
        """int64 [M], the tokens to be found."""
        return self.ids[self.cols]


@dataclass(frozen=True, eq=False)
class EvaluatedText(MaskedText):
    """One text, measured."""

    scores: TokenScores  # of the model
    baseline: TokenScores | None = None  # of a second model with the same tokenizer
    difference: LogitDifference | None = None  # between the two
    other: EvaluatedText | None = None  # of a second model with another tokenizer
    metric: str = ""  # that it was measured by; blank of a stored row

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; floats keep every digit."""
        own = {name: getattr(self, name) for name in MaskedText.__dataclass_fields__}
        row = _plain(own | vars(self.scores))
        row["kinds"] = [KINDS[kind] for kind in self.kinds]
        for name, record in (("baseline", self.baseline), ("difference", self.difference)):
            if record is not None:
                row[name] = _plain(vars(record))
        if self.other is not None:
            row["other"] = self.other.to_dict()
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], stored: StoredModels | None = None) -> EvaluatedText:
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
            return cls(**own, scores=scores)
        second = {**sizes, VOCABULARY: stored.baseline, LAST_ID: stored.baseline - 1}
        if "other" in row:
            values = _object(row, "other")
            other, sizes = _masked(values, stored.baseline, "other.")
            alone = cls(**other, scores=_scores(values, sizes, unmasked, "other."))
            return cls(**own, scores=scores, other=alone)
        baseline = _scores(_object(row, "baseline"), second, unmasked, "baseline.")
        difference = None
        if "difference" in row:
            values = _read(LogitDifference, _object(row, "difference"), sizes, "difference.")
            difference = LogitDifference(**values)
        return cls(**own, scores=scores, baseline=baseline, difference=difference)


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
    own = _read(MaskedText, {"can_hide": sizes[HIDDEN]} | {**row}, sizes, within)
    if "can_hide" not in row:
        # Older rows lack it; the tokenizers of all tested families add a token at each end.
        own["can_hide"] = max(sizes[HIDDEN], sizes[TOKENS] - own["left_out"] - 2)
    return own, sizes


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
        "can_hide": Count(TOKENS, least=HIDDEN),
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


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a record as JSON has them."""
    return {
        _KEYS.get(name, name): value.tolist()
        if isinstance(value, np.ndarray)
        else [*value]
        if isinstance(value, tuple)
        else value
        for name, value in values.items()
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
