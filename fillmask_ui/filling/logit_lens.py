"""How a guess forms: what the head of a model says to the states of each of its layers.

Definition. The head (all behind the last layer: a final norm where the architecture has one, then
the masked-LM head) turns the last hidden state of a token into logits. Here it also reads the
states of every earlier layer, and those of the embeddings, layer 0, at the same token: what the
model would say if its layers ended there.

What it is not: the thought of a layer. The head was trained for the last layer alone, and early
layers may keep what they know in another basis, in which it reads noise. Rivals: the tuned lens
(arXiv:2303.08112) trains an affine map for each layer before the head, so that its guesses are less
biased, and what it shows also depends on that training.

Source:
    The logit lens: nostalgebraist 2020, "interpreting GPT: the logit lens",
    https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import pad
from fillmask_ui.errors import ModelError
from fillmask_ui.filling.candidates import candidate_at, candidates_of, check_choices
from fillmask_ui.filling.prompt import (
    encode_masked,
    encode_text,
    encode_unmasked,
    mask_position,
    mask_positions,
)
from fillmask_ui.filling.words import ROWS_PER_CALL, sole_token
from fillmask_ui.protocol import LayerStates, MaskedLM, ModelLike, as_model
from fillmask_ui.records import Candidate, Displayed, Encoding, ModelSignature, counted, excerpt

# Largest difference of a logit behind the last layer from the model's own, relative to the largest:
# products in half precision are as far apart, a wrong layer is farther.
_TOLERANCE = 0.05


@dataclass(frozen=True)
class LayerGuess:
    """What the head says to one token's state in one layer."""

    layer: int  # 0 for the embeddings, the number of layers for the model's own answer
    entropy_nats: float  # of the distribution over all V tokens
    candidates: tuple[Candidate, ...]  # the K best, best first
    true: Candidate | None = None  # the true token, where it is known


@dataclass(frozen=True)
class TokenLayers:
    """One token of a text, layer by layer."""

    position: int  # index in the token sequence, special tokens counted
    token: str  # raw vocabulary string that stands there
    layers: tuple[LayerGuess, ...]  # from the embeddings up


@dataclass(frozen=True)
class LogitLens(Displayed):
    """A text layer by layer."""

    encoding: Encoding
    signature: ModelSignature
    positions: tuple[TokenLayers, ...]  # the masks, or all tokens of a text without one

    def __repr__(self) -> str:
        tokens = counted(len(self.positions), "token")
        last = len(self.positions[0].layers) - 1 if self.positions else 0
        return f"LogitLens({excerpt(self.encoding.text)}, {tokens}, layers 0 to {last})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; the shape that `fillmask-ui layers --json` prints.

        A layer has the key `true` where the true token is known.
        """
        positions = [asdict(token) for token in self.positions]
        for token in positions:
            for layer in token["layers"]:
                if layer["true"] is None:
                    del layer["true"]
        return {
            "text": self.encoding.text,
            "model": self.signature.name,
            "signature": str(self.signature),
            "positions": positions,
        }


def layers(
    model: ModelLike,
    text: str,
    *,
    top_k: int | None = 5,
    mask: int | None = None,
    word: str = "",
    most_tokens: int | None = None,
) -> LogitLens:
    """What each layer would answer at the masks of a text, or without one at every token.

    A text without a mask is read as it stands, nothing hidden: each token sees itself.

    Args:
        model: from `load_model`, or a reference such as `embedded`, which is loaded once.
        text: with masks as in `fill`, or without.
        top_k: tokens listed for each layer, 1 to 100, best first; None for the whole vocabulary.
        mask: the only mask to look at, counted from 0.
        word: the true word at the masks, which is followed if it is one token.
        most_tokens: tokens looked at, from the left; all by default.

    Errors are those of `fill`, or a `ModelError` if the model does not show its layers.

    >>> from fillmask_ui import load_model
    >>> lens = layers(load_model("embedded"), "The capital of France is [MASK].", word="Paris")
    >>> [guess.candidates[0].word for guess in lens.positions[0].layers][-1]
    'paris'
    """
    check_choices(top_k, ())
    model = as_model(model)
    vocabulary = model.vocabulary
    needs_mask = mask is not None or not text.strip()
    masked = needs_mask or vocabulary.mask_id in encode_text(vocabulary, text).ids
    encoding = encode_masked(model, text) if masked else encode_unmasked(model, text)
    if mask is not None:
        positions: tuple[int, ...] = (mask_position(encoding, vocabulary, mask),)
    elif masked:
        positions = mask_positions(encoding, vocabulary)
    else:
        positions = tuple(range(len(encoding)))
    positions = positions[:most_tokens]
    true: list[int | None] = [None] * len(positions)
    if not masked:
        true = [encoding.ids[position] for position in positions]
    elif word:
        true = [sole_token(model, encoding, position, word) for position in positions]
    guesses: list[list[LayerGuess]] = [[] for _ in positions]
    for layer, start, logits in _logits(model, encoding, positions):
        values = scoring.exponentials(logits)
        log_probs, entropies = values.log_probabilities, values.entropy_nats.tolist()
        top = scoring.top_k(log_probs, top_k)
        for row, entropy in enumerate(entropies):
            best = candidates_of(vocabulary, top.token_ids[row], top.nll_nats[row])
            token_id, followed = true[start + row], None
            if token_id is not None:
                followed = candidate_at(vocabulary, log_probs[row : row + 1], token_id)
            guesses[start + row].append(LayerGuess(layer, entropy, best, followed))
    tokens = tuple(
        TokenLayers(position, encoding.tokens[position], tuple(token_guesses))
        for position, token_guesses in zip(positions, guesses, strict=True)
    )
    return LogitLens(encoding, model.signature, tokens)


def _logits(
    model: MaskedLM, encoding: Encoding, positions: tuple[int, ...]
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Number of a layer, index of its first position, logits [M, V]: some positions at a time."""
    if not isinstance(model, LayerStates):
        raise ModelError(f"{model.signature.name} does not show its layers: choose another model")
    batch = pad([np.array(encoding.ids)], model.vocabulary.pad_id)  # [1, T]
    states = model.layer_states(batch.input_ids[0])
    for start in range(0, len(positions), ROWS_PER_CALL):
        cols = np.array(positions[start : start + ROWS_PER_CALL])  # [M]
        for layer, layer_states in enumerate(states[:-1]):
            yield layer, start, model.layer_logits(layer_states, cols)
        # The last is what `fill` gives, to the last digit.
        rows = np.zeros_like(cols)
        answer = model.logits_at(batch.input_ids, batch.attention_mask, rows, cols)
        difference = np.abs(model.layer_logits(states[-1], cols) - answer).max()
        if difference > _TOLERANCE * max(1.0, float(np.abs(answer).max())):
            raise ModelError(
                f"{model.signature.name} does not show its layers: its last one gives logits that "
                f"are off by {difference:g}; choose another model"
            )
        yield len(states) - 1, start, answer
