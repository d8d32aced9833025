"""Logits to probability, negative log-likelihood, rank, entropy and top-k.

Axes: M hidden positions, V vocabulary, K candidates. Logits are [M, V], unnormalised, -inf for an
impossible token. Targets are int64 [M], token ids in [0, V), else a `ValueError`. Losses are in
nats; divide by ln 2 for bits. Sums are float64: over 250,000 float32 exponentials they would be off
in the fifth digit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import ModelOutputError, OptionError

# Logits that are scored at a time: with their exponentials they stay in the cache of a core.
CHUNK_LOGITS = 360_000


@dataclass(frozen=True)
class TopK:
    """The K best tokens of each hidden position, best first."""

    token_ids: np.ndarray  # int64 [M, K]
    nll_nats: np.ndarray  # float64 [M, K], ascending along K


@dataclass(frozen=True, eq=False)
class Exponentials:
    """A softmax before it is divided by its sum."""

    best_ids: np.ndarray  # int64 [M], the most probable token, the lower id of a tie
    shifted: np.ndarray  # float64 [M, V], logits less the largest of their position
    weights: np.ndarray  # float64 [M, V], e^ of these
    totals: np.ndarray  # float64 [M], their sums

    @property
    def log_probabilities(self) -> np.ndarray:
        return self.shifted - np.log(self.totals)[:, None]

    @property
    def entropy_nats(self) -> np.ndarray:
        means = _weighted_sums(self.weights, self.shifted) / self.totals
        # Rounding may leave a certain distribution a little below zero.
        return np.maximum(np.log(self.totals) - means, 0.0)


@dataclass(frozen=True, eq=False)
class TargetScores:
    """The true token at each hidden position, and the model's best guess."""

    nll_nats: np.ndarray  # float64 [M], of the true token
    ranks: np.ndarray  # int64 [M], of the true token, 1 for the best
    entropy_nats: np.ndarray  # float64 [M], of the distribution
    top_ids: np.ndarray  # int64 [M], the most probable token, the lower id of a tie
    top_probabilities: np.ndarray  # float64 [M], its probability


def exponentials(logits: np.ndarray, out: np.ndarray | None = None) -> Exponentials:
    """The softmax in parts; `out`, float64 [2, at least M, V], is memory to use.

    Raises:
        ModelOutputError: if a position has NaN or +inf, or nothing but -inf.
    """
    logits = np.asarray(logits)
    best_ids = logits.argmax(axis=1)  # [M]; NaN counts as the largest
    best = logits[np.arange(len(logits)), best_ids].astype(np.float64)  # [M]
    broken = ~np.isfinite(best)
    if broken.any():
        kinds = "NaN" if np.isnan(best).any() else "infinite logits"
        raise ModelOutputError(
            f"the model returned {kinds} at {int(broken.sum())} of {len(logits)} hidden "
            "positions, so no probability exists: its weights are damaged, overflow float16, were "
            "quantized badly or do not go with config.json; fetch all again, or take the "
            "full-precision model"
        )
    if out is None:
        out = np.empty((2, *logits.shape))
    shifted, weights = out[:, : len(logits)]  # each [M, V]
    np.copyto(shifted, logits)  # subtracting in place is twice as fast as from float32
    shifted -= best[:, None]
    np.exp(shifted, out=weights)
    return Exponentials(best_ids, shifted, weights, weights.sum(axis=1))


def chunks(logits: np.ndarray) -> Iterator[slice]:
    """Cut [M, V] into parts, at least one, that stay in the cache."""
    step = _chunk_rows(logits)
    return (slice(start, start + step) for start in range(0, max(1, len(logits)), step))


def scratch(logits: np.ndarray) -> np.ndarray:
    """The `out` of `exponentials` for one chunk after another: fresh memory costs as much time."""
    return np.empty((2, min(len(logits), _chunk_rows(logits)), logits.shape[1]))


def _chunk_rows(logits: np.ndarray) -> int:
    return max(1, CHUNK_LOGITS // logits.shape[1])


def score_targets(values: Exponentials, logits: np.ndarray, targets: np.ndarray) -> TargetScores:
    """Scores of each hidden position; `values` are the `exponentials` of the logits."""
    return TargetScores(
        nll_nats=np.log(values.totals) - _picked(values.shifted, np.asarray(targets)),
        ranks=ranks(logits, targets),
        entropy_nats=values.entropy_nats,
        top_ids=values.best_ids,
        top_probabilities=1 / values.totals,
    )


def _picked(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[M], one column of each row of [M, V]."""
    if columns.shape != values.shape[:1]:
        raise ValueError(
            f"targets {list(columns.shape)} do not fit logits {list(values.shape)}: "
            "one target per position is wanted"
        )
    if len(columns) and not 0 <= columns.min() <= columns.max() < values.shape[1]:
        raise ValueError(f"targets must be token ids below {values.shape[1]:,}, not {columns}")
    return values[np.arange(len(columns)), columns]


def nll_nats(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Negative log-likelihood of the true token at each hidden position, float64 [M], in nats.

    Summed over positions it is the loss of BERT, arXiv:1810.04805, section 3.1.

    >>> nll_nats(np.zeros((1, 4), np.float32), np.array([2]))  # uniform over 4 words: ln 4
    array([1.38629436])
    """
    return target_nll_nats(exponentials(logits).log_probabilities, targets)


def target_nll_nats(log_probs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """`nll_nats` of log-probabilities, float64 [M, V]."""
    return -_picked(log_probs, np.asarray(targets)) + 0.0  # + 0.0 turns -0.0 into 0.0


def ranks(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Rank of the true token by logits or log-probabilities, int64 [M], 1 for the best.

    A tie counts in favour of the lower token id.

    >>> ranks(np.array([[0.1, 3.0, 2.0]]), np.array([2]))
    array([2])
    """
    targets = np.asarray(targets)
    target_scores = _picked(scores, targets).tolist()
    better = [
        np.count_nonzero(row[:target] >= score) + np.count_nonzero(row[target + 1 :] > score)
        for row, target, score in zip(scores, targets.tolist(), target_scores, strict=True)
    ]
    return np.array(better, dtype=np.int64) + 1


def kl_nats(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """KL(first || second), float64 [M], not negative, of log-probabilities; either may be [1, V].

    >>> kl_nats(np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]])).round(4)
    array([0.1438])
    """
    return np.maximum(_weighted_sums(np.exp(first), log_ratio(first, second)), 0.0)


def _weighted_sums(weights: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """[M], over the vocabulary; an impossible token adds nothing, as p ln p tends to 0."""
    with np.errstate(invalid="ignore"):
        sums = np.einsum("mv,mv->m", weights, amounts)
    if np.isnan(sums).any():
        sums = np.einsum("mv,mv->m", weights, np.where(weights > 0, amounts, 0.0))
    return sums


def log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The difference of two arrays of logarithms, 0 where both are -inf: equally impossible."""
    with np.errstate(invalid="ignore"):
        ratio = np.subtract(first, second)
    # Arrays with a `where` take several times as long.
    return np.where(first == second, 0, ratio) if np.isnan(ratio).any() else ratio


def expectation(values: Exponentials, amounts: np.ndarray) -> np.ndarray:
    """Mean of amounts, [M, V], under each distribution: float64 [M], not negative.

    The mean of the `log_ratio` to another distribution is the KL divergence from it, in nats.
    """
    return np.maximum(_weighted_sums(values.weights, amounts) / values.totals, 0.0)


def divergences(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """KL(first || second) and Jensen-Shannon divergence in nats, of two arrays of logits [1, V].

    If their vocabularies have two widths (one may be padded), over the tokens that both have.
    Jensen-Shannon is the mean KL of either from the mean of both (Lin 1991, doi:10.1109/18.61115).
    """
    width = min(first.shape[1], second.shape[1])
    p, q = exponentials(first[:, :width]), exponentials(second[:, :width])
    ratio = log_ratio(p.log_probabilities, q.log_probabilities)
    p_to_mean = np.log(2) - np.logaddexp(0, -ratio)  # ln p - ln (p + q)/2
    q_to_mean = np.log(2) - np.logaddexp(0, ratio)
    js_nats = (expectation(p, p_to_mean) + expectation(q, q_to_mean)) / 2
    return float(expectation(p, ratio)[0]), float(js_nats[0])


def top_k(log_probs: np.ndarray, k: int | None) -> TopK:
    """The K most probable tokens of each position, all V for None; ties go to the lower token id.

    >>> top_k(np.log([[0.2, 0.5, 0.3]]), 2).token_ids
    array([[1, 2]])
    """
    size = log_probs.shape[1]
    if k is not None and k < 1:
        raise OptionError(f"top-k must be at least 1, or 'all'; it was {k}")
    count = size if k is None else min(k, size)
    token_ids = np.empty((len(log_probs), count), dtype=np.int64)  # [M, K]
    for row, best_ids in zip(log_probs, token_ids, strict=True):
        border = np.partition(row, size - count)[size - count]
        ids = np.flatnonzero(row >= border)  # all that tie with the last are among them
        best_ids[:] = ids[np.argsort(-row[ids], kind="stable")[:count]]
    return TopK(token_ids, -np.take_along_axis(log_probs, token_ids, axis=1) + 0.0)
