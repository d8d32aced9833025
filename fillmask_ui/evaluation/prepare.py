"""From a text to hidden tokens: cut to the model's length, hide, note what each token is.

Axes: T tokens of the text, M hidden positions.
"""

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from fillmask_ui.errors import TextError
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.rows import FIRST, LATER, WHOLE, MaskedText
from fillmask_ui.evaluation.schemes.scheme import covered
from fillmask_ui.masking import HiddenTokens, generator, hideable
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding, Example, SkippedText, Span

NOT_COMPARABLE = "tokenizers do not cover the same characters"

# Far more characters than any tokenizer puts into one token of running text.
_CHARACTERS_A_TOKEN = 64


class Masks(Protocol):
    """Where hidden tokens come from."""

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        """Hidden tokens of one text; none (M = 0) is a valid answer."""


@dataclass(frozen=True)
class SeededMasks:
    """Masks that depend on (seed, the example's id, its tokens) alone."""

    config: EvaluationConfig
    vocabulary: Vocabulary

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        rng = generator(self.config.seed, example_id)
        return self.config.scheme.hide(encoding, self.vocabulary, rng)


@dataclass(frozen=True, eq=False)
class Prepared:
    """One text, ready for the model."""

    row: MaskedText
    hidden: HiddenTokens
    encoding: Encoding  # of the text as it is


def prepare(
    example: Example, vocabulary: Vocabulary, config: EvaluationConfig, masks: Masks
) -> Prepared | SkippedText:
    """Hide tokens of one text, or say why it cannot be measured."""
    if not example.text.strip():
        return SkippedText(example.id, "empty or blank")
    max_tokens = cast("int", config.max_tokens)  # `evaluate` has resolved it
    try:
        encoding = _encode_beginning(vocabulary, example.text, max_tokens)
    except TextError:
        return SkippedText(example.id, "cannot be tokenized")
    truncated = len(encoding) > max_tokens
    if truncated:
        encoding = _cut(encoding, max_tokens)
    can_hide = hideable(encoding.ids, vocabulary.special_ids)
    # Asked also where nothing can be hidden: a stream of masks advances there too.
    hidden = masks.hide(encoding, example.id)
    if not can_hide.any():
        return SkippedText(example.id, "only special or unknown tokens")
    if not len(hidden.cols):
        return SkippedText(example.id, "no token was chosen")
    spans = [(encoding.spans[col].start, encoding.spans[col].end) for col in hidden.cols]
    whole = config.scheme.covers_the_text
    row = MaskedText(
        id=example.id,
        text=encoding.text,
        characters=_spelled(encoding, can_hide) if whole else len(covered(encoding.text, spans)),
        truncated=truncated,
        left_out=encoding.special.count(False) - int(can_hide.sum()),
        can_hide=int(can_hide.sum()),
        ids=hidden.ids,
        cols=hidden.cols,
        tokens=tuple(vocabulary.token(int(index)) for index in hidden.true_ids),
        kinds=hidden.kinds,
        shown_ids=hidden.input_ids[hidden.cols],
        parts=_parts(encoding, hidden.cols),
        spans=np.array(spans, np.int64),
    )
    return Prepared(row, hidden, encoding)


def _encode_beginning(vocabulary: Vocabulary, text: str, max_tokens: int) -> Encoding:
    """A text as tokens; of a much longer one its beginning alone, but more than `max_tokens`."""
    limit = _CHARACTERS_A_TOKEN * (max_tokens + 1)
    while True:
        encoding = vocabulary.encode(text[:limit])
        if len(encoding) > max_tokens or len(text) <= limit:
            return encoding
        limit *= 4


def _cut(encoding: Encoding, max_tokens: int) -> Encoding:
    """As many tokens as fit, special tokens at the end kept."""
    closing = 0
    while closing < len(encoding) and encoding.special[-1 - closing]:
        closing += 1
    kept = max_tokens - closing
    end = max((span.end for span in encoding.spans[:kept]), default=0)
    values = {
        name: own[:kept] + own[len(encoding) - closing :] for name, own in vars(encoding).items()
    }
    spans = tuple(Span(min(span.start, end), min(span.end, end)) for span in values["spans"])
    return Encoding(**{**values, "text": encoding.text[:end], "spans": spans})


def _spelled(encoding: Encoding, can_hide: np.ndarray) -> int:
    """Characters of a text, those of written tokens that are not scored left out."""
    text = encoding.text
    kept = np.ones(len(text), bool)
    for span, special, scored in zip(encoding.spans, encoding.special, can_hide, strict=True):
        if not special and not scored:
            kept[span.start : span.end] = False
    return int(kept[len(text) - len(text.lstrip()) : len(text.rstrip())].sum())


def _parts(encoding: Encoding, cols: np.ndarray) -> np.ndarray:
    """uint8 [M], index into `PARTS`."""
    parts = np.full(len(cols), WHOLE, np.uint8)
    words = (None, *encoding.word_ids, None)
    for index, col in enumerate(cols):
        before, own, after = words[col : col + 3]
        if own is not None and own in (before, after):
            parts[index] = LATER if own == before else FIRST
    return parts
