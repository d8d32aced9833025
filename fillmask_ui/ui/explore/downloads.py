"""The answer of the Explore tab as a file."""

from fillmask_ui.comparing import Comparison
from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.filling import fill
from fillmask_ui.records import Filling
from fillmask_ui.ui.explore import prediction_view
from fillmask_ui.ui.explore.contrast_view import ModelPair
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
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


def download(session: Session, question: Question) -> Json:
    """One of `DOWNLOADS`, by its `label`: its `name`, `type` and `text`."""
    if question.label not in DOWNLOADS:
        raise OptionError(unknown("file", question.label, DOWNLOADS))
    figures = _downloaded(session, question, whole=question.label == ALL_TOKENS)
    name, kind = DOWNLOADS[question.label]
    as_json = question.label == "JSON"
    text = figures.to_json(indent=2) if as_json else prediction_view.masks_csv(figures)
    return {"name": name, "type": kind, "text": text}


def _downloaded(session: Session, question: Question, *, whole: bool) -> Filling | Comparison:
    """What a file holds, as `fillmask-ui predict --json` prints it."""
    loaded, top_k = LoadedQuestion.read(session, question), question.top_k
    if whole:
        _check_whole(session, loaded)
    if question.compare:
        pair = ModelPair.read(session, question)
        return pair.compare(session, top_k=None if whole else top_k, candidates=pair.words)
    if whole:
        return session.ask(loaded.model, fill, loaded.text, top_k=None)
    filling = prediction_view.answer(session, question).filling
    if filling is None:
        raise OptionError("nothing is predicted yet: hide a word first")
    words = tuple(word.word for word in filling.masks[0].scored)
    return session.ask(loaded.model, fill, loaded.text, top_k=top_k, candidates=words)


def _check_whole(session: Session, loaded: LoadedQuestion) -> None:
    """Refuse a file of all tokens of too many masks."""
    most = MAX_WHOLE_MASKS
    if session.public:
        most = max(1, PUBLIC_LINES // loaded.model.signature.vocabulary_size)
    if len(loaded.draft.hidden) > most:
        raise OptionError(
            f"the text has {len(loaded.draft.hidden)} masks, and a file of all tokens has at most "
            f"{most} on this page: leave some masks out, or download what is shown"
        )
