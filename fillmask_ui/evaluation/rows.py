"""What an evaluation yields for each text, and its form as a line of JSON.

Axes: T tokens of the text, M hidden positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fillmask_ui.masking import KINDS

# What part of its word a token is.
PARTS = ("whole word", "first sub-token", "later sub-token")
WHOLE, FIRST, LATER = range(3)


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
    def from_dict(cls, row: Mapping[str, Any]) -> EvaluatedText:
        """The inverse of `to_dict`."""
        kinds = [KINDS.index(kind) for kind in row["kinds"]]
        values = _values(MaskedText, {**row, "kinds": kinds})
        values["scores"] = _scores(row)
        values["baseline"] = _scores(row["baseline"]) if "baseline" in row else None
        if "difference" in row:
            values["difference"] = LogitDifference(**_values(LogitDifference, row["difference"]))
        other = cls.from_dict(row["other"]) if "other" in row else None
        return cls(**values, other=other)


def _scores(row: Mapping[str, Any]) -> TokenScores:
    kind = UnmaskedScores if "written_ids" in row else TokenScores
    return kind(**_values(kind, row))


_KEYS = {"cols": "positions"}  # in JSON, where it is not the name of the field
_TYPES = {
    **dict.fromkeys(("ids", "cols", "shown_ids", "spans", "ranks", "top_ids"), np.int64),
    **dict.fromkeys(("steps", "written_ids"), np.int64),
    **dict.fromkeys(("kinds", "parts"), np.uint8),
}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a record as JSON has them."""
    return {
        _KEYS.get(name, name): value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def _values(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a record from JSON, the inverse of `_plain`."""
    values = {}
    for entry in fields(kind):
        value = row[_KEYS.get(entry.name, entry.name)]
        if entry.type == "np.ndarray":
            value = np.array(value, _TYPES.get(entry.name, np.float64))
        values[entry.name] = tuple(value) if isinstance(value, list) else value
    return values
