"""From a text to hidden tokens: cut to the model's length, hide, note what each token is.

Axes: T tokens of the text, M hidden positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from fillmask_ui.errors import TextError
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.rows import FIRST, LATER, WHOLE
from fillmask_ui.evaluation.schemes.scheme import covered
from fillmask_ui.masking import HiddenTokens, generator, hideable
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding, Example, SkippedText

BLANK = "empty or blank"
NOT_TEXT = "cannot be tokenized"
NOTHING_TO_HIDE = "only special or unknown tokens"
NOTHING_CHOSEN = "no token was chosen"
NOT_COMPARABLE = "tokenizers do not cover the same characters"

# Far more characters than any tokenizer puts into one token of running text.
_CHARACTERS_A_TOKEN = 64


class Masks(Protocol):
    """Where hidden tokens come from."""

    @property
    def sequential(self) -> bool:
        """Whether the masks of a text depend on the texts before it."""

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        """Hidden tokens of one text; none (M = 0) is a valid answer."""


@dataclass(frozen=True)
class SeededMasks:
    """Masks that depend on (seed, the example's id, its tokens) alone."""

    config: EvaluationConfig
    vocabulary: Vocabulary
    sequential: bool = False

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        return self.config.scheme.hide(
            encoding, self.vocabulary, generator(self.config.seed, example_id)
        )


@dataclass(frozen=True, eq=False)
class Prepared:
    """One text, ready for the model; the fields are those of `EvaluatedText`."""

    id: int
    text: str
    characters: int
    truncated: bool
    left_out: int
    hidden: HiddenTokens
    parts: np.ndarray
    spans: np.ndarray

    @property
    def cols(self) -> np.ndarray:
        """int64 [M], hidden positions."""
        return self.hidden.cols

    @property
    def shown_ids(self) -> np.ndarray:
        """int64 [M], what the model sees at the hidden positions."""
        if self.hidden.hidden_until is not None:
            return np.full(len(self.hidden.cols), self.hidden.mask_id)
        return self.hidden.input_ids[self.hidden.cols]


@dataclass(frozen=True)
class CutEncoding:
    """An encoding no longer than asked, and whether anything was left out at the end."""

    encoding: Encoding
    truncated: bool


def encode_cut(vocabulary: Vocabulary, text: str, max_tokens: int) -> CutEncoding:
    """Encode the beginning of a text: as many tokens as fit, special tokens at the end kept.

    A line of ten million characters costs no more than its beginning: what cannot matter is not
    tokenized.

    Raises:
        TextError: for text that no tokenizer can take.
    """
    limit = _CHARACTERS_A_TOKEN * (max_tokens + 1)
    while True:
        beginning = text if len(text) <= limit else text[:limit]
        encoding = vocabulary.encode(beginning)
        if len(encoding) > max_tokens:
            return CutEncoding(_cut(encoding, max_tokens), truncated=True)
        if len(beginning) == len(text):
            return CutEncoding(encoding, truncated=False)
        limit *= 4


def _cut(encoding: Encoding, max_tokens: int) -> Encoding:
    closing = 0
    while closing < len(encoding) and encoding.special[len(encoding) - 1 - closing]:
        closing += 1
    kept = max_tokens - closing

    def part(values: tuple) -> tuple:
        return values[:kept] + values[len(values) - closing :]

    end = max((span.end for span in encoding.spans[:kept]), default=0)
    return Encoding(
        text=encoding.text[:end],
        ids=part(encoding.ids),
        tokens=part(encoding.tokens),
        spans=tuple(
            replace(span, start=min(span.start, end), end=min(span.end, end))
            for span in part(encoding.spans)
        ),
        word_ids=part(encoding.word_ids),
        special=part(encoding.special),
    )


def prepare(
    example: Example, vocabulary: Vocabulary, config: EvaluationConfig, masks: Masks
) -> Prepared | SkippedText:
    """Hide tokens of one text, or say why it cannot be measured."""
    if not example.text.strip():
        return SkippedText(example.id, BLANK)
    try:
        # `evaluate` has resolved it.
        cut = encode_cut(vocabulary, example.text, cast("int", config.max_tokens))
    except TextError:
        return SkippedText(example.id, NOT_TEXT)
    encoding = cut.encoding
    can_hide = hideable(np.array(encoding.ids, np.int64), vocabulary.special_ids)
    # A stream of masks advances at every text of three tokens or more, as the published one does.
    if not can_hide.any() and not (masks.sequential and len(encoding) >= 3):
        return SkippedText(example.id, NOTHING_TO_HIDE)
    hidden = masks.hide(encoding, example.id)
    if not can_hide.any():
        return SkippedText(example.id, NOTHING_TO_HIDE)
    if not len(hidden.cols):
        return SkippedText(example.id, NOTHING_CHOSEN)
    spans = np.array(
        [(encoding.spans[col].start, encoding.spans[col].end) for col in hidden.cols], np.int64
    )
    written = sum(not special for special in encoding.special)
    prepared = Prepared(
        id=example.id,
        text=encoding.text,
        characters=0,
        truncated=cut.truncated,
        left_out=written - int(can_hide.sum()),
        hidden=hidden,
        parts=_parts(encoding, hidden.cols),
        spans=spans,
    )
    whole = config.scheme.covers_the_text
    characters = _spelled(encoding, can_hide) if whole else len(covered(prepared))
    return replace(prepared, characters=characters)


def _spelled(encoding: Encoding, can_hide: np.ndarray) -> int:
    """Characters of a text, those of written tokens that are not scored left out."""
    text = encoding.text
    first, end = len(text) - len(text.lstrip()), len(text.rstrip())
    lost = {
        place
        for span, special, scored in zip(encoding.spans, encoding.special, can_hide, strict=True)
        if not special and not scored
        for place in range(max(span.start, first), min(span.end, end))
    }
    return end - first - len(lost)


def _parts(encoding: Encoding, cols: np.ndarray) -> np.ndarray:
    """uint8 [M], index into `PARTS`."""
    words = encoding.word_ids
    parts = np.full(len(cols), WHOLE, np.uint8)
    for index, col in enumerate(cols):
        if words[col] is None:
            continue
        if col > 0 and words[col - 1] == words[col]:
            parts[index] = LATER
        elif col + 1 < len(words) and words[col + 1] == words[col]:
            parts[index] = FIRST
    return parts
