"""A sentence without a mask: how much each of its words surprises the model."""

from collections.abc import Mapping
from typing import Any

from fillmask_ui.filling.prompt import encode_unmasked
from fillmask_ui.filling.word_surprisal import (
    SentenceSurprisal,
    WordSurprisal,
    summarize_surprisal,
    surprisal_windows,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.ui.explore import lenses
from fillmask_ui.ui.explore.lenses import Json, Scale
from fillmask_ui.ui.session import MAX_WORK, Session

# A blind guess among 22,000 words costs 10 nats.
SCALE = Scale(10.0, {"nats": 2.0, "bits": 3.0})


def surprise(session: Session, values: Mapping[str, Any]) -> Json:
    """Some words of a sentence, from number `from` on, with all that is known of the sentence.

    `words` have the index of their first token, their tint and what to show beside them; `next` is
    the number to go on `from`, None at the end. Where it cannot be had, an `error` says why.
    """
    asked = lenses.read(session, values)
    found = measured(session, asked.model, asked.text, asked.start)
    return asked.shown(
        "surprise",
        found.words,
        _tint,
        SCALE,
        summary=summarize_surprisal(found.words),
        unknown=[own.word.text for own in found.words if own.unknown],
    )


def measured(session: Session, model: MaskedLM, text: str, start: int) -> SentenceSurprisal:
    """The words of a text that are known; where that of number `start` is not, some more."""
    return session.further(
        model,
        (surprisal_windows, text),
        start,
        lambda own, known: _longer(own, text, known),
    )


def _longer(model: MaskedLM, text: str, known: SentenceSurprisal | None) -> SentenceSurprisal:
    words = known.words if known else ()
    windows = surprisal_windows(model, text, start=len(words), most_work=MAX_WORK)
    encoding = known.encoding if known else encode_unmasked(model, text)
    return SentenceSurprisal(encoding, model.signature, (*words, *next(windows, ())))


def _tint(own: WordSurprisal) -> float:
    return 0.0 if own.unknown else SCALE.tint(own.nll_nats)
