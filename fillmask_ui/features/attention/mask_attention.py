"""Where each head looks from one mask, and which tokens look at the mask."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.errors import OptionError
from fillmask_ui.filling.prompt import encode_masked, mask_position
from fillmask_ui.models.attention_weights import weights_of
from fillmask_ui.protocol import ModelLike, as_model
from fillmask_ui.records import Displayed, Encoding, ModelSignature, excerpt
from fillmask_ui.text_words import text_words


@dataclass(frozen=True)
class WordAttention:
    """A word, a mask or a special token, seen from the mask and looking at it."""

    text: str
    tokens: tuple[int, ...]  # indices in the encoding
    is_special: bool  # whether the tokenizer added it, such as [CLS] and [SEP]
    is_word: bool  # neither special nor a mask
    from_mask: float  # sum of the mask's weights on its tokens
    to_mask: float  # mean of its tokens' weights on the mask


@dataclass(frozen=True)
class HeadAttention:
    """One head at one mask."""

    layer: int  # from 1
    head: int  # from 1
    entropy_nats: float  # of the row of the mask: 0 for one token, ln T for all alike
    from_mask: tuple[float, ...]  # T weights of the mask on each token; their sum is 1
    to_mask: tuple[float, ...]  # T weights of each token on the mask


@dataclass(frozen=True, repr=False)
class MaskAttention(Displayed):
    """All heads of a model at one mask."""

    encoding: Encoding
    signature: ModelSignature
    position: int  # of the mask in the token sequence
    from_mask: np.ndarray  # float32 [L, A, T]
    to_mask: np.ndarray  # float32 [L, A, T]

    def __repr__(self) -> str:
        layers, heads = self.shape
        name = excerpt(self.encoding.text)
        return f"MaskAttention({name}, position {self.position}, {layers} layers of {heads} heads)"

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers and of heads in each."""
        layers, heads, _ = self.from_mask.shape
        return layers, heads

    @property
    def entropies_nats(self) -> np.ndarray:
        """Of the row of the mask in each head, float64 [L, A]."""
        return entropies_nats(self.from_mask)

    def heads(self, layer: int | None = None, head: int | None = None) -> list[HeadAttention]:
        """All heads, those of a layer, one in each layer, or one; an OptionError for none."""
        rows, columns = self.shape
        chosen = (("layer", layer, rows), ("head", head, columns))
        for name, number, count in chosen:
            if number is not None and not 1 <= number <= count:
                raise OptionError(f"the model has {name}s 1 to {count}; {name} was {number}")
        entropies = self.entropies_nats
        return [
            HeadAttention(
                row + 1,
                column + 1,
                float(entropies[row, column]),
                tuple(self.from_mask[row, column].tolist()),
                tuple(self.to_mask[row, column].tolist()),
            )
            for row in range(rows)
            for column in range(columns)
            if layer in (None, row + 1) and head in (None, column + 1)
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each token in each head, both ways: a row of files and data frames."""
        for head in self.heads():
            for position, token in enumerate(self.encoding.tokens):
                yield {
                    "layer": head.layer,
                    "head": head.head,
                    "position": position,
                    "token": token,
                    "from_mask": head.from_mask[position],
                    "to_mask": head.to_mask[position],
                }

    def words(self, layer: int, head: int | None = None) -> list[WordAttention]:
        """The sentence from left to right in one head, or in the mean of a layer's; from 1."""
        heads = slice(None) if head is None else slice(head - 1, head)
        from_mask = self.from_mask[layer - 1, heads].mean(axis=0, dtype=np.float64)  # [T]
        to_mask = self.to_mask[layer - 1, heads].mean(axis=0, dtype=np.float64)  # [T]
        encoding = self.encoding
        by_first_token = {word.tokens[0]: word for word in text_words(encoding)}
        inside = {token for word in by_first_token.values() for token in word.tokens}
        words = []
        for index, token in enumerate(encoding.tokens):
            word = by_first_token.get(index)
            if word is None and index in inside:
                continue
            tokens = word.tokens if word else (index,)
            words.append(
                WordAttention(
                    word.text if word else token,
                    tokens,
                    encoding.special[index],
                    word is not None,
                    float(from_mask[[*tokens]].sum()),
                    float(to_mask[[*tokens]].mean()),
                )
            )
        return words

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; the shape that `fillmask-ui attention --json` prints."""
        return self.to_dict_of(self.heads())

    def to_dict_of(self, heads: Iterable[HeadAttention]) -> dict[str, Any]:
        """`to_dict` with some heads alone."""
        return {
            "text": self.encoding.text,
            "model": self.signature.name,
            "signature": str(self.signature),
            "position": self.position,
            "tokens": list(self.encoding.tokens),
            "heads": [vars(head) for head in heads],
        }


def mask_attention(model: ModelLike, text: str, mask: int = 0) -> MaskAttention:
    """All heads at a mask, counted from 0; errors as of `attention`, or an `OptionError`."""
    model = as_model(model)
    encoding = encode_masked(model, text)
    position = mask_position(encoding, model.vocabulary, mask)
    weights = weights_of(model, encoding)  # [L, A, T, T]
    # Copies, as the whole is T times as large.
    rows, columns = weights[:, :, position].copy(), weights[..., position].copy()
    return MaskAttention(encoding, model.signature, position, rows, columns)


def entropies_nats(weights: np.ndarray) -> np.ndarray:
    """Entropy over the last axis, float64.

    >>> entropies_nats(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    shares = weights.astype(np.float64)
    logarithms = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    entropies: np.ndarray = np.abs((shares * logarithms).sum(axis=-1))
    return entropies


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation, equal values with their mean rank; None if it is undefined.

    Undefined for fewer than three pairs, or where all values of a side are equal.

    >>> rank_correlation([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    ranks = np.stack([_ranks(np.array(first)), _ranks(np.array(second))])
    return round(float(np.corrcoef(ranks)[0, 1]), 12)


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value from 1, equal ones with their mean."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: np.ndarray = (last - (counts - 1) / 2)[which]
    return ranks
