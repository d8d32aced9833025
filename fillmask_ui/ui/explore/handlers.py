"""What the events of the Explore tab give: answers, what clicks make of the text, files.

Those that take a question raise a `FillmaskError` where its model cannot be had.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.records import Filling
from fillmask_ui.ui import widgets
from fillmask_ui.ui.background import Done, Turns, run_in_background
from fillmask_ui.ui.explore import editing, view
from fillmask_ui.ui.explore.view import Question, current_draft, version_of
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


def predictions(
    session: Session, question: Question, turns: Turns, number: int
) -> Iterator[dict[str, Any]]:
    """Updates by the names of the tab's outputs: while an answer takes time, then the answer.

    Nothing more comes once this visitor's `turns` say that a question of a higher number was
    answered.
    """
    turns.ask(number)
    for state in run_in_background(lambda report: view.answer(session, question, report)):
        if isinstance(state, Done):
            if turns.answer(number):
                yield {"echo": str(number), **updates(state.result)}
        elif not turns.wants(number):
            return
        else:
            message = state.message or "Working…"
            yield {"notice": widgets.notice_html("busy", message, state.fraction)}


def updates(found: view.Answer) -> dict[str, Any]:
    """An answer by the names of the tab's outputs; what is empty takes no room."""
    some = found.filling is not None
    pieces = {name: found.html.get(name, "") for name in ("strip", *view.PIECES)}
    return {
        "notice": widgets.notice_html(found.kind, found.notice),
        **{name: gr.update(value=html, visible=bool(html)) for name, html in pieces.items()},
        "chart": gr.update(value=found.figure, visible=some),
        "downloads": gr.update(visible=some),
        "panel": gr.update(visible=some),
        "selected": found.selected,
        "filling": found.filling,
        "draft": found.draft,
    }


def clicked_token(
    session: Session, question: Question, token: int, action: str, version: str
) -> Question:
    """What a click on the strip makes of the draft and of the mask selected.

    `token` is the index of the one to `hide`, or the number of the mask to `restore` or `choose`.
    A click on a strip that showed another `version` of the text does nothing.
    """
    model = session.model(question.model)
    draft, selected = current_draft(question, model), question.selected
    if version_of(draft.text) != version:
        pass
    elif action == "restore":
        draft, selected = editing.restore(draft, model.vocabulary, token), 0
    elif action == "choose":
        selected = token
    elif (hidden := editing.hide(draft, model.vocabulary, token)) != draft:
        # The mask just made is the one to look at: it is where the two texts part.
        start = editing.common_length(draft.text, hidden.text)
        draft, selected = hidden, hidden.text[:start].count(model.vocabulary.mask_token)
    return replace(question, text=draft.text, draft=draft, selected=selected)


def clicked_candidate(session: Session, question: Question, key: str) -> Question:
    """The question with a candidate filled in; a key that makes no sense changes no text.

    The key of a row or bar is `version:mask:token id`, or `version:all:token id,token id,...`.
    """
    model = session.model(question.model)
    draft = current_draft(question, model)
    version, mask, ids = (*key.split(":"), "", "")[:3]
    token_ids = tuple(int(i) for i in ids.split(",") if i.isdecimal())
    known = all(i < model.signature.vocabulary_size for i in token_ids)
    if version_of(draft.text) == version and token_ids and known:
        if mask == "all":
            draft = editing.fill_all(draft, model.vocabulary, token_ids)
        elif mask.isdecimal():
            draft = editing.fill_in(draft, model.vocabulary, int(mask), token_ids[0])
    return replace(question, text=draft.text, draft=draft, selected=0)


def whole_vocabulary(session: Session, question: Question) -> Filling:
    """All tokens at each mask of the text; refused where the file would be too large."""
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
    """The text of one of `DOWNLOADS` for the figures shown, or nothing and a notice with why."""
    try:
        filling = whole_vocabulary(session, question) if label == ALL_TOKENS else filling
    except FillmaskError as error:
        return {"file": "", "notice": widgets.error_html(error)}
    if filling is None:
        return {"file": ""}
    # As `fillmask-ui predict --json` prints it.
    return {"file": filling.to_json(indent=2) if label == "JSON" else view.filling_csv(filling)}
