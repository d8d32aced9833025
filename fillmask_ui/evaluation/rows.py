"""What an evaluation yields for each text, a line of JSON in stored runs.

Axes: T tokens of the text, M hidden positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np

from fillmask_ui.masking import KINDS, HiddenTokens
from fillmask_ui.records import Displayed, Encoding, InJson, SkippedText, counted, excerpt

PARTS = ("whole word", "first sub-token", "later sub-token")
WHOLE, FIRST, LATER = range(3)


def _array(dtype: str, kind: type) -> InJson:
    """An array, in JSON a list of numbers."""
    return InJson(partial(np.array, dtype=dtype), list[kind])  # type: ignore[valid-type]


_INTS = _array("int64", int)
_FLOATS = _array("float64", float)
_SMALL = _array("uint8", int)
_KINDS = InJson(lambda names: np.array([*map(KINDS.index, names)], np.uint8), list[str])
_SPANS = InJson(lambda pairs: np.array(pairs, np.int64).reshape(-1, 2), list[tuple[int, int]])


@dataclass(frozen=True, eq=False)
class TokenScores:
    """What one model says at the hidden positions of one text; arrays are [M]."""

    nll_nats: Annotated[np.ndarray, _FLOATS]  # float64, of the true token
    ranks: Annotated[np.ndarray, _INTS]  # int64, of the true token, 1 for the best
    entropy_nats: Annotated[np.ndarray, _FLOATS]  # float64, of the distribution
    top_ids: Annotated[np.ndarray, _INTS]  # int64, the most probable token
    top_probabilities: Annotated[np.ndarray, _FLOATS]  # float64, of that token
    top_tokens: tuple[str, ...] = ()  # vocabulary strings of `top_ids`


@dataclass(frozen=True, eq=False, kw_only=True)
class UnmaskedScores(TokenScores):
    """Scores of a text that the model filled step by step, each token at its own step."""

    steps: Annotated[np.ndarray, _INTS]  # int64, number of the step that wrote it, from 1
    written_ids: Annotated[np.ndarray, _INTS]  # int64, the token that was written
    written_probabilities: Annotated[np.ndarray, _FLOATS]  # float64, of that token
    written_tokens: tuple[str, ...]  # vocabulary strings of `written_ids`
    pseudo_perplexity: float  # of the finished text


@dataclass(frozen=True, eq=False)
class LogitDifference:
    """How far apart two models with one vocabulary are at the hidden positions of one text."""

    kl_nats: Annotated[np.ndarray, _FLOATS]  # float64 [M], KL(candidate || reference)
    kl_reverse_nats: Annotated[np.ndarray, _FLOATS]  # float64 [M], KL(reference || candidate)
    # float64 [M], mean and largest |difference| of the logits over the vocabulary
    mean_abs: Annotated[np.ndarray, _FLOATS]
    max_abs: Annotated[np.ndarray, _FLOATS]


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
    ids: Annotated[np.ndarray, _INTS]  # int64 [T]
    cols: Annotated[np.ndarray, _INTS]  # int64 [M], hidden positions
    tokens: tuple[str, ...]  # M vocabulary strings of the tokens to be found
    kinds: Annotated[np.ndarray, _KINDS]  # uint8 [M], index into `masking.KINDS`
    shown_ids: Annotated[np.ndarray, _INTS]  # int64 [M], what the model saw there
    parts: Annotated[np.ndarray, _SMALL]  # uint8 [M], index into `PARTS`
    spans: Annotated[np.ndarray, _SPANS]  # int64 [M, 2], characters of `text` of each hidden token
    group: str = field(default="", kw_only=True)  # `Example.group`

    @property
    def true_ids(self) -> np.ndarray:
        """int64 [M], the tokens to be found."""
        return self.ids[self.cols]


@dataclass(frozen=True, eq=False)
class Prepared:
    """One text, ready for the model."""

    row: MaskedText
    hidden: HiddenTokens
    encoding: Encoding  # of the text with nothing hidden


def covered(text: str, spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    """Characters of a text, except blanks, in some spans."""
    indices = (index for start, end in spans for index in range(start, end))
    return frozenset(index for index in indices if not text[index].isspace())


@dataclass(frozen=True)
class TokenExample:
    """One hidden token in its sentence."""

    id: int  # of the text
    position: int  # of the token
    text: str
    start: int  # first character of the token in `text`
    end: int  # one past its last
    token: str  # vocabulary string to be found
    kind: str  # what the model saw: `mask`, `random` or `unchanged`
    nll_nats: float  # of the true token
    rank: int  # of the true token
    top_token: str  # the model's best guess
    top_probability: float
    reference_nll_nats: float | None = None  # of the reference, as below; None for one model
    reference_rank: int | None = None
    reference_top_token: str | None = None

    @property
    def difference_nats(self) -> float | None:
        """Candidate less reference."""
        if self.reference_nll_nats is None:
            return None
        return self.nll_nats - self.reference_nll_nats


@dataclass(frozen=True, eq=False)
class EvaluatedText(MaskedText):
    """One text, measured."""

    scores: UnmaskedScores | TokenScores  # of the only model, or of the candidate
    reference: UnmaskedScores | TokenScores | None = None  # of a reference with its tokenizer
    difference: LogitDifference | None = None  # between the two
    reference_text: EvaluatedText | None = None  # under a reference with another tokenizer
    worse: EvaluatedText | None = None  # the other sentence of a pair, under the same models
    metric: Any = None  # the `Metric` that it was measured by; its run or its config stores it

    def __repr__(self) -> str:
        tokens = counted(len(self.cols), "hidden token")
        nats = f"{self.scores.nll_nats.sum():.3f} nats"
        return f"EvaluatedText({self.id}, {excerpt(self.text)}, {tokens}, {nats})"

    def example(self, entry: int) -> TokenExample:
        """The hidden token at `cols[entry]`."""
        start, end = self.spans[entry].tolist()
        scores, reference = self.scores, self.reference
        return TokenExample(
            id=self.id,
            position=int(self.cols[entry]),
            text=self.text,
            start=start,
            end=end,
            token=self.tokens[entry],
            kind=KINDS[self.kinds[entry]],
            nll_nats=float(scores.nll_nats[entry]),
            rank=int(scores.ranks[entry]),
            top_token=scores.top_tokens[entry],
            top_probability=float(scores.top_probabilities[entry]),
            reference_nll_nats=None if reference is None else float(reference.nll_nats[entry]),
            reference_rank=None if reference is None else int(reference.ranks[entry]),
            reference_top_token=None if reference is None else reference.top_tokens[entry],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; floats keep every digit."""
        fields = {name: getattr(self, name) for name in MaskedText.__dataclass_fields__}
        if not self.group:
            del fields["group"]
        row = _plain(fields | vars(self.scores))
        row["kinds"] = [KINDS[kind] for kind in self.kinds]
        for name, record in (("reference", self.reference), ("difference", self.difference)):
            if record is not None:
                row[name] = _plain(vars(record))
        for name, text in (("reference_text", self.reference_text), ("worse", self.worse)):
            if text is not None:
                row[name] = text.to_dict()
        return row


class Rows(tuple[EvaluatedText | SkippedText, ...], Displayed):
    """Measured texts that are kept, to be looked at: `Rows(evaluate(...))`."""

    def __repr__(self) -> str:
        return f"Rows({counted(len(self), 'text')})"

    def to_dict(self) -> dict[str, Any]:
        """Under `rows` what a stored run has for each text."""
        return {"rows": [row_values(row) for row in self]}


def row_values(row: EvaluatedText | SkippedText) -> dict[str, Any]:
    """Plain JSON-ready values of a row of either kind."""
    if isinstance(row, SkippedText):
        return {"id": row.id, "skipped": row.reason}
    return row.to_dict()


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """The values of `EvaluatedText.to_dict` by the fields of the records."""
    fields = {**values, "cols": values.get("positions"), "scores": values}
    for name in ("reference_text", "worse"):
        if values.get(name):
            fields[name] = nested(values[name])
    return fields


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    values = {}
    for name, field_value in fields.items():
        key = "positions" if name == "cols" else name
        if isinstance(field_value, np.ndarray):
            values[key] = field_value.tolist()
        else:
            values[key] = [*field_value] if type(field_value) is tuple else field_value
    return values
