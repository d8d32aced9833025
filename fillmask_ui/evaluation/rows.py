"""What an evaluation yields for each text, and its form as a line of JSON.

Axes: T tokens of the text, M hidden positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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


@dataclass(frozen=True, eq=False)
class LogitDifference:
    """How far two models with one vocabulary are apart at the hidden positions of one text."""

    kl_nats: np.ndarray  # float64 [M], KL(model || baseline)
    kl_reverse_nats: np.ndarray  # float64 [M], KL(baseline || model)
    mean_abs: np.ndarray  # float64 [M], mean |difference| of the logits over the vocabulary
    max_abs: np.ndarray  # float64 [M], largest |difference| of the logits


@dataclass(frozen=True, eq=False)
class EvaluatedText:
    """One text, measured."""

    id: int  # of the example
    text: str  # as far as it was measured; masks written as the model's mask token
    # that the scored tokens stand for: of the whole text (blanks inside counted) where each token
    # is hidden once, else of the hidden tokens
    characters: int
    truncated: bool  # whether the text was longer than the model takes
    # tokens of the text that cannot be hidden: unknown words, masks and other special tokens that
    # stand in it
    left_out: int
    ids: np.ndarray  # int64 [T]
    cols: np.ndarray  # int64 [M], hidden positions
    tokens: tuple[str, ...]  # M vocabulary strings of the tokens to be found
    kinds: np.ndarray  # uint8 [M], index into `masking.KINDS`.
    shown_ids: np.ndarray  # int64 [M], what the model saw there
    parts: np.ndarray  # uint8 [M], index into `PARTS`
    spans: np.ndarray  # int64 [M, 2], characters of `text` that each hidden token stands for
    scores: TokenScores  # of the model
    # of the second model, at the same positions; None without one
    baseline: TokenScores | None = None
    difference: LogitDifference | None = None  # between the two; None without a second model
    # the second model's own row where its tokenizer is another one
    other: EvaluatedText | None = None

    @property
    def true_ids(self) -> np.ndarray:
        """int64 [M], the tokens to be found."""
        return self.ids[self.cols]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; floats keep every digit."""
        row = {
            "id": self.id,
            "text": self.text,
            "characters": self.characters,
            "truncated": self.truncated,
            "left_out": self.left_out,
            "ids": self.ids.tolist(),
            "positions": self.cols.tolist(),
            "tokens": list(self.tokens),
            "kinds": [KINDS[kind] for kind in self.kinds],
            "shown_ids": self.shown_ids.tolist(),
            "parts": self.parts.tolist(),
            "spans": self.spans.tolist(),
            **_lists(self.scores),
        }
        if self.baseline is not None:
            row["baseline"] = _lists(self.baseline)
        if self.difference is not None:
            row["difference"] = _lists(self.difference)
        if self.other is not None:
            row["other"] = self.other.to_dict()
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> EvaluatedText:
        """The inverse of `to_dict`."""
        return cls(
            id=row["id"],
            text=row["text"],
            characters=row["characters"],
            truncated=row["truncated"],
            left_out=row["left_out"],
            ids=np.array(row["ids"], np.int64),
            cols=np.array(row["positions"], np.int64),
            tokens=tuple(row["tokens"]),
            kinds=np.array([KINDS.index(kind) for kind in row["kinds"]], np.uint8),
            shown_ids=np.array(row["shown_ids"], np.int64),
            parts=np.array(row["parts"], np.uint8),
            spans=np.array(row["spans"], np.int64).reshape(-1, 2),
            scores=_scores(TokenScores, row),
            baseline=_scores(TokenScores, row["baseline"]) if "baseline" in row else None,
            difference=_scores(LogitDifference, row["difference"]) if "difference" in row else None,
            other=cls.from_dict(row["other"]) if "other" in row else None,
        )


_WHOLE_NUMBERS = ("ranks", "top_ids")
_STRINGS = "top_tokens"
Record = TypeVar("Record", bound="TokenScores | LogitDifference")


def take(record: Record, places: slice | np.ndarray) -> Record:
    """The record of some of its positions."""
    taken: dict[str, Any] = {name: values[places] for name, values in _arrays(record).items()}
    return replace(record, **taken)


def join(records: Sequence[Record]) -> Record:
    """The records of several stretches of positions as one."""
    columns = [_arrays(record) for record in records]
    joined: dict[str, Any] = {
        name: np.concatenate([each[name] for each in columns]) for name in columns[0]
    }
    return replace(records[0], **joined)


def _arrays(record: TokenScores | LogitDifference) -> dict[str, np.ndarray]:
    return {name: values for name, values in vars(record).items() if name != _STRINGS}


def _lists(record: TokenScores | LogitDifference) -> dict[str, list]:
    return {
        name: list(values) if name == _STRINGS else values.tolist()
        for name, values in vars(record).items()
    }


def _scores(kind: type[Record], row: Mapping[str, Any]) -> Record:
    values: dict[str, Any] = {}
    for name in kind.__dataclass_fields__:
        if name == _STRINGS:
            values[name] = tuple(row[name])
        else:
            values[name] = np.array(row[name], np.int64 if name in _WHOLE_NUMBERS else np.float64)
    return kind(**values)
