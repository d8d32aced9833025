"""What a model must offer. Everything else is derived from it, the same for every runtime.

Axes: B texts in a batch, T tokens, M hidden positions, V vocabulary, H hidden size. Arrays of ids
and positions are int64.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, runtime_checkable

from fillmask_ui.errors import ModelError
from fillmask_ui.records import Encoding, ModelSignature

if TYPE_CHECKING:
    import numpy as np


@runtime_checkable
class Vocabulary(Protocol):
    """A tokenizer, as far as the core needs one."""

    size: int  # number of tokens that the tokenizer knows; at most the width V of the logits
    mask_id: int  # id of the mask token
    mask_token: str  # its string, `[MASK]` or `<mask>`
    unk_id: int | None  # of what the vocabulary cannot spell; None if it can spell all
    pad_id: int  # id used to fill up shorter texts of a batch
    special_ids: frozenset[int]  # ids of all special tokens, the mask among them

    def encode(self, text: str) -> Encoding:
        """Token ids with special tokens, uncut; a `TextError` for lone surrogates."""

    def encode_word(self, word: str, before: str = " ") -> tuple[int, ...]:
        """Sub-token ids of a word in place of a mask; may be empty.

        `before`, the character to the left of the mask ("" at the start), decides between `Ġword`
        and `word`.
        """

    def token(self, token_id: int) -> str:
        """Raw vocabulary string; `[id]` in brackets for a logit column without a token."""

    def word(self, token_id: int) -> str:
        """`token` without `##`, `Ġ`, `▁`, bytes decoded; special tokens stay as they are."""

    def is_continuation(self, token_id: int) -> bool:
        """Whether the token continues the word to its left (`##ing`, or no `Ġ`/`▁`)."""


@runtime_checkable
class MaskedLM(Protocol):
    """A masked language model."""

    vocabulary: Vocabulary  # its tokenizer
    signature: ModelSignature  # every choice that shapes its numbers
    max_tokens: int  # longest text in tokens, special tokens included

    def logits_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        """Logits at the asked positions alone, float32 [M, V], V at least the vocabulary's size.

        Called from many threads; the array is the caller's own.

        Args:
            input_ids: [B, T], padded with `vocabulary.pad_id`.
            attention_mask: [B, T], 1 for real tokens.
            rows: [M], text of each asked position, in [0, B).
            cols: [M], token of each asked position, in [0, T).
        """


@runtime_checkable
class EncoderStates(Protocol):
    """A model that also gives the vectors its head computes logits from; ask by `isinstance`."""

    def states_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        """Last hidden state, float32 [M, H], as `logits_at` with M > 0; may be a `ModelError`."""


@runtime_checkable
class LayerStates(Protocol):
    """A model whose head also reads the states of earlier layers; ask by `isinstance`."""

    def layer_states(self, input_ids: np.ndarray) -> tuple[np.ndarray, ...]:
        """What the head needs of each layer of one text, int64 [T]; the embeddings come first.

        Where an architecture has a norm behind its last layer, that counts to the head. A
        `ModelError` if the model does not show its layers.
        """

    def layer_logits(self, states: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The head on the states of one layer: logits at asked tokens, [M], float32 [M, V]."""


# A model, or what `load_model` makes one of: a name, a folder, a file.
ModelLike: TypeAlias = MaskedLM | str | Path


class References:
    """How references become models; `fillmask_ui/__init__.py` sets it from above."""

    open: ClassVar[Callable[[str], MaskedLM]]


def as_model(model: ModelLike) -> MaskedLM:
    """The model itself, or that of a reference, which is loaded once and kept.

    A `ModelError` for anything else.
    """
    if isinstance(model, str | Path):
        return References.open(str(model))
    if not hasattr(model, "logits_at"):
        raise ModelError(
            f"a model was wanted, and this is of the type {type(model).__name__}: give what "
            "load_model returns, or a reference such as 'embedded'"
        )
    return model
