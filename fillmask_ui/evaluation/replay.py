"""A measured token once more: the very ids that the model read, and what it says there now.

Everything is in the row, so neither the texts nor the generator of the masks are needed: a run
replays also where its file is gone, or where masks came from one stream through all texts. Of a
text that was filled step by step the row has the step and the token of each position, which is
what the model read unless tokens were hidden again.
"""

from dataclasses import dataclass, replace

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.rows import MaskedText, TokenScores, UnmaskedScores
from fillmask_ui.evaluation.schemes import Scheme, Unmasking
from fillmask_ui.masking import HiddenTokens
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import MaskFilling


@dataclass(frozen=True, eq=False)
class Reading:
    """How a model read a text when one hidden token was scored; T tokens, M hidden positions."""

    ids: np.ndarray  # int64 [T], what the model read
    asked: np.ndarray  # int64, entries of `cols` that were scored in this very reading
    position: int  # of the token, in [0, T)
    true_id: int  # the token to be found


def replay(
    row: MaskedText,
    scheme: Scheme,
    vocabulary: Vocabulary,
    entry: int,
    scores: TokenScores | None = None,
) -> Reading:
    """What the model read when a hidden token was scored.

    Args:
        row: of the text.
        scheme: by which it was hidden.
        vocabulary: of the model.
        entry: which of the M hidden tokens, in [0, M).
        scores: of the model; needed of a text that it filled step by step.

    Raises:
        DataError: if the vocabulary is not the one that the row was made with, or the row does not
            say what the model read.
        TypeError: if such scores are needed and not given.
    """
    for token_id, token in zip(row.true_ids.tolist(), row.tokens, strict=True):
        if vocabulary.token(token_id) != token:
            raise DataError(
                f"text {row.id} was measured with a vocabulary whose token {token_id} is "
                f"{token!r}, and that of the model is {vocabulary.token(token_id)!r} now: the "
                "model has been replaced since; evaluate again"
            )
    position, true_id = int(row.cols[entry]), int(row.true_ids[entry])
    input_ids = row.ids.copy()
    if isinstance(scheme, Unmasking):
        if not isinstance(scores, UnmaskedScores):
            raise TypeError("what a model read of a text that it filled depends on its scores")
        if scheme.decoding.remask:
            raise DataError(
                "this run hid tokens again that it had written (--remask), and stored what stood "
                "at the end: what the model read in between cannot be shown"
            )
        own = scores.steps[entry]
        input_ids[row.cols] = np.where(scores.steps < own, scores.written_ids, vocabulary.mask_id)
        return Reading(input_ids, np.flatnonzero(scores.steps == own), position, true_id)
    input_ids[row.cols] = row.shown_ids
    until = scheme.hidden_until(row)
    hidden = HiddenTokens(row.ids, input_ids, row.cols, row.kinds, vocabulary.mask_id, until)
    view = 0 if until is None else entry
    return Reading(hidden.view(view), hidden.scored(view), position, true_id)


def with_stored(mask: MaskFilling, scores: TokenScores, entry: int) -> MaskFilling:
    """A replayed distribution with the stored figures of the row where it has them.

    Texts that share a batch round each other in the seventh digit, so that a text alone gives
    almost the same.

    Args:
        mask: with the true token as its one scored word.
        scores: of the model, in the row.
        entry: which of the M hidden tokens.
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
