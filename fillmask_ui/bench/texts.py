"""What is measured on: sentences of a given length, and texts with hidden tokens.

Both depend on texts, tokenizer and seed alone, so that every contender is asked the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np

from fillmask_ui.evaluation import EvaluationConfig, SeededMasks
from fillmask_ui.evaluation.measure import prepare
from fillmask_ui.evaluation.rows import Prepared
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Example

# Beginnings that are tried for a sentence of just the wanted length.
_MOST_STARTS = 50


def sentence(vocabulary: Vocabulary, texts: Sequence[str], tokens: int) -> str | None:
    """Words of the texts, one of them a mask, that are so many tokens, special tokens included.

    None if no number of words gives that many tokens.
    """
    unusable = ("__", vocabulary.mask_token)
    words = [w for text in texts for w in text.split() if not any(mark in w for mark in unusable)]
    if not words:
        return None
    for start in range(min(_MOST_STARTS, len(words))):
        ordered = list(islice(cycle(words[start:] + words[:start]), tokens))

        def masked(count: int, ordered: list[str] = ordered) -> str:
            middle = count // 2
            return " ".join((*ordered[:middle], vocabulary.mask_token, *ordered[middle:count]))

        low, high = 0, tokens
        while low < high:  # the fewest words that are enough
            count = (low + high) // 2
            enough = len(vocabulary.encode(masked(count))) >= tokens
            low, high = (low, count) if enough else (count + 1, high)
        if len(vocabulary.encode(masked(low))) == tokens:
            return masked(low)
    return None


def mask_place(vocabulary: Vocabulary, text: str) -> tuple[np.ndarray, int]:
    """Token ids int64 [1, T] of a text with one mask, and the position of the mask."""
    ids = np.array([vocabulary.encode(text).ids], np.int64)
    return ids, int(np.flatnonzero(ids[0] == vocabulary.mask_id)[0])


def prepared(
    vocabulary: Vocabulary, texts: Sequence[str], config: EvaluationConfig
) -> list[Prepared]:
    """The texts with the hidden tokens that `evaluate` chooses; those it skips are left out.

    The config is resolved: it has its `max_tokens`.
    """
    masks = SeededMasks(config, vocabulary)
    examples = (Example(index, text) for index, text in enumerate(texts))
    made = (prepare(example, vocabulary, config, masks) for example in examples)
    return [item for item in made if isinstance(item, Prepared)]
