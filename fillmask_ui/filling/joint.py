"""Fillings of all masks of a text together: the best, by beam search, and given ones."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.filling.prompt import filled_text, mask_positions
from fillmask_ui.filling.words import log_probabilities_at
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding, JointFilling, JointPart


def joint_fillings(
    model: MaskedLM, encoding: Encoding, *, count: int, beam_width: int
) -> tuple[JointFilling, ...]:
    """At most `count` best fillings of all masks together, best first.

    Each step fills the next mask of every hypothesis, scored given the masks filled before it,
    the later ones hidden, and keeps the `beam_width` best. With a beam as wide as the vocabulary
    the search is exhaustive.
    """
    vocabulary = model.vocabulary
    beam = [JointFilling("", 0.0, ())]
    for position in mask_positions(encoding, vocabulary):
        texts = []
        for known in beam:
            ids = list(encoding.ids)
            for part in known.parts:
                ids[part.position] = part.token_id
            texts.append(ids)
        log_probs = log_probabilities_at(model, texts, [position] * len(beam))
        top = scoring.top_k(log_probs, beam_width)  # [hypotheses, beam]
        grown = []
        for known, token_ids, nlls in zip(beam, top.token_ids, top.nll_nats, strict=True):
            for token_id, nll in zip(token_ids.tolist(), nlls.tolist(), strict=True):
                token, word = vocabulary.token(token_id), vocabulary.word(token_id)
                parts = (*known.parts, JointPart(position, token_id, token, word, nll))
                grown.append(JointFilling("", known.nll_nats + nll, parts))
        beam = sorted(grown, key=lambda filling: filling.nll_nats)[:beam_width]
    found = []
    for best in beam[:count]:
        chosen = {part.position: part.token_id for part in best.parts}
        found.append(replace(best, text=filled_text(encoding, vocabulary, chosen)))
    return tuple(found)


def joint_nll_nats(model: MaskedLM, encoding: Encoding, token_ids: Sequence[int]) -> float:
    """-ln of the joint probability of one token for each mask, by the same chain rule."""
    positions = mask_positions(encoding, model.vocabulary)
    ids, texts = list(encoding.ids), []
    for position, token_id in zip(positions, token_ids, strict=True):
        texts.append(tuple(ids))
        ids[position] = token_id
    log_probs = log_probabilities_at(model, texts, positions)  # [M, V]
    return sum(scoring.target_nll_nats(log_probs, np.array(token_ids)).tolist())
