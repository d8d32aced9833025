"""The same candidates at a mask of one sentence and at a mask of another.

Definition. Of each candidate, P in the first sentence and P in the second, both normalised over the
whole vocabulary, and ln of their ratio. Candidates are the best of either sentence and the words
asked about; the largest difference of probability comes first. Where the sentences differ in one
word (nurse, doctor), the difference is what that word does to the guess.

Source:
    Minimal pairs of templates for bias: Kurita et al. 2019, arXiv:1906.07337.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.errors import OptionError
from fillmask_ui.filling.predict import MAX_TOP_K, check_work
from fillmask_ui.filling.prompt import encode_masked, mask_position
from fillmask_ui.filling.words import (
    log_probabilities_at,
    split_into_tokens,
    tokens_read,
    word_scores,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class PairedCandidate:
    """One word at a mask of either sentence."""

    word: str  # without the tokenizer's marks, or as asked
    token_id: int | None  # where it is one token, in [0, V)
    nll_nats: tuple[float, float]  # -ln P in the first sentence and in the second
    asked: bool = False  # whether the user asked about it

    @property
    def probabilities(self) -> tuple[float, float]:
        return exp(-self.nll_nats[0]), exp(-self.nll_nats[1])

    @property
    def difference(self) -> float:
        """P in the first sentence less P in the second."""
        return self.probabilities[0] - self.probabilities[1]

    @property
    def log_ratio_nats(self) -> float:
        """Logarithm of P in the first by P in the second; NaN where both are 0."""
        return self.nll_nats[1] - self.nll_nats[0]


@dataclass(frozen=True)
class MaskPair:
    """Two sentences, one mask of each."""

    first: Encoding
    second: Encoding
    candidates: tuple[PairedCandidate, ...]  # the largest difference of probability first


def pair_masks(
    model: MaskedLM,
    first: str,
    second: str,
    *,
    masks: tuple[int, int] = (0, 0),
    top_k: int = 5,
    words: Sequence[str] = (),
    most_work: int | None = None,
) -> MaskPair:
    """The same candidates at a mask of either sentence.

    Args:
        model: from `load_model`.
        first: with one mask or more.
        second: the same; its other words may differ in any way.
        masks: which mask of each, from the left, from 0.
        top_k: how many of the best tokens of each sentence, 1 to 100.
        words: more words, of any number of sub-tokens.
        most_work: as for `fill`.

    Raises:
        TextError: if a text is blank, has no mask or is too long.
        OptionError: if there is no such mask, or as of `score_candidates`.
        ModelOutputError: if the model returns NaN.

    >>> from fillmask_ui import load_model
    >>> said = "The {} said that [MASK] was tired.".format
    >>> pair = pair_masks(load_model("embedded"), said("king"), said("queen"), words=["she"])
    >>> pair.candidates[0].difference > 0, [own.word for own in pair.candidates if own.asked]
    (True, ['she'])
    """
    if not 1 <= top_k <= MAX_TOP_K:
        raise OptionError(f"top-k was {top_k:,}: give a number from 1 to {MAX_TOP_K}")
    sides = [_side(model, *side) for side in zip((first, second), masks, strict=True)]
    pieces = [split_into_tokens(model, side.encoding, side.position, words) for side in sides]
    read = [tokens_read(side.encoding, own) for side, own in zip(sides, pieces, strict=True)]
    check_work(sum(read), most_work)
    scored = [
        word_scores(model, side.encoding, side.position, own, side.log_probs)
        for side, own in zip(sides, pieces, strict=True)
    ]
    best = [scoring.top_k(side.log_probs, top_k).token_ids[0].tolist() for side in sides]
    found = [
        PairedCandidate(
            own.word,
            own.parts[0].token_id if len(own.parts) == 1 else None,
            (own.nll_nats, other.nll_nats),
            asked=True,
        )
        for own, other in zip(*scored, strict=True)
    ]
    known = {own.token_id for own in found}
    for token_id in dict.fromkeys([*best[0], *best[1]]):
        if token_id not in known:
            nlls = [float(-side.log_probs[0, token_id]) for side in sides]
            word = model.vocabulary.word(token_id)
            found.append(PairedCandidate(word, token_id, (nlls[0], nlls[1])))
    ordered = sorted(found, key=lambda own: -abs(own.difference))
    return MaskPair(sides[0].encoding, sides[1].encoding, tuple(ordered))


@dataclass(frozen=True, eq=False)
class _Side:
    encoding: Encoding
    position: int  # of the mask in question
    log_probs: np.ndarray  # float64 [1, V]


def _side(model: MaskedLM, text: str, mask: int) -> _Side:
    encoding = encode_masked(model, text)
    position = mask_position(encoding, model.vocabulary, mask)
    return _Side(encoding, position, log_probabilities_at(model, [encoding.ids], [position]))
