"""Which hidden positions a step fills, and which tokens it writes there.

Pure functions of probabilities and a generator, so that a test can hold each against a plain loop.
Axes: M hidden positions from left to right, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fillmask_ui.scoring import Exponentials
from fillmask_ui.unmasking.config import LEFT_TO_RIGHT, NO_ORDER, UnmaskingConfig


@dataclass(frozen=True, eq=False)
class Allowed:
    """The distributions of a step, and what of them may be written."""

    log_probs: np.ndarray  # float64 [M, V], over the whole vocabulary, at temperature 1
    entropies: np.ndarray  # float64 [M], in nats, over the whole vocabulary
    allowed: np.ndarray  # bool [M, V]

    @classmethod
    def of(cls, values: Exponentials, allowed: np.ndarray) -> "Allowed":
        """From a softmax; `allowed` is bool [M, V]."""
        return cls(values.log_probabilities, values.entropy_nats, allowed)

    @property
    def masked(self) -> np.ndarray:
        """Float64 [M, V]: `log_probs`, -inf where a token may not be written."""
        return np.where(self.allowed, self.log_probs, -np.inf)


def confidences(found: Allowed, order: str) -> np.ndarray:
    """How sure each position is, float64 [M]: the larger, the sooner it is filled.

    `top_prob`: the probability of the best token that may be written; `prob_diff`: that less the
    second one's; `entropy`: minus the entropy, in nats. Orders without one show `top_prob`.

    >>> probabilities = np.array([[0.6, 0.3, 0.1], [0.5, 0.1, 0.4]])
    >>> found = Allowed(np.log(probabilities), np.zeros(2), np.ones((2, 3), bool))
    >>> confidences(found, "prob_diff").round(2).tolist()
    [0.3, 0.1]
    """
    if order == "entropy":
        return -found.entropies
    masked = found.masked
    best = np.exp(masked.max(axis=1))  # [M]
    if order != "prob_diff":
        return best
    if masked.shape[1] == 1:
        return best
    return best - np.exp(np.partition(masked, -2, axis=1)[:, -2])


def uncertainties(found: Allowed, order: str) -> np.ndarray:
    """What a threshold adds up, float64 [M]: 1 - confidence, or the entropy divided by ln V."""
    if order == "entropy":
        return found.entropies / np.log(found.log_probs.shape[1])
    return 1 - confidences(found, order)


def choose_positions(
    found: Allowed, config: UnmaskingConfig, steps_left: int, rng: Generator
) -> np.ndarray:
    """Indices in [0, M), ascending, of the positions that a step fills.

    Without a threshold floor(M / steps left), all of them in the last step. With one, from the
    surest on: each before which the uncertainties sum to less than the threshold. Ties go to the
    position further left.

    Source:
        The order by confidence and its noise: MaskGIT, arXiv:2202.04200, section 3.2.
    """
    count = len(found.log_probs)
    if steps_left <= 1:
        return np.arange(count)
    if config.order == LEFT_TO_RIGHT:
        ranking = np.arange(count)
    elif config.order == NO_ORDER:
        ranking = rng.permutation(count)
    else:
        scores = confidences(found, config.order)
        if config.confidence_temperature > 0:
            scores = scores + config.confidence_temperature * rng.gumbel(size=count)
        ranking = np.argsort(-scores, kind="stable")
    if config.threshold is None:
        return np.sort(ranking[: count // steps_left])
    own = uncertainties(found, config.order)[ranking]
    before = np.concatenate([[0.0], np.cumsum(own)[:-1]])
    return np.sort(ranking[before < config.threshold])


def choose_tokens(
    found: Allowed, chosen: np.ndarray, config: UnmaskingConfig, rng: Generator
) -> np.ndarray:
    """Token ids, int64 [chosen], for some positions.

    At temperature 0 the most probable one that may be written, the lower id of a tie; else one
    drawn at that temperature among the `top_k`, or the `top_p`, most probable.
    """
    masked = found.masked[chosen]  # [C, V]
    if config.temperature == 0:
        return masked.argmax(axis=1)
    draws = rng.random(len(chosen))
    drawn = [
        _draw(row / config.temperature, config, draw)
        for row, draw in zip(masked, draws, strict=True)
    ]
    return np.array(drawn, np.int64)


def _draw(scores: np.ndarray, config: UnmaskingConfig, draw: float) -> int:
    """One token id by [V] scores, unnormalised logarithms; `draw` is in [0, 1)."""
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores[order[0]])
    if config.top_k is not None:
        weights = weights[: config.top_k]
    cumulative = np.cumsum(weights)
    if config.top_p is not None:
        # The fewest that reach the share: all before the first that does, and that one.
        enough = np.searchsorted(cumulative, config.top_p * cumulative[-1])
        cumulative = cumulative[: enough + 1]
    place = np.searchsorted(cumulative, draw * cumulative[-1], side="right")
    return int(order[min(place, len(cumulative) - 1)])
