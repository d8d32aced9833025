"""Which words of a text the prediction at a mask rests on.

Definition. Each other word is hidden in turn, and the distribution at the mask is compared with
that of the whole text: KL(P with the word || P without it), and the change of the log-probability
of one token, the true one or else the first candidate. A word of n sub-tokens becomes n masks:
removing it would move what follows as well.

Rivals: attention weights say where a layer looks, not what the result rests on; gradients describe
a small change of an embedding, not a missing word.

Source:
    Occlusion: Zeiler and Fergus 2014, arXiv:1311.2901; of words ("erasure"): Li et al. 2016,
    arXiv:1612.08220.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import windows
from fillmask_ui.filling.candidates import candidate_at, distributions
from fillmask_ui.filling.prompt import encode_masked, mask_position
from fillmask_ui.filling.word_surprisal import WINDOW_TOKENS
from fillmask_ui.filling.words import (
    ROWS_PER_CALL,
    log_probabilities_at,
    sole_token,
)
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import Candidate, counted
from fillmask_ui.text_words import TextWord, text_words


@dataclass(frozen=True)
class OccludedWord:
    """The prediction at a mask without one other word."""

    word: TextWord
    kl_nats: float  # KL(P of the whole text || P with this word hidden)
    change_nats: float  # log-probability of the target without the word, less with it
    probability: float  # of the target without the word


@dataclass(frozen=True)
class Occlusion:
    """The other words of a text, seen from one mask."""

    position: int  # of the mask in the token sequence
    target: Candidate  # the token that is followed, in the whole text
    is_true: bool  # whether that is the true word
    words: tuple[OccludedWord, ...]  # from left to right

    def __repr__(self) -> str:
        words = counted(len(self.words), "other word")
        return f"Occlusion({self.target.word!r} {self.target.probability:.1%}, {words})"


def occlude(model: ModelLike, text: str, mask: int = 0, *, word: str = "") -> Occlusion:
    """How far the prediction at a mask, counted from 0, moves when each other word is hidden.

    `word` is the true word there, which is followed if it is one token, else the first candidate
    is. Errors are those of `fill`.

    >>> from fillmask_ui import load_model
    >>> text = "Paris is the capital of [MASK]."
    >>> occlusion = occlude(load_model("embedded"), text)
    >>> max(occlusion.words, key=lambda occluded: occluded.kl_nats).word.text
    'Paris'
    """
    parts = list(occlusion_windows(as_model(model), text, mask, word=word))
    return replace(parts[0], words=tuple(word for part in parts for word in part.words))


def occlusion_windows(
    model: MaskedLM,
    text: str,
    mask: int = 0,
    *,
    word: str = "",
    start: int = 0,
    window_tokens: int = WINDOW_TOKENS,
) -> Iterator[Occlusion]:
    """`occlude` in windows, as `surprisal_windows`; at least one."""
    encoding = encode_masked(model, text)
    vocabulary, mask_id = model.vocabulary, model.vocabulary.mask_id
    position = mask_position(encoding, vocabulary, mask)
    true = sole_token(model, encoding, position, word)
    distribution = next(distributions(model, [(encoding.ids, position, ())], 1))
    whole, target = distribution.values.log_probabilities, distribution.mask.candidates[0]
    if true is not None:
        target = candidate_at(vocabulary, whole, true)
    words, cost = text_words(encoding)[start:], len(encoding)
    if not words:
        yield Occlusion(position, target, true is not None, ())
    for window in windows(words, lambda _: cost, max_size=window_tokens, max_items=ROWS_PER_CALL):
        hidden = [
            [
                mask_id if i in text_word.tokens else token_id
                for i, token_id in enumerate(encoding.ids)
            ]
            for text_word in window
        ]
        log_probs = log_probabilities_at(model, hidden, [position] * len(window))  # [M, V]
        kls = scoring.kl_nats(whole, log_probs).tolist()
        target_log_probs = log_probs[:, target.token_id]  # [M]
        changes = (target_log_probs + target.nll_nats).tolist()
        probabilities = np.exp(target_log_probs).tolist()
        rows = zip(window, kls, changes, probabilities, strict=True)
        yield Occlusion(
            position, target, true is not None, tuple(OccludedWord(*row) for row in rows)
        )
