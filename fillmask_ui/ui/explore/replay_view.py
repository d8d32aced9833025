"""A token of a run in the Explore tab: as the run saw it, or with nothing else hidden.

As the run saw it, the model reads the ids that were measured, other masks and replaced words
included, and the figures are the run's. With nothing else hidden it is any other sentence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fillmask_ui.comparing import same_tokenizer
from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.filling import fill_at
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Filling
from fillmask_ui.runs import RunStore
from fillmask_ui.runs.tokens import MeasuredToken, TokenPlace, measured_tokens
from fillmask_ui.show.render import render
from fillmask_ui.ui.components import error_message
from fillmask_ui.ui.explore import model_contrast_view, prediction_view
from fillmask_ui.ui.explore.attribution_view import Json
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import Answer, loss_point
from fillmask_ui.ui.explore.sentence_strip import MAX_STRIP_TOKENS, Draft
from fillmask_ui.ui.figure import finished
from fillmask_ui.ui.run_tokens import (
    BY_NAME,
    Alone,
    Replayed,
    alone,
    cannot_be_had,
    compared_readings,
    reading_values,
    replayed,
)
from fillmask_ui.ui.session import Session

# Tokens shown on each side in a longer text.
_AROUND = 150


@dataclass(frozen=True, eq=False)
class _Opened:
    """A token of a run, its model loaded."""

    token: MeasuredToken
    met: Sequence[MeasuredToken | None]  # by A, and by B if there is one
    side: int  # index of `token` in `met`
    again: Replayed
    sole: Alone  # the sentence with only this token hidden


def answer(session: Session, question: Question, place: TokenPlace) -> dict[str, Any]:
    """The contents of the tab for a token of a run, in the form of `explore_modes.answer`.

    `set` has the values for the controls. If the run or its model is gone, the answer is that of
    the sentence, with an error.
    """
    try:
        met = measured_tokens(runs_of(session, question.visitor), place)
        token = met[place.side]
        if token is None:
            raise DataError(f"run {place.run} has no such token")
        _loaded(session, token)
        reference = token.choice.reference.strip() or session.default_model
        if question.alone:
            finished(session.model_soon(reference))
        again = replayed(session, token, top_k=question.top_k)
        sole = alone(token, again.model.vocabulary.mask_token)
        opened = _Opened(token, met, place.side, again, sole)
        show = _alone if question.alone else _as_run
        found = show(session, replace(question, model=reference), opened)
    except FillmaskError as error:
        plain = prediction_view.answer(session, replace(question, run=None)).to_dict()
        text = prediction_view.sendable(question.text)
        return {**plain, "kind": "error", "notice": error_message(error), "text": text}
    text = prediction_view.sendable(found.draft.text)
    return {**found.to_dict(), "text": text, "set": {"text": text, "model": reference}}


def runs_of(session: Session, visitor: str) -> RunStore:
    """The stored runs that a visitor may see; a `DataError` if the page keeps none."""
    if session.stored_runs is None:
        raise DataError("this page keeps no runs")
    return session.stored_runs(visitor)


def _draft(sole: Alone) -> Draft:
    """The sentence with one more mask, and the word behind that mask."""
    return Draft(sole.text, (*[None] * sole.number, sole.hidden or None))


def _as_run(session: Session, question: Question, opened: _Opened) -> Answer:
    again, sole, model = opened.again, opened.sole, opened.again.model
    (true,) = again.mask.scored
    mask = replace(again.mask, scored=())
    # A click writes a candidate into the sentence with only this token hidden.
    encoding = model.vocabulary.encode(sole.text)
    filling = Filling(encoding, model.signature, (mask,) * (sole.number + 1))
    html = prediction_view.mask_html(filling, model, sole.number, question=question, hidden=true)
    around = None if len(again.reading.ids) <= MAX_STRIP_TOKENS else _AROUND
    values = {**_values(session, question, opened), **reading_values(again, around)}
    return Answer(
        "hint" if again.changed else "none",
        again.changed,
        draft=_draft(sole),
        model=prediction_view.model_name(model),
        filling=filling,
        selected=sole.number,
        hidden=true,
        loss=loss_point(filling, sole.number, true, question.unit),
        html={
            **html,
            "strip": render("page/explore/reading.html", **values),
            "replay": render("page/explore/replay.html", **values),
        },
    )


def _alone(session: Session, question: Question, opened: _Opened) -> Answer:
    sole = opened.sole
    asked = replace(question, text=sole.text, draft=_draft(sole), selected=sole.number)
    found = prediction_view.answer(session, asked)
    values = {**_values(session, question, opened), **reading_values(opened.again)}
    html = {**found.html, "replay": render("page/explore/replay.html", **values)}
    return replace(found, html=html)


def _values(session: Session, question: Question, opened: _Opened) -> dict[str, Any]:
    """Values that the templates show beside the reading."""
    token, again = opened.token, opened.again
    ids = token.row.ids.copy()
    ids[again.reading.position] = again.model.vocabulary.mask_id
    same = bool(np.array_equal(ids, again.reading.ids))
    alone_nats = None
    if question.alone and not same:
        alone_nats = _loss_alone(session, again.model, ids.tolist(), again)
    # The number of threads changes no prediction.
    options = {} if session.public else replace(token.choice, threads=None).given()
    made = [f"{name.replace('_', '-')} {value}" for name, value in options.items()]
    return {
        "run": token.info,
        "example": token.row.id,
        "unit": question.unit,
        "alone": question.alone,
        "same": same,
        "alone_nats": alone_nats,
        "options": ", ".join(made),
        "sides": _sides(session, question, opened),
    }


def _sides(session: Session, question: Question, opened: _Opened) -> list[dict[str, Any]]:
    """The models that saw the token, the reference first, if there are two."""
    found = []
    for side, token in reversed([*enumerate(opened.met)]):
        if token is None:
            continue
        place = {"side": "B" if side else "", "token": str(token.row.cols[token.entry])}
        other = opened.met[1 - side] if len(opened.met) > 1 else None
        if question.compare and other is not None:
            place["compare"] = reference_of(session, other)
        found.append(
            {
                "set": json.dumps(place),
                "name": f"{('Candidate', 'Reference')[side]}: {token.signature['name']}",
                "pressed": side == opened.side,
                "nll_nats": float(token.scores.nll_nats[token.entry]),
            }
        )
    return found if len(found) > 1 else []


def reference_of(session: Session, token: MeasuredToken) -> str:
    """The reference of a token's model in the page's controls; blank if the run has none."""
    try:
        return token.choice.reference.strip() or session.default_model
    except DataError:
        return ""


def _loss_alone(session: Session, model: MaskedLM, ids: list[int], again: Replayed) -> float:
    """Loss in nats of the hidden word under the run's model, with nothing else hidden."""
    reading = again.reading
    found = session.ask(model, fill_at, tuple(ids), reading.position, reading.true_id, top_k=1)
    return found.scored[0].nll_nats


_NOT_COMPARED = (
    "Here the run did not compare with {}: choose “Only this one hidden”, or its own other model."
)


def compared(session: Session, question: Question, place: TokenPlace) -> Json:
    """`model_contrast_view.compared` for a token in the input that both models read.

    The figures of the hidden token are those stored in the run.
    """
    met = measured_tokens(runs_of(session, question.visitor), place)
    token, other = met[place.side], met[1 - place.side] if len(met) > 1 else None
    if token is None or other is None or reference_of(session, other) != question.compare:
        return {"kind": "hint", "notice": _NOT_COMPARED.format(question.compare)}
    for own in (token, other):
        _loaded(session, own)
    first, second = (replayed(session, own, top_k=question.top_k) for own in (token, other))
    mask = compared_readings(session, first, second)
    models = first.model, second.model
    # A click writes a word into the sentence with only this token hidden.
    sole = alone(token, first.model.vocabulary.mask_token)
    hidden = first.mask.scored[0].word
    pair = model_contrast_view.Pair(question, models, sole.text, sole.number, hidden, (), ())
    alike = same_tokenizer(*(model.vocabulary for model in models))
    return model_contrast_view.shown(pair, mask, () if alike else (BY_NAME,))


def _loaded(session: Session, token: MeasuredToken) -> MaskedLM:
    """The model of its run; `Unfinished` while it loads."""
    try:
        return finished(session.model_soon(token.choice))
    except FillmaskError as error:
        raise cannot_be_had(token, error) from error
