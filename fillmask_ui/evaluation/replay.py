"""A measured token once more: the ids that the model read then, and what it says now.

The row holds all of it: neither the texts nor the generator of the masks are needed.
"""

from dataclasses import replace

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.metrics.metric import Metric, Reading
from fillmask_ui.evaluation.rows import MaskedText, TokenScores
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import MaskFilling


def replay(
    row: MaskedText, metric: Metric, vocabulary: Vocabulary, entry: int, scores: TokenScores
) -> Reading:
    """What the model read when hidden token `entry`, in [0, M), of a row was scored.

    A `DataError` for a row of another vocabulary, or that does not say what the model read.
    """
    for token_id, token in zip(row.true_ids.tolist(), row.tokens, strict=True):
        if vocabulary.token(token_id) != token:
            raise DataError(
                f"text {row.id} was measured with a vocabulary whose token {token_id} is "
                f"{token!r}, and that of the model is {vocabulary.token(token_id)!r} now: the "
                "model has been replaced since; evaluate again"
            )
    return metric.reading(row, entry, scores, vocabulary.mask_id)


def with_stored(mask: MaskFilling, scores: TokenScores, entry: int) -> MaskFilling:
    """A replayed distribution with the row's own figures of its true token and its best guess.

    Texts that share a batch round each other in the seventh digit.
    """
    nll, best = float(scores.nll_nats[entry]), float(scores.top_probabilities[entry])
    probability = float(np.exp(-nll))
    (true,) = mask.scored
    known = {int(scores.top_ids[entry]): (best, float(-np.log(best)))}
    known[true.parts[0].token_id] = probability, nll
    candidates = []
    for own in mask.candidates:
        now = (own.probability, own.nll_nats)
        probability_then, nll_then = known.get(own.token_id, now)
        candidates.append(replace(own, probability=probability_then, nll_nats=nll_then))
    stored = replace(
        true,
        nll_nats=nll,
        probability=probability,
        rank=int(scores.ranks[entry]),
        parts=(replace(true.parts[0], nll_nats=nll),),
    )
    entropy = float(scores.entropy_nats[entry])
    return replace(mask, entropy_nats=entropy, candidates=tuple(candidates), scored=(stored,))
