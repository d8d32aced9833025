"""Functions of plain JSON values that the browser calls, and that answer at once.

The browser holds the tab's state and sends it along. An answer takes no longer than the model;
the browser ignores answers that come too late.
"""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from fillmask_ui.comparing import Comparison
from fillmask_ui.errors import FillmaskError, OptionError, unknown
from fillmask_ui.filling import fill
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Filling
from fillmask_ui.schema import from_values
from fillmask_ui.ui.components import Served, error_message
from fillmask_ui.ui.explore import contrast_view, guess_view, prediction_view, replay_view
from fillmask_ui.ui.explore import sentence_strip as strip
from fillmask_ui.ui.explore.attribution_view import contrast_words, occlusion, surprisal
from fillmask_ui.ui.explore.divergence_view import divergent
from fillmask_ui.ui.explore.explore_state import Action, Asked, Json, Question
from fillmask_ui.ui.explore.layers_view import guess_layers
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
    Mode("mattered", "What mattered", "hides each other word in turn", "mattered", needs_mask=True),
    Mode("sentences", "Two sentences", "the same model on a second sentence", "pair", "pair"),
    Mode("models", "Two models", "a second model on the same sentence", "compared", "apart"),
    Mode("guess", "Guess first", "the class guesses before the model tells", needs_mask=True),
    Mode("layers", "How the guess forms", "what each layer would say", "layers", "layers"),
)


def answer(session: Session, question: Question) -> Json:
    """The contents of the tab for its state: `prediction_view.Answer` as JSON.

    A click in `action` is carried out first; the answer has the new `text`.
    """
    if question.run is not None and question.action is None:
        return replay_view.answer(session, question, question.run)
    if question.text.strip():
        try:
            session.model_soon(question.model)
            if question.action is not None:
                question = _acted(Asked.read(session, question), question.action)
        except FillmaskError as error:
            message = error_message(error)
            return prediction_view.Answer("error", message, draft=question.draft).to_dict()
    found = prediction_view.answer(session, question).to_dict()
    return {**found, "text": prediction_view.sendable(question.text)}


def _acted(asked: Asked, action: Action) -> Question:
    """The question after a click; a click on an outdated text changes nothing."""
    draft, selected, vocabulary = asked.draft, asked.question.selected, asked.model.vocabulary
    if strip.version_of(draft.text) != action.version:
        return asked.question
    if action.do == "restore":
        draft, selected = strip.restore(draft, vocabulary, action.token), 0
    elif action.do == "choose":
        selected = action.token
    elif action.do == "fill":
        draft, selected = _filled(draft, asked.model, action.key), 0
    elif (hidden := strip.hide(draft, vocabulary, action.token)) != draft:
        # Select the mask just made, where the two texts begin to differ.
        start = strip.common_length(draft.text, hidden.text)
        draft, selected = hidden, hidden.text[:start].count(vocabulary.mask_token)
    return replace(asked.question, text=draft.text, draft=draft, selected=selected)


def _filled(draft: strip.Draft, model: MaskedLM, key: str) -> strip.Draft:
    """The draft with the tokens of a bar or row filled in; an invalid key changes nothing."""
    found = re.fullmatch(r"(all|\d{1,9}):(\d{1,9}(?:,\d{1,9})*)", key)
    if found is None:
        return draft
    mask, token_ids = found[1], [int(own) for own in found[2].split(",")]
    if max(token_ids) >= model.signature.vocabulary_size:
        return draft
    if mask != "all":
        return strip.fill_in(draft, model.vocabulary, int(mask), token_ids[0])
    for token_id in token_ids:  # from left to right
        draft = strip.fill_in(draft, model.vocabulary, 0, token_id)
    return draft


def compared(session: Session, question: Question) -> Json:
    """The chosen mask under both models, or a token of a run as both models saw it."""
    if question.run is not None and not question.alone:
        return replay_view.compared(session, question, question.run)
    return contrast_view.contrast_models(session, question)


def download(session: Session, question: Question) -> Json:
    """One of `DOWNLOADS`, by its `label`: its `name`, `type` and `text`."""
    if question.label not in DOWNLOADS:
        raise OptionError(unknown("file", question.label, DOWNLOADS))
    found = _downloaded(session, question, whole=question.label == ALL_TOKENS)
    name, kind = DOWNLOADS[question.label]
    as_json = question.label == "JSON"
    text = found.to_json(indent=2) if as_json else prediction_view.masks_csv(found)
    return {"name": name, "type": kind, "text": text}


def _downloaded(session: Session, question: Question, *, whole: bool) -> Filling | Comparison:
    """What a file holds, as `fillmask-ui predict --json` prints it."""
    asked, top_k = Asked.read(session, question), question.top_k
    if whole:
        _check_whole(session, asked)
    if question.compare:
        pair = contrast_view.Pair.read(session, question)
        return pair.compare(session, top_k=None if whole else top_k, candidates=pair.words)
    if whole:
        return session.ask(asked.model, fill, asked.text, top_k=None)
    shown = prediction_view.answer(session, question).filling
    if shown is None:
        raise OptionError("nothing is predicted yet: hide a word first")
    words = tuple(word.word for word in shown.masks[0].scored)
    return session.ask(asked.model, fill, asked.text, top_k=top_k, candidates=words)


def _check_whole(session: Session, asked: Asked) -> None:
    """Refuse a file of all tokens of too many masks."""
    most = MAX_WHOLE_MASKS
    if session.public:
        most = max(1, PUBLIC_LINES // asked.model.signature.vocabulary_size)
    if len(asked.draft.hidden) > most:
        raise OptionError(
            f"the text has {len(asked.draft.hidden)} masks, and a file of all tokens has at most "
            f"{most} on this page: leave some masks out, or download what is shown"
        )


def joint(session: Session, question: Question) -> Json:
    """The best joint fillings of all masks as `html`; they take many more passes than an answer."""
    if question.compare:
        with contextlib.suppress(FillmaskError):
            return {"html": contrast_view.joint_html(session, question)}
    try:
        asked = Asked.read(session, question)
        filling = session.ask(asked.model, fill, asked.text, top_k=1)
    except FillmaskError:
        return {"html": ""}  # the answer reports the error
    return {"html": prediction_view.joint_html(filling, question.unit)}


# Name in the browser -> function of the session and the state.
_SERVED: dict[str, Callable[[Session, Question], Json]] = {
    "answer": answer,
    "download": download,
    "joint": joint,
    "compared": compared,
    "losses": prediction_view.losses,
    "surprise": surprisal,
    "apart": contrast_words,
    "mattered": occlusion,
    "pair": contrast_view.contrast_sentences,
    "parting": divergent,
    "layers": guess_layers,
    "guess": guess_view.guess,
    "guesses": guess_view.guesses,
}


def _read(function: Callable[[Session, Question], Json]) -> Served:
    """A function of the state as JSON; a `FillmaskError` for a value that is none."""
    return lambda session, values: function(session, from_values(Question, values))


SERVED = {name: _read(function) for name, function in _SERVED.items()}
