"""Functions of plain JSON values that the browser calls, and that answer at once.

The browser holds the tab's state and sends it along. An answer takes no longer than the model;
the browser ignores answers that come too late.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fillmask_ui.errors import FillmaskError, OptionError, unknown
from fillmask_ui.filling import fill
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Filling
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.components import error_message
from fillmask_ui.ui.explore import (
    guess_view,
    model_contrast_view,
    prediction_view,
    replay_view,
    sentence_strip,
)
from fillmask_ui.ui.explore.attribution_view import occlusion, surprisal
from fillmask_ui.ui.explore.divergence_view import divergent
from fillmask_ui.ui.explore.explore_state import Action, Question
from fillmask_ui.ui.explore.prediction_view import loss_points, points_json
from fillmask_ui.ui.explore.sentence_contrast_view import contrast_sentences
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.explore.word_contrast_view import contrast_words
from fillmask_ui.ui.session import Session

# Masks in a file of whole vocabularies; each is tens of thousands of lines.
MAX_WHOLE_MASKS = 16
# Lines of such a file of several masks on a public page: 7 MB in 3 s.
PUBLIC_LINES = 100_000
ALL_TOKENS = "CSV, all tokens"
# Label of a button -> name of its file, its media type.
DOWNLOADS = {
    "CSV": ("fillmask.csv", "text/csv"),
    "JSON": ("fillmask.json", "application/json"),
    ALL_TOKENS: ("fillmask-all.csv", "text/csv"),
}

Json = dict[str, Any]


@dataclass(frozen=True)
class Mode:
    """A way to look at the sentence; the page shows one at a time, in `data-pane` of its name."""

    name: str  # in the browser's state and in links; blank for the first
    label: str
    about: str
    masked: str = ""  # of `SERVED`, asked about a sentence with a mask; blank for none
    whole: str = ""  # the same without a mask
    needs_mask: bool = False


MODES = (
    Mode(
        "",
        "Predict",
        "which words the model expects, or how surprising each word is",
        whole="surprise",
    ),
    Mode(
        "mattered",
        "What mattered",
        "hides each other word in turn",
        masked="mattered",
        needs_mask=True,
    ),
    Mode("sentences", "Two sentences", "the same model on a second sentence", "pair", "pair"),
    Mode("models", "Two models", "a second model on the same sentence", "compared", "apart"),
    Mode("guess", "Guess first", "the class guesses before the model tells", needs_mask=True),
)


def answer(session: Session, values: Mapping[str, Any]) -> Json:
    """The contents of the tab for its state: `prediction_view.Answer` as JSON.

    A click in `action` is carried out first; the answer has the new `text`. While a model loads the
    kind is `busy`, with the progress, and the browser asks again.
    """
    question = Question.read(values)
    if question.run is not None and question.action is None:
        return replay_view.answer(session, question, question.run)
    if question.text.strip():
        try:
            state = session.model_soon(question.model)
        except FillmaskError as error:
            return prediction_view.Answer(
                "error", error_message(error), draft=question.draft
            ).to_dict()
        if isinstance(state, Waiting):
            message = state.message or "Loading the model…"
            return {"kind": "busy", "notice": message, "fraction": state.fraction}
        if question.action is not None:
            try:
                question = acted(question, question.action, state.result)
            except FillmaskError as error:
                return prediction_view.Answer(
                    "error", error_message(error), draft=question.draft
                ).to_dict()
    return {
        **prediction_view.answer(session, question).to_dict(),
        "text": prediction_view.sendable(question.text),
    }


def acted(question: Question, action: Action, model: MaskedLM) -> Question:
    """The question after a click; a click on an outdated text changes nothing."""
    draft, selected = prediction_view.current_draft(question, model), question.selected
    vocabulary = model.vocabulary
    if version_of(draft.text) != action.version:
        return question
    if action.do == "restore":
        draft, selected = sentence_strip.restore(draft, vocabulary, action.token), 0
    elif action.do == "choose":
        selected = action.token
    elif action.do == "fill":
        draft, selected = _filled(draft, model, action.key), 0
    elif (hidden := sentence_strip.hide(draft, vocabulary, action.token)) != draft:
        # Select the mask just made, where the two texts begin to differ.
        start = sentence_strip.common_length(draft.text, hidden.text)
        draft, selected = hidden, hidden.text[:start].count(vocabulary.mask_token)
    return replace(question, text=draft.text, draft=draft, selected=selected)


def _filled(draft: sentence_strip.Draft, model: MaskedLM, key: str) -> sentence_strip.Draft:
    """The draft with the tokens of a bar or row filled in; an invalid key changes nothing."""
    mask, _, ids = key.partition(":")
    token_ids = tuple(int(i) for i in ids.split(",") if i.isdecimal() and len(i) < 10)
    known = all(i < model.signature.vocabulary_size for i in token_ids)
    if not token_ids or not known:
        return draft
    if mask == "all":
        return sentence_strip.fill_all(draft, model.vocabulary, token_ids)
    if mask.isdecimal() and len(mask) < 10:
        return sentence_strip.fill_in(draft, model.vocabulary, int(mask), token_ids[0])
    return draft


def compared(session: Session, values: Mapping[str, Any]) -> Json:
    """The chosen mask under both models, or a token of a run as both models saw it."""
    question = Question.read(values)
    if question.run is not None and not question.alone:
        return replay_view.compared(session, question, question.run)
    return model_contrast_view.compared(session, values)


def losses(session: Session, values: Mapping[str, Any]) -> Json:
    """The points of the first masks on the loss curve; `answer` has only the selected one."""
    question = Question.read(values)
    found = prediction_view.answer(session, question)
    if found.filling is None:
        return {"points": []}
    words, model = found.draft.hidden, session.model(question.model)
    points = loss_points(session, model, found.filling, words, question.unit)
    return {"version": version_of(found.draft.text), "points": points_json(points)}


def download(session: Session, values: Mapping[str, Any]) -> Json:
    """One of `DOWNLOADS`, by its `label`: its `name`, `type` and `text`.

    Raises:
        OptionError: for an unknown label, or more masks than the file may have.
    """
    question = Question.read(values)
    label = question.label
    if label not in DOWNLOADS:
        raise OptionError(unknown("file", label, DOWNLOADS))
    text = _file_text(session, question, label)
    name, kind = DOWNLOADS[label]
    return {"name": name, "type": kind, "text": text}


def joint(session: Session, values: Mapping[str, Any]) -> Json:
    """The best joint fillings of all masks as `html`; blank if there are none.

    A separate call, as they take many more model passes than an answer.
    """
    question = Question.read(values)
    if question.compare:
        with contextlib.suppress(FillmaskError):
            return {"html": model_contrast_view.joint_html(session, question)}
    try:
        model = session.model(question.model)
        draft = prediction_view.current_draft(question, model)
        filling = session.ask(model, fill, draft.text, top_k=1)
    except FillmaskError:
        return {"html": ""}  # the answer reports the error
    return {"html": prediction_view.joint_html(filling, question.unit)}


def _file_text(session: Session, question: Question, label: str) -> str:
    whole = label == ALL_TOKENS
    if question.compare:
        if whole:
            _check_whole(session, question)
        both = model_contrast_view.comparison(session, question, None if whole else question.top_k)
        return (
            both.to_json(indent=2) if label == "JSON" else model_contrast_view.comparison_csv(both)
        )
    if whole:
        return prediction_view.filling_csv(whole_vocabulary(session, question))
    shown = prediction_view.answer(session, question).filling
    if shown is None:
        raise OptionError("nothing is predicted yet: hide a word first")
    words = tuple(word.word for word in shown.masks[0].scored)
    model = session.model(question.model)
    filling = session.ask(model, fill, shown.encoding.text, top_k=question.top_k, candidates=words)
    # As `fillmask-ui predict --json` prints it.
    return filling.to_json(indent=2) if label == "JSON" else prediction_view.filling_csv(filling)


def whole_vocabulary(session: Session, question: Question) -> Filling:
    """All tokens at each mask of the text; refused if the file would be too large."""
    draft = _check_whole(session, question)
    return session.ask(session.model(question.model), fill, draft.text, top_k=None)


def _check_whole(session: Session, question: Question) -> sentence_strip.Draft:
    """The text, if its masks are few enough for a file of all tokens."""
    model = session.model(question.model)
    draft, most = prediction_view.current_draft(question, model), MAX_WHOLE_MASKS
    if session.public:
        most = max(1, PUBLIC_LINES // model.signature.vocabulary_size)
    if len(draft.hidden) > most:
        raise OptionError(
            f"the text has {len(draft.hidden)} masks, and a file of all tokens has at most {most} "
            "on this page: leave some masks out, or download what is shown"
        )
    return draft


# Name in the browser -> function of the session and JSON values.
SERVED = {
    "answer": answer,
    "download": download,
    "joint": joint,
    "compared": compared,
    "losses": losses,
    "surprise": surprisal,
    "apart": contrast_words,
    "mattered": occlusion,
    "pair": contrast_sentences,
    "parting": divergent,
    "guess": guess_view.guess,
    "guesses": guess_view.guesses,
}
