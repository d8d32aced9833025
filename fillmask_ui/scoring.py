"""Logits to probability, negative log-likelihood, rank, entropy and top-k.

Axes: M hidden positions, V vocabulary, K candidates. Everything is normalised over the whole
vocabulary, in float64: the sum over 250,000 float32 exponentials is otherwise off in the fifth
digit. Bits are nats divided by ln 2.
"""

from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import ModelOutputError, OptionError


@dataclass(frozen=True)
class TopK:
    """The K best tokens of each hidden position, best first."""

    token_ids: np.ndarray  # int64 [M, K]
    nll_nats: np.ndarray  # float64 [M, K], ascending along K


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    """Log of the softmax over the vocabulary.

    Args:
        logits: float [M, V], unnormalised; -inf stands for an impossible token.

    Returns:
        float64 [M, V], in nats.

    Raises:
        ModelOutputError: if a position has NaN or +inf, or nothing but -inf.

    >>> np.exp(log_probabilities(np.array([[0.0, 0.0, 0.0, 0.0]])))
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    logits = np.asarray(logits, dtype=np.float64)  # [M, V]
    if logits.ndim != 2:
        raise ValueError(f"logits must be [M, V], not {list(logits.shape)}")
    best = logits.max(axis=1, keepdims=True)  # [M, 1]; NaN wins every max
    broken = ~np.isfinite(best[:, 0])
    if broken.any():
        kinds = "NaN" if np.isnan(best).any() else "infinite logits"
        raise ModelOutputError(
            f"the model returned {kinds} at {int(broken.sum())} of {len(logits)} hidden "
            "positions, so no probability exists; this often comes from float16 overflow or a "
            "broken quantization: try the full-precision model"
        )
    shifted = logits - best
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def nll_nats(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Negative log-likelihood of the true token at each hidden position.

    Args:
        logits: float32 [M, V], unnormalised.
        targets: int64 [M], true token ids in [0, V).

    Returns:
        float64 [M], in nats; divide by ln 2 for bits. Lower is better.

    Raises:
        ValueError: if the two M differ; the message gives both shapes.
        ModelOutputError: if the logits are not finite.

    Source:
        Summed over positions it is the loss of BERT, arXiv:1810.04805, section 3.1.

    >>> nll_nats(np.zeros((1, 4), np.float32), np.array([2]))  # uniform over 4 words: ln 4
    array([1.38629436])
    """
    return target_nll_nats(log_probabilities(logits), targets)


def target_nll_nats(log_probs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """`nll_nats` for callers that already hold log-probabilities, float64 [M, V]."""
    targets = np.asarray(targets)
    if targets.shape != log_probs.shape[:1]:
        raise ValueError(
            f"targets {list(targets.shape)} do not fit logits {list(log_probs.shape)}: "
            "one target per position is wanted"
        )
    return -log_probs[np.arange(len(targets)), targets] + 0.0  # + 0.0 turns -0.0 into 0.0


def ranks(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Rank of the true token at each position, 1 for the best.

    A tie counts in favour of the lower token id, as in `top_k`.

    Args:
        scores: float [M, V], logits or log-probabilities.
        targets: int64 [M].

    Returns:
        int64 [M], in [1, V].

    >>> ranks(np.array([[0.1, 3.0, 2.0]]), np.array([2]))
    array([2])
    """
    targets = np.asarray(targets)
    own = scores[np.arange(len(targets)), targets][:, None]  # [M, 1]
    better = (scores > own).sum(axis=1)
    tied_before = ((scores == own) & (np.arange(scores.shape[1]) < targets[:, None])).sum(axis=1)
    return (better + tied_before + 1).astype(np.int64)


def entropy_nats(log_probs: np.ndarray) -> np.ndarray:
    """Entropy of the distribution over the vocabulary at each position.

    Args:
        log_probs: float64 [M, V].

    Returns:
        float64 [M], in nats, between 0 and ln V.

    >>> entropy_nats(np.log([[0.5, 0.5]]))  # a fair coin: ln 2
    array([0.69314718])
    """
    probabilities = np.exp(log_probs)
    # An impossible token adds nothing: p ln p tends to 0 as p does.
    finite = np.where(probabilities > 0, log_probs, 0.0)
    return -(probabilities * finite).sum(axis=1)


def top_k(log_probs: np.ndarray, k: int | None) -> TopK:
    """The K most probable tokens of each position.

    Args:
        log_probs: float64 [M, V].
        k: how many; None for all V; more than V gives V.

    Returns:
        Best first; ties go to the lower token id.

    Raises:
        OptionError: if k is below 1.

    >>> top_k(np.log([[0.2, 0.5, 0.3]]), 2).token_ids
    array([[1, 2]])
    """
    size = log_probs.shape[1]
    if k is not None and k < 1:
        raise OptionError(f"top-k must be at least 1, or 'all'; it was {k}")
    wanted = size if k is None else min(k, size)
    if wanted < size:
        # Everything at least as good as the K-th best, so that ties resolve by id as above.
        border = np.partition(log_probs, size - wanted, axis=1)[:, size - wanted]  # [M]
        rows = [np.flatnonzero(row >= edge) for row, edge in zip(log_probs, border, strict=True)]
    else:
        rows = [np.arange(size) for _ in log_probs]
    token_ids = np.empty((len(log_probs), wanted), dtype=np.int64)  # [M, K]
    for index, ids in enumerate(rows):
        order = np.argsort(-log_probs[index, ids], kind="stable")[:wanted]
        token_ids[index] = ids[order]
    return TopK(token_ids, -np.take_along_axis(log_probs, token_ids, axis=1) + 0.0)
