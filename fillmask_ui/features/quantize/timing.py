"""A clock for calls of a model, and the sentence that it is set on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

from fillmask_ui.protocol import Vocabulary

# Words of the texts that a sentence of just the wanted length is tried to begin with.
_MOST_STARTS = 50


def timed(call: Callable[[], Any], runs: int) -> tuple[tuple[float, ...], Any]:
    """Seconds of each run, and what the last one returned."""
    seconds, value = [], None
    for _ in range(runs):
        start = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - start)
    return tuple(seconds), value


def sentence(vocabulary: Vocabulary, texts: Sequence[str], tokens: int, most: int) -> str | None:
    """Words of the texts, one of them a mask, that are so many tokens, special tokens included.

    None if no number of words gives that many tokens, or they are more than `most`.
    """
    if tokens > most:
        return None
    unusable = ("__", vocabulary.mask_token)
    words = [w for text in texts for w in text.split() if not any(mark in w for mark in unusable)]
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
