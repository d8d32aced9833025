"""A measured token once more: the very ids that the model read, and what it says there now.

Everything is in the row, so neither the texts nor the generator of the masks are needed: a run
replays also where its file is gone, or where masks came from one stream through all texts.
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
    """What the model read when a hidden token was scored.

    Args:
        row: of the text.
        metric: by which it was hidden.
        vocabulary: of the model.
        entry: which of the M hidden tokens, in [0, M).
        scores: of the model, in the row.

    Raises:
        DataError: if the vocabulary is not the one that the row was made with, or the row does not
            say what the model read.
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
    """A replayed distribution, its true token scored, with the row's own figures of token `entry`.

    Texts that share a batch round each other in the seventh digit, so that a text alone gives
    almost the same.
    """
    nll, best = float(scores.nll_nats[entry]), float(scores.top_probabilities[entry])
    probability = float(np.exp(-nll))
    (true,) = mask.scored
    known = {int(scores.top_ids[entry]): (best, float(-np.log(best)))}
    known[true.parts[0].token_id] = probability, nll
    candidates = [
        replace(c, probability=known[c.token_id][0], nll_nats=known[c.token_id][1])
        if c.token_id in known
        else c
        for c in mask.candidates
    ]
    stored = replace(
        true,
        nll_nats=nll,
        probability=probability,
        rank=int(scores.ranks[entry]),
        parts=(replace(true.parts[0], nll_nats=nll),),
    )
    entropy = float(scores.entropy_nats[entry])
    return replace(mask, entropy_nats=entropy, candidates=tuple(candidates), scored=(stored,))
