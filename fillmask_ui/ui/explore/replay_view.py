"""A token of a run in the Explore tab: as the run saw it, or with nothing else hidden.

As the run saw it, the model reads the ids that were measured, other masks and replaced words
included, and the figures are the run's. With nothing else hidden it is any other sentence.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fillmask_ui.errors import DataError, FillmaskError, OptionError
from fillmask_ui.filling import fill_at
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.records import Filling
from fillmask_ui.runs.tokens import MeasuredToken, TokenPlace, measured_tokens
from fillmask_ui.show.render import render
from fillmask_ui.tokenizers import same_tokenizer
from fillmask_ui.ui.components import MAX_TEXT_CHARACTERS, error_message
from fillmask_ui.ui.explore import prediction_view
from fillmask_ui.ui.explore.contrast_view import ModelPair, contrast_answer
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
from fillmask_ui.ui.explore.prediction_view import Answer
from fillmask_ui.ui.explore.sentence_strip import MAX_STRIP_TOKENS, Draft
from fillmask_ui.ui.run_tokens import BY_NAME, Replayed, compared_readings, reading_values, replayed
from fillmask_ui.ui.session import Session

# Tokens shown on each side in a longer text.
_AROUND = 150


def answer(session: Session, question: Question) -> Json:
    """The contents of the tab for a token of a `run`, in the form of `explore_answer.answer`.

    `set` has the values for the controls. If the run or its model is gone, the answer is that of
    the sentence, with an error.
    """
    try:
        position = _place(question)
        seen_tokens = _met(session, question, position)
        token = seen_tokens[position.side]
        if token is None:
            raise DataError(f"run {position.run} has no such token")
        again = replayed(session, token, top_k=question.top_k, load=session.model_soon)
        in_roles = _in_roles(session, question, seen_tokens, position.side)
        if question.alone:
            session.model_soon(in_roles.model)
        reply = _answer(session, in_roles, seen_tokens, position.side, again)
    except FillmaskError as error:
        plain = prediction_view.answer(session, replace(question, run=None)).to_dict()
        text = prediction_view.sendable(question.text)
        return {**plain, "kind": "error", "notice": error_message(error), "text": text}
    text = prediction_view.sendable(reply.draft.text)
    models = {"model": in_roles.model}
    if in_roles.compare:
        models["compare"] = in_roles.compare
    return {**reply.to_dict(), "text": text, "set": {"text": text, **models}}


def _place(question: Question) -> TokenPlace:
    if question.run is None:
        raise OptionError("there is no token of a run: open one from Evaluate")
    return question.run


def _met(
    session: Session, question: Question, position: TokenPlace
) -> Sequence[MeasuredToken | None]:
    """The token as each model of its run met it, in one of the runs that the visitor may see."""
    if session.stored_runs is None:
        raise DataError("this page keeps no runs")
    return measured_tokens(session.stored_runs(question.visitor), position)


def _in_roles(
    session: Session, question: Question, seen_tokens: Sequence[MeasuredToken | None], side: int
) -> Question:
    """The question with the models of the run, which keep their roles where two are compared."""
    names = [_reference_of(session, token) if token else "" for token in seen_tokens]
    if not question.compare or len(names) < 2:
        return replace(question, model=names[side])
    candidate, reference = names
    # A third model, picked by hand, stays the candidate.
    compared = candidate if question.compare in names else question.compare
    return replace(question, model=reference, compare=compared)


def _answer(
    session: Session,
    question: Question,
    seen_tokens: Sequence[MeasuredToken | None],
    side: int,
    again: Replayed,
) -> Answer:
    token, model, reading = again.token, again.model, again.reading
    loaded = _sole(question, again)
    around = None if question.alone or len(reading.ids) <= MAX_STRIP_TOKENS else _AROUND
    reply = (
        prediction_view.answer(session, loaded.question)
        if question.alone
        else _as_run(loaded, again)
    )
    ids = token.row.ids.copy()
    ids[reading.position] = model.vocabulary.mask_id
    same = bool(np.array_equal(ids, reading.ids))
    alone_nats = None
    if question.alone and not same:
        reading_position = tuple(ids.tolist()), reading.position, reading.true_id
        alone_nats = session.ask(model, fill_at, *reading_position, top_k=1).scored[0].nll_nats
    # The number of threads changes no prediction.
    options = {} if session.public else replace(token.choice, threads=None).changed_options()
    values = {
        **reading_values(again, around),
        "run": token.info,
        "example": token.row.id,
        "unit": question.unit,
        "alone": question.alone,
        "same": same,
        "alone_nats": alone_nats,
        "options": ", ".join(
            f"{name.replace('_', '-')} {option}" for name, option in options.items()
        ),
        "sides": _sides(seen_tokens, side),
    }
    html = {**reply.html, "replay": render("explore/replay.html", **values)}
    if not question.alone:
        html["strip"] = render("explore/reading.html", **values)
    return replace(reply, html=html)


def _sole(question: Question, again: Replayed) -> LoadedQuestion:
    """The sentence with only this token hidden; a much longer one is cut to what a link holds."""
    token, mask_token = again.token, again.model.vocabulary.mask_token
    text, (start, end) = token.row.text, token.row.spans[token.entry].tolist()
    # Some tokenizers count the blank before a word as part of it.
    while start < end and text[start].isspace():
        start += 1
    left, word, right = text[:start], text[start:end], text[end:]
    # A part of a word is another token than the same letters alone: a mask cannot bring it back.
    part = word[:1].isalnum() and (left[-1:].isalnum() or right[:1].isalnum())
    if len(text) > MAX_TEXT_CHARACTERS:
        half = MAX_TEXT_CHARACTERS // 2
        left, right = left[-half:], right[:half]
    left = normalise_masks(left, mask_token)
    number = left.count(mask_token)  # other masks may have stood in the text
    hidden = (*[None] * number, None if part else word or None)
    draft = Draft(f"{left}{mask_token}{right}", hidden)
    question = replace(question, text=draft.text, draft=draft, selected=number)
    return LoadedQuestion(question, again.model, draft)


def _as_run(loaded: LoadedQuestion, again: Replayed) -> Answer:
    (true,) = again.mask.scored
    mask, model = replace(again.mask, scored=()), loaded.model
    encoding = model.vocabulary.encode(loaded.text)
    filling = Filling(encoding, model.signature, (mask,) * (loaded.mask + 1))
    html = prediction_view.mask_html(
        filling, model, loaded.mask, question=loaded.question, hidden=true
    )
    return Answer(
        "hint" if again.changed else "none",
        again.changed,
        draft=loaded.draft,
        model=prediction_view.model_name(model),
        filling=filling,
        selected=loaded.mask,
        hidden=true,
        unit=loaded.question.unit,
        html=html,
    )


def _sides(seen_tokens: Sequence[MeasuredToken | None], shown_side: int) -> list[Json]:
    """The models that saw the token, the reference first, if there are two."""
    pair = [token for token in seen_tokens if token is not None]
    if len(pair) < 2:
        return []
    models = []
    for side, token in reversed([*enumerate(pair)]):
        link = {"side": "B" if side else "", "token": str(token.row.cols[token.entry])}
        models.append(
            {
                "set": json.dumps(link),
                "name": f"{('Candidate', 'Reference')[side]}: {token.signature['name']}",
                "pressed": side == shown_side,
                "nll_nats": float(token.scores.nll_nats[token.entry]),
            }
        )
    return models


def _reference_of(session: Session, token: MeasuredToken) -> str:
    """The reference of a token's model in the page's controls; blank if the run has none."""
    try:
        return token.choice.reference.strip() or session.default_model
    except DataError:
        return ""


_NOT_COMPARED = (
    "The run did not measure {} here: choose “Only this one hidden”, or a model of the run."
)


def contrast_models(session: Session, question: Question) -> Json:
    """`contrast_view.contrast_models` for a token of a `run`, in the input that both models read.

    The figures of the hidden token are those stored in the run.
    """
    seen_tokens = _met(session, question, _place(question))
    names = [_reference_of(session, token) for token in seen_tokens if token is not None]
    if len(names) < 2 or question.compare not in names:
        return {"kind": "hint", "notice": _NOT_COMPARED.format(question.compare)}
    reference, candidate = (
        replayed(session, token, top_k=question.top_k, load=session.model_soon)
        for token in reversed(seen_tokens)
        if token is not None
    )
    models = reference.model, candidate.model
    pair = ModelPair(_sole(question, reference), models, reference.mask.scored[0].word, (), ())
    alike = same_tokenizer(*(model.vocabulary for model in models))
    return contrast_answer(
        pair, compared_readings(session, reference, candidate), () if alike else (BY_NAME,)
    )
