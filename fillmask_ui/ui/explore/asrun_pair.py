"""A token of a run of two models, as both saw it: their candidates in one list."""

from __future__ import annotations

from fillmask_ui.comparing import same_tokenizer
from fillmask_ui.errors import FillmaskError
from fillmask_ui.runs.tokens import MeasuredToken, TokenPlace, measured_tokens
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.compared_readings import BY_NAME, compared_readings
from fillmask_ui.ui.explore import compare
from fillmask_ui.ui.explore.asrun import reference_of, runs_of
from fillmask_ui.ui.explore.lenses import Json
from fillmask_ui.ui.explore.question import Question
from fillmask_ui.ui.replay import alone, cannot_be_had, replayed
from fillmask_ui.ui.session import Session

_NOT_COMPARED = (
    "Here the run did not compare with {}: choose “Only this one hidden”, or its own other model."
)


def compared(session: Session, question: Question, place: TokenPlace) -> Json:
    """What `compare.compared` says of a mask, of a token in the very input that both models read.

    The figures of the hidden token are those of the run's rows.
    """
    met = measured_tokens(runs_of(session, question.visitor), place)
    token, other = met[place.side], met[1 - place.side] if len(met) > 1 else None
    if token is None or other is None or reference_of(session, other) != question.compare:
        return {"kind": "hint", "notice": _NOT_COMPARED.format(question.compare)}
    for own in (token, other):
        if (waiting := _loading(session, own)) is not None:
            message = waiting.message or "Loading the second model…"
            return {"kind": "busy", "notice": message, "fraction": waiting.fraction}
    # A and B are those of the run, whichever of them is picked.
    both = (other, token) if place.side else (token, other)
    first, second = (replayed(session, own, top_k=question.top_k) for own in both)
    mask = compared_readings(session, first, second)
    models = first.model, second.model
    # A click on a word writes it into the sentence where this token alone is hidden.
    sole = alone(token, models[place.side].vocabulary.mask_token)
    hidden = first.mask.scored[0].word
    pair = compare.Pair(question, models, sole.text, sole.number, hidden, (), ())
    alike = same_tokenizer(*(model.vocabulary for model in models))
    return compare.shown(pair, mask, () if alike else (BY_NAME,), writes=place.side)


def _loading(session: Session, token: MeasuredToken) -> Waiting | None:
    """How far its model is, None once it is there."""
    try:
        state = session.model_soon(token.choice)
    except FillmaskError as error:
        raise cannot_be_had(token, error) from error
    return state if isinstance(state, Waiting) else None
