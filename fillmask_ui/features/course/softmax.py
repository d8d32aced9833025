"""From the logits of one mask to the loss of its true word, step by step.

With logits z over V tokens, P(i) = e^(z_i / T) / sum of all e^(z_j / T) at the temperature T; the
loss is -ln P(true token).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui import scoring


@dataclass(frozen=True)
class SoftmaxRow:
    """One token of a softmax, or all that have no row of their own."""

    token_id: int | None  # None for all other tokens
    tokens: int  # how many it stands for
    logit: float  # with what was added; of all other tokens the largest
    exponential: float  # e^logit; the sum over all other tokens
    probability: float


@dataclass(frozen=True)
class Softmax:
    """A softmax over V tokens, of which some have a row."""

    rows: tuple[SoftmaxRow, ...]  # the last one is all other tokens
    total: float  # sum of all V exponentials
    nll_nats: float  # loss of the true token
    entropy_nats: float  # of the distribution, between 0 and ln V

    @property
    def probability(self) -> float:
        """Of the true token."""
        return math.exp(-self.nll_nats)


def top_tokens(logits: np.ndarray, target: int, most: int) -> tuple[int, ...]:
    """Ids of the best tokens, and of the true one if it is not among them.

    >>> top_tokens(np.array([0.0, 3.0, 1.0, 2.0]), 0, 2)
    (1, 3, 0)
    """
    log_probs = scoring.exponentials(logits[None]).log_probabilities  # [1, V]
    best = scoring.top_k(log_probs, most).token_ids[0].tolist()
    return tuple(dict.fromkeys([*best, target]))


def softmax_of(
    logits: np.ndarray,
    target: int,
    row_ids: Sequence[int],
    *,
    temperature: float = 1.0,
    added: float = 0.0,
) -> Softmax:
    """The softmax of one mask over logits [V], which are divided by a temperature above 0.

    `shown` has the ids of tokens with a row of their own, the true one (`target`) among them.
    """
    changed = (np.asarray(logits, np.float64) / temperature + added)[None]  # [1, V]
    values = scoring.exponentials(changed)
    log_probs = values.log_probabilities  # [1, V]
    probabilities = np.exp(log_probs[0])
    with np.errstate(over="ignore"):  # too large a number is infinite
        weights = np.exp(changed[0])

    def row(chosen: np.ndarray, token_id: int | None = None) -> SoftmaxRow:
        shares = changed[0, chosen].max(), weights[chosen].sum(), probabilities[chosen].sum()
        return SoftmaxRow(token_id, len(chosen), *map(float, shares))

    rows = [row(np.array([token_id]), token_id) for token_id in row_ids]
    remaining_ids = np.delete(np.arange(len(logits)), list(row_ids))
    return Softmax(
        (*rows, row(remaining_ids)) if len(remaining_ids) else tuple(rows),
        float(weights.sum()),
        float(scoring.target_nll_nats(log_probs, np.array([target]))[0]),
        float(values.entropy_nats[0]),
    )
