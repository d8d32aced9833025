"""What is measured on, the time it took, and the operations that it cannot do without.

Definition: `EncoderShape.operations` counts the multiplications of docs/bench.md, "The share", each
as two operations: in the last layer all but keys and values at hidden positions alone. Padding,
biases, norms, softmax, the third matrix of gated layers and the products of relative positions are
not counted: it errs on the low side. Local attention is counted as local in all layers.

Rivals: 2 operations per parameter and token counts the table of embeddings as if each token
multiplied by all of it (40 % of a small model) and leaves attention out.

Source: counted as in Kaplan et al., arXiv:2001.08361, section 2.1, for the hidden positions alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from fillmask_ui.protocol import Vocabulary

# Beginnings that are tried for a sentence of just the wanted length.
_MOST_STARTS = 50
# One sentence is timed so often, and so long, before it is the next contender's turn.
_TURN_CALLS, _TURN_SECONDS = 10, 0.1
# Size -> its names in config.json.
_NAMES = {
    "layers": ("num_hidden_layers", "n_layers"),
    "hidden": ("hidden_size", "dim"),
    "inner": ("intermediate_size", "hidden_dim"),
    "vocabulary": ("vocab_size",),
}


@dataclass(frozen=True)
class EncoderShape:
    """The sizes that decide how much there is to multiply."""

    layers: int  # L
    hidden: int  # H
    inner: int  # I
    vocabulary: int  # V
    embedding: int  # E
    reach: int | None = None  # tokens that a token attends to, if attention is local

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> EncoderShape | None:
        """The shape in a config.json; None if it leaves a size out."""
        sizes = {}
        for name, keys in _NAMES.items():
            known = [config[key] for key in keys if isinstance(config.get(key), int)]
            if not known:
                return None
            sizes[name] = known[0]
        embedding = config.get("embedding_size") or sizes["hidden"]
        return cls(**sizes, embedding=embedding, reach=config.get("local_attention"))

    def operations(self, texts: Iterable[tuple[int, int]]) -> int:
        """Necessary operations of texts given as (T, M).

        >>> EncoderShape(2, 4, 8, 10, 4).operations([(3, 1)])
        1456
        """
        total = 0
        for tokens, asked in texts:
            seen = min(tokens, self.reach or tokens)
            matrices = 2 * self.hidden**2 + 2 * self.hidden * self.inner + 2 * seen * self.hidden
            # Keys and values are those of all tokens in every layer.
            total += self.layers * tokens * 2 * self.hidden**2
            total += ((self.layers - 1) * tokens + asked) * matrices
            if self.embedding != self.hidden:
                total += tokens * self.embedding * self.hidden
            total += asked * self.embedding * (self.hidden + self.vocabulary)
        return 2 * total


@dataclass(frozen=True)
class Timing:
    """One work, done once or several times."""

    seconds: tuple[float, ...]  # of each run
    amount: float  # of one run: tokens, calls or floating-point operations
    loss: float | None = None  # in nats, of the last run
    operations: int | None = None  # necessary floating-point operations of one run, if known


def timed(call: Callable[[], Any], runs: int) -> tuple[tuple[float, ...], Any]:
    """Seconds of each run, and what the last one returned."""
    seconds, value = [], None
    for _ in range(runs):
        start = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - start)
    return tuple(seconds), value


def timed_turn(call: Callable[[], Any]) -> tuple[tuple[float, ...], Any]:
    """As `timed`: one to ten calls, for a tenth of a second, after one that warms the caches."""
    value, seconds = call(), list[float]()
    while len(seconds) < _TURN_CALLS and sum(seconds) < _TURN_SECONDS:
        (one,), value = timed(call, 1)
        seconds.append(one)
    return tuple(seconds), value


def evaluation_timing(
    seconds: tuple[float, ...],
    loss: float,
    sizes: Sequence[tuple[int, int]],
    metric: str,
    shape: EncoderShape | None,
) -> Timing:
    """An evaluation of texts given as (tokens, hidden tokens).

    Every token counts, for pseudo-perplexity every hidden one, whose operations are unknown.
    """
    one_by_one = metric == "pseudo-perplexity"
    amount = sum(asked if one_by_one else tokens for tokens, asked in sizes)
    known = None if shape is None or one_by_one else shape.operations(sizes)
    return Timing(seconds, amount, loss, known)


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


def mask_place(vocabulary: Vocabulary, text: str) -> tuple[np.ndarray, int]:
    """Token ids int64 [1, T] of a text with one mask, and the position of the mask."""
    ids = np.array([vocabulary.encode(text).ids], np.int64)
    return ids, int(np.flatnonzero(ids[0] == vocabulary.mask_id)[0])
