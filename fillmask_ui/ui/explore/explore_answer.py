"""What follows a state of the Explore tab: a click is carried out, then the sentence is predicted.

An answer takes no longer than the model; the browser ignores answers that come too late.
"""

import contextlib
import re
from dataclasses import replace

from fillmask_ui.errors import FillmaskError
from fillmask_ui.filling import fill
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.render import render
from fillmask_ui.ui.components import error_message, model_choices
from fillmask_ui.ui.explore import contrast_view, prediction_view
from fillmask_ui.ui.explore import sentence_strip as strip
from fillmask_ui.ui.explore.explore_state import Action, Json, LoadedQuestion, Question
from fillmask_ui.ui.session import Session


def answer(session: Session, question: Question) -> Json:
    """The contents of the tab for its state: `prediction_view.Answer` as JSON.

    A click in `action` is carried out first; the answer has the new `text`.
    """
    if question.text.strip():
        try:
            session.model_soon(question.model)
            if question.action is not None:
                question = _acted(LoadedQuestion.read(session, question), question.action)
        except FillmaskError as error:
            message = error_message(error)
            return prediction_view.Answer("error", message, draft=question.draft).to_dict()
    reply = prediction_view.answer(session, question).to_dict()
    return {**reply, "text": prediction_view.sendable(question.text)}


def _acted(loaded: LoadedQuestion, action: Action) -> Question:
    """The question after a click; a click on an outdated text changes nothing."""
    draft, selected, vocabulary = loaded.draft, loaded.question.selected, loaded.model.vocabulary
    if strip.version_of(draft.text) != action.version:
        return loaded.question
    if action.do == "restore":
        draft, selected = strip.restore(draft, vocabulary, action.token), 0
    elif action.do == "choose":
        selected = action.token
    elif action.do == "fill":
        draft, selected = _filled(draft, loaded.model, action.key), 0
    elif (hidden := strip.hide(draft, vocabulary, action.token)) != draft:
        # Select the mask just made, where the two texts begin to differ.
        start = strip.common_length(draft.text, hidden.text)
        draft, selected = hidden, hidden.text[:start].count(vocabulary.mask_token)
    return replace(loaded.question, text=draft.text, draft=draft, selected=selected)


def _filled(draft: strip.Draft, model: MaskedLM, key: str) -> strip.Draft:
    """The draft with the tokens of a bar or row filled in; an invalid key changes nothing."""
    key_match = re.fullmatch(r"(all|\d{1,9}):(\d{1,9}(?:,\d{1,9})*)", key)
    if key_match is None:
        return draft
    mask, token_ids = key_match[1], [int(token_id) for token_id in key_match[2].split(",")]
    if max(token_ids) >= model.signature.vocabulary_size:
        return draft
    if mask != "all":
        return strip.fill_in(draft, model.vocabulary, int(mask), token_ids[0])
    for token_id in token_ids:  # from left to right
        draft = strip.fill_in(draft, model.vocabulary, 0, token_id)
    return draft


def joint(session: Session, question: Question) -> Json:
    """The best joint fillings of all masks as `html`; they take many more passes than an answer."""
    if question.compare:
        with contextlib.suppress(FillmaskError):
            return {"html": contrast_view.joint_html(session, question)}
    try:
        loaded = LoadedQuestion.read(session, question)
        filling = session.ask(loaded.model, fill, loaded.text, top_k=1)
    except FillmaskError:
        return {"html": ""}  # the answer reports the error
    return {"html": prediction_view.joint_html(filling, question.unit)}


def model_options(session: Session, _: Question) -> Json:
    """The models at hand as `html` of a list."""
    return {"html": render("explore/model_options.html", choices=model_choices(session))}
