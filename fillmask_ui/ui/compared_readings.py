"""One token of a run under both of its models, each asked of the very input that it read then."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.comparing import ComparedCandidate, MaskComparison, same_tokenizer
from fillmask_ui.comparing.masks import Said, divergences
from fillmask_ui.records import Candidate, ScoredWord
from fillmask_ui.ui.replay import Replayed

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session

BY_NAME = (
    "the two models have different tokenizers, so the words that both list are paired by name, and "
    "their distributions have no KL or Jensen-Shannon divergence"
)


@dataclass(frozen=True, eq=False)
class _Side:
    """What one model says; figures that the run has stored are the run's."""

    replayed: Replayed
    logits: np.ndarray  # float32 [V], raw, at the token

    @cached_property
    def values(self) -> scoring.Exponentials:
        return scoring.exponentials(self.logits[None])

    @cached_property
    def listed(self) -> dict[int, Candidate]:
        return {own.token_id: own for own in self.replayed.mask.candidates}

    @property
    def true(self) -> ScoredWord:
        return self.replayed.mask.scored[0]

    def says(self, token_id: int | None) -> Said:
        """Its score of a token."""
        if token_id is None:
            return Said()
        own: Candidate | ScoredWord | None = self.listed.get(token_id)
        if own is None and token_id == self.true.parts[0].token_id:
            own = self.true
        score: tuple[float, float, int | None]
        if own is None:
            log_probs, targets = self.values.log_probabilities, np.array([token_id])  # [1, V]
            nll = float(scoring.target_nll_nats(log_probs, targets)[0])
            score = float(np.exp(-nll)), nll, int(scoring.ranks(log_probs, targets)[0])
        else:
            score = own.probability, own.nll_nats, own.rank
        token = self.replayed.model.vocabulary.token(token_id)
        return Said(token, token_id, *score, token_id in self.listed)

    def names(self) -> dict[str, int]:
        """What it lists, and the token to be found, by the word: the best of a word's tokens."""
        word = self.replayed.model.vocabulary.word
        true_id = self.true.parts[0].token_id
        return {word(token_id): token_id for token_id in (true_id, *reversed(self.listed))}


def compared_readings(session: Session, first: Replayed, second: Replayed) -> MaskComparison:
    """Both models at one token of a run, as `comparing.compare` has a mask of any sentence.

    The losses of the hidden token are those of the run's rows. It is marked as asked about.
    """
    one, two = (
        _Side(own, session.logits_at(own.model, tuple(own.reading.ids.tolist()), position))
        for own in (first, second)
        for position in (own.reading.position,)
    )
    alike = same_tokenizer(first.model.vocabulary, second.model.vocabulary)
    words: dict[tuple[int | None, int | None], str]
    if alike:
        name = first.model.vocabulary.word
        both = (*one.listed, *two.listed, one.true.parts[0].token_id)
        words = {(token_id, token_id): name(token_id) for token_id in both}
    else:
        own_ids, other_ids = one.names(), two.names()
        words = {(own_ids.get(w), other_ids.get(w)): w for w in (*own_ids, *other_ids)}
    true = one.true.parts[0].token_id, two.true.parts[0].token_id
    rows = [
        ComparedCandidate(
            word=word,
            asked=own == true[0] or other == true[1],
            **vars(one.says(own)),
            **{f"other_{name}": value for name, value in vars(two.says(other)).items()},
        )
        for (own, other), word in words.items()
    ]
    rows.sort(key=lambda row: -max(row.probability or 0.0, row.other_probability or 0.0))
    kl_nats = js_nats = None
    # Of a text that was filled step by step each model may have read another input.
    if alike and np.array_equal(first.reading.ids, second.reading.ids):
        kl_nats, js_nats = divergences(one.values.shifted, two.values.shifted)
    best, other_best = first.mask.candidates[0], second.mask.candidates[0]
    return MaskComparison(
        position=first.mask.position,
        other_position=second.mask.position,
        entropy_nats=first.mask.entropy_nats,
        other_entropy_nats=second.mask.entropy_nats,
        kl_nats=kl_nats,
        js_nats=js_nats,
        flipped=best.token_id != other_best.token_id if alike else best.word != other_best.word,
        candidates=tuple(rows),
    )
