"""Which hidden positions a step fills, and which tokens it writes there.

Axes: M hidden positions from left to right, V vocabulary, C positions chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fillmask_ui.features.unmask.unmasking_options import LEFT_TO_RIGHT, NO_ORDER, UnmaskingConfig
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding


@dataclass(frozen=True, eq=False)
class Distributions:
    """The model's predictions at the hidden positions of a step, at temperature 1."""

    log_probs: np.ndarray  # float64 [M, V]
    entropies: np.ndarray  # float64 [M], in nats
    writable: np.ndarray  # float64 [M, V]: `log_probs`, -inf where a token may not be written


def confidences(distributions: Distributions, order: str) -> np.ndarray:
    """The model's confidence at each position, float64 [M]; the larger, the sooner it is filled.

    `top_prob`: the probability of the best token that may be written; `prob_diff`: that less the
    second one's; `entropy`: minus the entropy, in nats. Orders without one show `top_prob`.

    >>> probabilities = np.array([[0.6, 0.3, 0.1], [0.5, 0.1, 0.4]])
    >>> distributions = Distributions(np.log(probabilities), np.zeros(2), np.log(probabilities))
    >>> confidences(distributions, "prob_diff").round(2).tolist()
    [0.3, 0.1]
    """
    if order == "entropy":
        return -distributions.entropies
    best = np.exp(distributions.writable.max(axis=1))  # [M]
    if order != "prob_diff":
        return best
    return best - np.exp(np.partition(distributions.writable, -2, axis=1)[:, -2])


def choose_positions(
    distributions: Distributions, config: UnmaskingConfig, steps_left: int, rng: Generator
) -> np.ndarray:
    """Indices of the positions that a step fills, ascending; ties go to the left.

    Without a threshold floor(M / steps left), all of them in the last step. With one, from the
    surest on, each before which the uncertainties (1 - confidence, or entropy / ln V) sum to less.

    Source:
        The order by confidence and its noise: MaskGIT, arXiv:2202.04200, section 3.2.
    """
    count = len(distributions.log_probs)
    if steps_left <= 1:
        return np.arange(count)
    if config.order == LEFT_TO_RIGHT:
        ranking = np.arange(count)
    elif config.order == NO_ORDER:
        ranking = rng.permutation(count)
    else:
        scores = confidences(distributions, config.order)
        if config.confidence_temperature > 0:
            scores = scores + config.confidence_temperature * rng.gumbel(size=count)
        ranking = np.argsort(-scores, kind="stable")
    if config.threshold is None:
        return np.sort(ranking[: count // steps_left])
    if config.order == "entropy":
        unsure = distributions.entropies / np.log(distributions.log_probs.shape[1])
    else:
        unsure = 1 - confidences(distributions, config.order)
    before = np.concatenate([[0.0], np.cumsum(unsure[ranking])[:-1]])
    return np.sort(ranking[before < config.threshold])


def choose_tokens(
    distributions: Distributions, chosen: np.ndarray, config: UnmaskingConfig, rng: Generator
) -> np.ndarray:
    """Token ids, int64 [C]: the most probable at temperature 0 (ties: lower id), else drawn."""
    writable = distributions.writable[chosen]  # [C, V]
    if config.temperature == 0:
        return writable.argmax(axis=1)
    draws = rng.random(len(chosen)).tolist()
    scores = (row / config.temperature for row in writable)
    drawn = [_draw(row, config, draw) for row, draw in zip(scores, draws, strict=True)]
    return np.array(drawn, np.int64)


def _draw(scores: np.ndarray, config: UnmaskingConfig, draw: float) -> int:
    """One token id by [V] scores, unnormalised logarithms; `draw` is in [0, 1)."""
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores[order[0]])
    cumulative = np.cumsum(weights[: config.top_k])
    if config.top_p is not None:
        # The fewest that reach the share: all before the first that does, and that one.
        enough = np.searchsorted(cumulative, config.top_p * cumulative[-1])
        cumulative = cumulative[: enough + 1]
    index = np.searchsorted(cumulative, draw * cumulative[-1], side="right")
    return int(order[min(index, len(cumulative) - 1)])


class WritableTokens:
    """Which tokens may be written at a hidden position; made once for many texts.

    Special tokens never are, nor columns of the logits that have no token. With pieces `fitting`,
    sub-word pieces only continue a word: behind a mask that is already filled, or behind a letter
    of the text without a blank in between.
    """

    def __init__(self, model: MaskedLM, config: UnmaskingConfig) -> None:
        self._vocabulary = vocabulary = model.vocabulary
        self._fitting = config.pieces == "fitting"
        never = {*vocabulary.special_ids, vocabulary.mask_id, vocabulary.unk_id}
        self._allowed = np.zeros(model.signature.vocabulary_size, bool)  # [V]
        self._allowed[: vocabulary.size] = True
        self._allowed[[token_id for token_id in never if token_id is not None]] = False
        if self._fitting:
            self._continuations = np.zeros_like(self._allowed)  # [V], those that continue a word
            for token_id in np.flatnonzero(self._allowed).tolist():
                begins = vocabulary.word(token_id)[:1].isalnum()
                self._continuations[token_id] = begins and vocabulary.is_continuation(token_id)
            # Byte-level vocabularies write the first word of a text without the mark of a blank.
            first = vocabulary.encode_word("a", "")[:1]
            self._bare_start = any(map(vocabulary.is_continuation, first))

    def allowed(self, encoding: Encoding, ids: Sequence[int], hidden: Sequence[int]) -> np.ndarray:
        """Bool [M, V], of the text with all its masks and its T token ids now."""
        if not self._fitting:
            return np.broadcast_to(self._allowed, (len(hidden), len(self._allowed)))
        fits = np.array([self._has_word_before(encoding, ids, position) for position in hidden])
        return self._allowed & (fits[:, None] | ~self._continuations)

    def _has_word_before(self, encoding: Encoding, ids: Sequence[int], position: int) -> bool:
        before = position - 1
        if before < 0 or encoding.special[before]:
            return self._bare_start
        is_text = encoding.ids[before] != self._vocabulary.mask_id
        if is_text and encoding.spans[position].start > encoding.spans[before].end:
            return False  # a blank of the text stands in between
        still_hidden = ids[before] == self._vocabulary.mask_id
        return not still_hidden and self._vocabulary.word(ids[before])[-1:].isalnum()
