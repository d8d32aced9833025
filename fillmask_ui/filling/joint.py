"""Best fillings of all masks of a text together, by beam search."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_ui import scoring
from fillmask_ui.filling.prompt import filled_text, mask_positions
from fillmask_ui.filling.query import log_probabilities_at
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding, JointFilling, JointPart


def joint_fillings(
    model: MaskedLM, encoding: Encoding, *, count: int, beam_width: int
) -> tuple[JointFilling, ...]:
    """Best fillings of all masks together, by beam search from left to right.

    Each step fills the next mask of every hypothesis, scored given the masks filled before it,
    the later ones hidden, and keeps the `beam_width` best. With a beam as wide as the vocabulary
    the search is exhaustive.

    Args:
        model: from `load_model`.
        encoding: with m masks, m >= 1.
        count: fillings wanted.
        beam_width: hypotheses kept.

    Returns:
        Best first, at most `count`.
    """
    vocabulary = model.vocabulary
    masks = mask_positions(encoding, vocabulary)
    beam = [_Hypothesis(encoding.ids, 0.0, ())]
    for position in masks:
        log_probs = log_probabilities_at(model, [h.ids for h in beam], [position] * len(beam))
        top = scoring.top_k(log_probs, beam_width)  # [hypotheses, beam]
        grown = [
            hypothesis.filled(
                JointPart(
                    position,
                    int(token_id),
                    vocabulary.token(int(token_id)),
                    vocabulary.word(int(token_id)),
                    float(nll),
                )
            )
            for hypothesis, ids, nlls in zip(beam, top.token_ids, top.nll_nats, strict=True)
            for token_id, nll in zip(ids, nlls, strict=True)
        ]
        beam = sorted(grown, key=lambda h: h.nll_nats)[:beam_width]
    return tuple(
        JointFilling(
            text=filled_text(
                encoding, vocabulary, {part.position: part.token_id for part in hypothesis.parts}
            ),
            nll_nats=hypothesis.nll_nats,
            parts=hypothesis.parts,
        )
        for hypothesis in beam[:count]
    )


@dataclass(frozen=True)
class _Hypothesis:
    """A partly filled text of the beam."""

    ids: tuple[int, ...]
    nll_nats: float
    parts: tuple[JointPart, ...]

    def filled(self, part: JointPart) -> _Hypothesis:
        ids = (*self.ids[: part.position], part.token_id, *self.ids[part.position + 1 :])
        return _Hypothesis(ids, self.nll_nats + part.nll_nats, (*self.parts, part))
