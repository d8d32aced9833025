"""Which words of a text the guess at a mask rests on.

Definition. Each other word of the text is hidden in turn, and the distribution at the mask is
compared with the one that the whole text gives: KL(P with the word || P without it), and how the
log-probability of one token changes, the true one or else the first candidate. A word of n
sub-tokens gives way to n masks, so that every other token keeps its position and nothing but the
word is lost; leaving it out would move what stands behind it as well.

Rivals: attention weights say where a layer looks, not what the result rests on; gradients describe
a small change of an embedding, not a word that is missing.

Source:
    Occlusion: Zeiler and Fergus 2014, arXiv:1311.2901; of words ("erasure"): Li et al. 2016,
    arXiv:1612.08220.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import windows
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling.predict import candidates_of
from fillmask_ui.filling.prompt import encode_masked, mask_position
from fillmask_ui.filling.surprise import WINDOW_TOKENS
from fillmask_ui.filling.text_words import TextWord, text_words
from fillmask_ui.filling.words import ROWS_PER_CALL, log_probabilities_at, split_into_tokens
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Candidate, Encoding


@dataclass(frozen=True)
class OccludedWord:
    """What the guess at a mask loses without one other word."""

    word: TextWord
    kl_nats: float  # KL(P of the whole text || P with this word hidden), 0 or more
    change_nats: float  # log-probability of the token in question without the word, less with it
    probability: float  # of the token in question without the word


@dataclass(frozen=True)
class Occlusion:
    """The other words of a text, seen from one mask."""

    position: int  # index of the mask in the token sequence, special tokens counted
    target: Candidate  # the token in question, as the whole text gives it
    is_true: bool  # whether that is the true word, not the first candidate
    words: tuple[OccludedWord, ...]  # from left to right


def occlude(model: MaskedLM, text: str, mask: int = 0, *, word: str = "") -> Occlusion:
    """How far the guess at a mask moves when each other word is hidden in turn.

    Args:
        model: from `load_model`.
        text: with one mask or more; the other masks stay.
        mask: which one, from the left, from 0.
        word: the true word there; where it is not exactly one token, the first candidate's
            log-probability is followed instead.

    Raises:
        TextError: if the text is blank, has no mask or is too long.
        OptionError: if there is no such mask.
        ModelOutputError: if the model returns NaN.

    >>> from fillmask_ui import load_model
    >>> text = "Paris is the capital of [MASK]."
    >>> found = occlude(load_model("embedded"), text)
    >>> max(found.words, key=lambda own: own.kl_nats).word.text
    'Paris'
    """
    first, *rest = occlusion_windows(model, text, mask, word=word)
    return replace(first, words=sum((window.words for window in rest), first.words))


def occlusion_windows(
    model: MaskedLM,
    text: str,
    mask: int = 0,
    *,
    word: str = "",
    start: int = 0,
    window_tokens: int = WINDOW_TOKENS,
) -> Iterator[Occlusion]:
    """`occlude` as it is computed: some words at a time; none where no others are left.

    `start` is the number of the first word wanted, as `text_words` counts them; `window_tokens`
    how much the model reads for one window, unless one word takes more.
    """
    encoding = encode_masked(model, text)
    position = mask_position(encoding, model.vocabulary, mask)
    whole = log_probabilities_at(model, [encoding.ids], [position])  # [1, V]
    true = _true(model, encoding, position, word, whole)
    best = scoring.top_k(whole, 1)
    target = true or candidates_of(model.vocabulary, best.token_ids[0], best.nll_nats[0])[0]
    words = text_words(encoding, model.vocabulary)[start:]
    if not words:
        yield Occlusion(position, target, true is not None, ())
    for window in windows(
        words, lambda _: len(encoding), max_size=window_tokens, max_items=ROWS_PER_CALL
    ):
        hidden = [_without(encoding, own, model.vocabulary.mask_id) for own in window]
        log_probs = log_probabilities_at(model, hidden, [position] * len(window))  # [M, V]
        kls = kl_nats(whole, log_probs).tolist()
        own = log_probs[:, target.token_id]  # [M]
        rows = zip(window, kls, (own + target.nll_nats).tolist(), np.exp(own).tolist(), strict=True)
        lost = tuple(OccludedWord(*row) for row in rows)
        yield Occlusion(position, target, true is not None, lost)


def kl_nats(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """KL(first || second) of log-probabilities, float64 [M, V] or [1, V]; float64 [M], in nats.

    >>> kl_nats(np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]])).round(4)
    array([0.1438])
    """
    with np.errstate(invalid="ignore"):
        products = np.exp(first) * (first - second)
    # An impossible token adds nothing: p ln p tends to 0 as p does. Rounding may go below 0.
    return np.maximum(np.where(np.exp(first) > 0, products, 0.0).sum(axis=1), 0.0)


def _without(encoding: Encoding, word: TextWord, mask_id: int) -> list[int]:
    return [mask_id if i in word.tokens else own for i, own in enumerate(encoding.ids)]


def _true(
    model: MaskedLM, encoding: Encoding, position: int, word: str, whole: np.ndarray
) -> Candidate | None:
    """The true word where it is one token."""
    try:
        split = split_into_tokens(model, encoding, position, [word] if word else [])
    except (OptionError, TextError):  # it cannot be spelled, or is too long
        return None
    ids = np.array([own.ids[0] for own in split if len(own.ids) == 1], dtype=np.int64)
    if not len(ids):
        return None
    (true,) = candidates_of(model.vocabulary, ids, scoring.target_nll_nats(whole, ids))
    return replace(true, rank=int(scoring.ranks(whole, ids)[0]))
