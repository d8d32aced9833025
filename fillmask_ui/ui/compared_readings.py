"""One token of a run under both of its models, each asked of the very input that it read then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fillmask_ui import scoring
from fillmask_ui.comparing import Contrast, same_tokenizer
from fillmask_ui.comparing.contrast import Pair, contrast
from fillmask_ui.filling.candidates import Distribution
from fillmask_ui.ui.replay import Replayed

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session

BY_NAME = (
    "the two models have different tokenizers, so the words that both list are paired by name, and "
    "their distributions have no KL or Jensen-Shannon divergence"
)


def compared_readings(session: Session, first: Replayed, second: Replayed) -> Contrast:
    """Both models at one token of a run.

    The losses of the hidden token are those of the run's rows. It is marked as asked about.
    """
    one, two = _distribution(session, first), _distribution(session, second)
    alike = same_tokenizer(first.model.vocabulary, second.model.vocabulary)
    words: dict[Pair, str]
    if alike:
        name = first.model.vocabulary.word
        both = (*_ids(one), *_ids(two))
        words = {((token_id,), (token_id,)): name(token_id) for token_id in both}
    else:
        own, other = _names(one), _names(two)
        words = {(own.get(word), other.get(word)): word for word in (*own, *other)}
    true = (first.reading.true_id,), (second.reading.true_id,)
    asked = [pair for pair in words if pair[0] == true[0] or pair[1] == true[1]]
    found = contrast(one, two, words, asked, alike=alike)
    # Of a text that was filled step by step each model may have read another input.
    return found if one.ids == two.ids else replace(found, kl_nats=None, js_nats=None)


def _distribution(session: Session, replayed: Replayed) -> Distribution:
    """What a model says now; figures that the run has stored are the run's."""
    ids = tuple(replayed.reading.ids.tolist())
    logits = session.logits_at(replayed.model, ids, replayed.reading.position)  # float32 [V]
    return Distribution(replayed.model, ids, replayed.mask, scoring.exponentials(logits[None]))


def _ids(own: Distribution) -> list[int]:
    """The hidden token, and what is listed."""
    listed = [candidate.token_id for candidate in own.mask.candidates]
    return [*listed, own.mask.scored[0].parts[0].token_id]


def _names(own: Distribution) -> dict[str, tuple[int]]:
    """The same by word: the best of a word's tokens."""
    return {own.model.vocabulary.word(token_id): (token_id,) for token_id in reversed(_ids(own))}
