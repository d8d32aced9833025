"""What the events of the Explore tab give: answers, what clicks make of the text, files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gradio as gr

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.records import Filling
from fillmask_ui.ui import widgets
from fillmask_ui.ui.background import Done, Turns, run_in_background
from fillmask_ui.ui.explore import editing
from fillmask_ui.ui.explore.answer import Answer, Question, answer, current_draft
from fillmask_ui.ui.explore.editing import Draft
from fillmask_ui.ui.explore.view import choices_html, filling_csv, version_of

if TYPE_CHECKING:
    from fillmask_ui.ui.session import Session

# Masks whose whole vocabulary is written to a file; each is tens of thousands of lines.
MAX_WHOLE_MASKS = 16
ALL_TOKENS = "CSV, all tokens"
# Label of a button -> name of its file, its media type.
DOWNLOADS = {
    "CSV": ("fillmask.csv", "text/csv"),
    "JSON": ("fillmask.json", "application/json"),
    ALL_TOKENS: ("fillmask-all.csv", "text/csv"),
}
_FRAGMENTS = ("strip", "stats", "chart_note", "candidates", "scored", "joint")


def predictions(
    session: Session, question: Question, turns: Turns, number: int
) -> Iterator[dict[str, Any]]:
    """Updates by the names of the tab's outputs: while an answer takes time, then the answer.

    Args:
        session: the page's models.
        question: the inputs.
        turns: of this visitor; where a later question was answered, nothing more is told.
        number: of the question.
    """
    turns.ask(number)
    for state in run_in_background(lambda report: answer(session, question, report)):
        if isinstance(state, Done):
            if turns.answer(number):
                yield {"echo": str(number), **updates(state.result)}
        elif not turns.wants(number):
            return
        else:
            message = state.message or "Working…"
            yield {"notice": widgets.notice_html("busy", message, state.fraction)}


def updates(found: Answer) -> dict[str, Any]:
    """An answer by the names of the tab's outputs; what is empty takes no room."""
    some = found.filling is not None
    fragments = {name: getattr(found, name) for name in _FRAGMENTS}
    fragments["choices"] = choices_html(found.choices, found.selected)
    return {
        "notice": widgets.notice_html(found.kind, found.notice),
        **{name: gr.HTML(html, visible=bool(html)) for name, html in fragments.items()},
        "chart": gr.Plot(found.figure, visible=some),
        "downloads": gr.Row(visible=some),
        "panel": gr.Accordion(visible=some),
        **{name: getattr(found, name) for name in ("selected", "details", "filling", "draft")},
    }


@dataclass(frozen=True)
class Click:
    """What a click makes of the tab.

    Attributes:
        draft: the text and the words behind its masks.
        selected: number of the mask to show, from 0.
    """

    draft: Draft
    selected: int = 0


def clicked_token(
    session: Session, question: Question, token: int, action: str, version: str
) -> Click:
    """What a click on the strip makes of the text and of the mask shown.

    Args:
        session: the page's models.
        question: the inputs, as they are now.
        token: index of the token, or number of the mask.
        action: `hide`, `restore` or `choose`.
        version: of the text that the strip showed; a click on an older text does nothing.

    Raises:
        FillmaskError: if the model cannot be had.
    """
    model = session.model(question.model)
    draft = current_draft(question, model)
    if version_of(draft.text) != version:
        return Click(draft, question.selected)
    if action == "restore":
        return Click(editing.restore(draft, model.vocabulary, token))
    if action == "choose":
        return Click(draft, token)
    hidden = editing.hide(draft, model.vocabulary, token)
    if hidden == draft:
        return Click(draft, question.selected)
    # The mask just made is the one to look at: it is where the two texts part.
    start = editing.common_length(draft.text, hidden.text)
    return Click(hidden, hidden.text[:start].count(model.vocabulary.mask_token))


def clicked_candidate(session: Session, question: Question, key: str) -> Click:
    """The text with a candidate filled in; a key that makes no sense leaves it as it is.

    Args:
        session: the page's models.
        question: the inputs, as they are now.
        key: `version:mask:token id`, or `version:all:token id,token id,...`, of the row or bar.

    Raises:
        FillmaskError: if the model cannot be had.
    """
    model = session.model(question.model)
    draft = current_draft(question, model)
    version, mask, ids = (*key.split(":"), "", "")[:3]
    token_ids = tuple(int(i) for i in ids.split(",") if i.isdecimal())
    known = all(i < model.signature.vocabulary_size for i in token_ids)
    if version_of(draft.text) != version or not token_ids or not known:
        return Click(draft)
    if mask == "all":
        return Click(editing.fill_all(draft, model.vocabulary, token_ids))
    if mask.isdecimal():
        return Click(editing.fill_in(draft, model.vocabulary, int(mask), token_ids[0]))
    return Click(draft)


def whole_vocabulary(session: Session, question: Question) -> Filling:
    """All tokens at each mask of the text, for a file.

    Raises:
        FillmaskError: if nothing can be predicted, or the file would be too large.
    """
    model = session.model(question.model)
    draft = current_draft(question, model)
    if len(draft.hidden) > MAX_WHOLE_MASKS:
        raise OptionError(
            f"the text has {len(draft.hidden)} masks, and a file of all tokens has at most "
            f"{MAX_WHOLE_MASKS}: leave some masks out, or download what is shown"
        )
    return session.fill(model, draft.text, top_k=None)


def downloaded(
    session: Session, label: str, question: Question, filling: Filling | None
) -> dict[str, str]:
    """The text of a file, or nothing and a notice that says why.

    Args:
        session: the page's models.
        label: of the download.
        question: the inputs, as they are now.
        filling: the figures shown.
    """
    try:
        if label == ALL_TOKENS:
            filling = whole_vocabulary(session, question)
    except FillmaskError as error:
        return {"file": "", "notice": widgets.error_html(error)}
    if filling is None:
        return {"file": ""}
    # As `fillmask-ui predict --json` prints it.
    return {"file": filling.to_json(indent=2) if label == "JSON" else filling_csv(filling)}
