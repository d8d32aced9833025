"""The floating-point operations that an evaluation cannot do without.

Definition. Of a text of T tokens with M hidden positions, in an encoder of L layers, width H, inner
width I, vocabulary V, and embeddings of width E (H where nothing else is said), the necessary
multiplications are

- in each layer but the last, per token 4 H^2 (query, key, value, output) and 2 H I (feed-forward),
  and 2 T H per token for attention (scores, then the weighted sum);
- in the last layer, 2 H^2 per token (key, value), and at hidden positions alone 2 H^2 (query,
  output), 2 H I and 2 T H;
- E H per token where E is not H, and H E + E V per hidden position (head, vocabulary projection).

Each is a multiplication and an addition: two operations. Padding is not counted, nor what a runtime
computes at positions nobody asked for, nor biases, norms and softmax: the figure errs on the low
side. So it does for gated feed-forward layers, which have a third matrix, and for the products of
relative positions; where attention is local, it is counted as local in all layers.

Rivals: 2 operations per parameter and token, which counts the table of embeddings as if each token
multiplied by all of it (40 % of a small model) and leaves attention out.

Source: counted as in Kaplan et al., arXiv:2001.08361, section 2.1, for the hidden positions alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# What it is -> what config.json may call it.
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
    reach: int | None = None  # tokens that a token attends to where attention is local

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> EncoderShape | None:
        """The shape that a config.json tells; None where it leaves a size out."""
        sizes = {}
        for name, keys in _NAMES.items():
            known = [config[key] for key in keys if isinstance(config.get(key), int)]
            if not known:
                return None
            sizes[name] = known[0]
        embedding = config.get("embedding_size") or sizes["hidden"]
        return cls(**sizes, embedding=embedding, reach=config.get("local_attention"))

    def operations(self, texts: Iterable[tuple[int, int]]) -> int:
        """Of texts given as (T, M): two for each necessary multiplication.

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
