"""What the Explore tab shows for what its inputs hold: plain functions, no Gradio events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from fillmask_ui.errors import FillmaskError, OptionError, TextError
from fillmask_ui.filling import MAX_TOP_K, split_words
from fillmask_ui.records import Filling, ScoredWord
from fillmask_ui.show.charts import explore as charts
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore import editing, view
from fillmask_ui.ui.explore.editing import Draft
from fillmask_ui.ui.session import check_text
from fillmask_ui.ui.widgets import error_message

if TYPE_CHECKING:
    from fillmask_ui.models.progress import ProgressCallback
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.records import Encoding
    from fillmask_ui.ui.session import Session

UNITS = ("nats", "bits")
_WELCOME = "Write a sentence and hide a word with [MASK] or ___, or start from an example."


@dataclass(frozen=True)
class Question:
    """The inputs of the tab at one moment.

    Attributes:
        text: of the sentence box.
        model: reference of the model picked; blank for the page's default.
        top_k: candidates wanted.
        words: candidate words as typed, separated by commas.
        unit: one of `UNITS`.
        selected: number of the mask to show, from 0.
        draft: of the latest answer, for the words behind the masks.
    """

    text: str
    model: str = ""
    top_k: int = 10
    words: str = ""
    unit: str = UNITS[0]
    selected: int = 0
    draft: Draft = field(default_factory=Draft)


@dataclass(frozen=True)
class Answer:
    """The contents of the tab at one moment; empty where there is nothing to show.

    Attributes:
        kind: of the notice.
        notice: a message to the reader.
        strip: the sentence as tokens, HTML.
        draft: the text and the words behind its masks.
        filling: all figures, for the downloads.
        selected: number of the mask shown, from 0.
        choices: one short name per mask.
        stats: figures of the mask shown, HTML.
        figure: its best candidates, a plotly figure.
        chart_note: what the chart leaves out, HTML.
        candidates: its table, HTML.
        scored: table of the words asked about, HTML.
        joint: table of joint fillings, HTML.
        details: the model's signature, HTML.
    """

    kind: Literal["none", "hint", "error"]
    notice: str = ""
    strip: str = ""
    draft: Draft = field(default_factory=Draft)
    filling: Filling | None = None
    selected: int = 0
    choices: tuple[str, ...] = ()
    stats: str = ""
    figure: Any | None = None
    chart_note: str = ""
    candidates: str = ""
    scored: str = ""
    joint: str = ""
    details: str = ""


def answer(
    session: Session, question: Question, on_progress: ProgressCallback | None = None
) -> Answer:
    """What to show; what is wrong with the inputs is said in the answer, never raised.

    Args:
        session: the page's models.
        question: the inputs.
        on_progress: called with each step of loading a model.
    """
    if not question.text.strip():
        return Answer("hint", _WELCOME)
    try:
        check_text(question.text)
        model = session.model(question.model, on_progress)
        draft = current_draft(question, model)
        encoding = model.vocabulary.encode(draft.text)
    except FillmaskError as error:
        return Answer("error", error_message(error), draft=question.draft)
    try:
        if draft.hidden:
            found = _predicted(session, model, replace(question, draft=draft))
        else:
            found = _nothing_hidden(model, encoding)
    except FillmaskError as error:
        found = Answer("error", error_message(error))
    strip = view.strip_html(draft, encoding, model.vocabulary, found.filling, found.selected)
    return replace(found, draft=draft, strip=strip)


def current_draft(question: Question, model: MaskedLM) -> Draft:
    """The text of the sentence box with the words behind its masks, as far as they are known."""
    return editing.carried(question.draft, question.text, model.vocabulary.mask_token)


def _nothing_hidden(model: MaskedLM, encoding: Encoding) -> Answer:
    if len(encoding) > model.max_tokens:
        raise TextError(
            f"the text has {len(encoding):,} tokens and this model takes at most "
            f"{model.max_tokens:,}: shorten it by about {len(encoding) - model.max_tokens:,}; "
            "nothing was cut"
        )
    # A very long text has no strip to click on.
    click = "click one below, or " if len(encoding) <= view.MAX_STRIP_TOKENS else ""
    mask = model.vocabulary.mask_token
    return Answer("hint", f"No word is hidden yet: {click}write {mask} or ___ in its place.")


def _predicted(session: Session, model: MaskedLM, question: Question) -> Answer:
    """The answer without its strip; the question's draft is that of its text."""
    draft = question.draft
    top_k = max(1, min(MAX_TOP_K, int(question.top_k)))
    trouble = ""
    try:
        words = split_words(question.words)
        filling = session.fill(model, draft.text, top_k=top_k, words=words)
    except OptionError as error:
        # A word that cannot be scored must not hide what can be predicted.
        trouble = error_message(error)
        filling = session.fill(model, draft.text, top_k=top_k)
    selected = question.selected if 0 <= question.selected < len(filling.masks) else 0
    mask = filling.masks[selected]
    unit = question.unit if question.unit in UNITS else UNITS[0]
    hidden = _score_of_hidden(session, model, draft, selected)
    version = view.version_of(draft.text)
    prefix = f"{version}:{selected}:"
    count = len(mask.candidates)
    note = f"The chart shows the first {charts.MAX_BARS}; the table below has all {count}."
    return Answer(
        "error" if trouble else "none",
        trouble,
        filling=filling,
        selected=selected,
        choices=tuple(_mask_name(draft, number) for number in range(len(filling.masks))),
        stats=view.stats_html(mask, model.signature.vocabulary_size, unit, hidden),
        figure=charts.candidates_figure(
            mask, unit=unit, marked=view.hidden_id(hidden), key_prefix=prefix
        ),
        chart_note=render("page/note.html", text=note) if count > charts.MAX_BARS else "",
        candidates=view.candidates_html(mask, unit, prefix, hidden),
        scored=view.scored_html(mask.scored, unit, hidden) if mask.scored or hidden else "",
        joint=view.joint_html(filling.joint, unit, version),
        details=view.details_html(filling, mask),
    )


def _mask_name(draft: Draft, number: int) -> str:
    word = draft.word(number)
    return f"Mask {number + 1}" + (f" ({word})" if word else "")


def _score_of_hidden(
    session: Session, model: MaskedLM, draft: Draft, selected: int
) -> ScoredWord | None:
    """The loss on the word that was hidden by click, where it is known and can be scored."""
    word = draft.word(selected)
    if word is None:
        return None
    try:
        return session.score_at(model, draft.text, word, selected)
    except (OptionError, TextError):
        # The word has no tokens or too many, or the text is too long once the mask has widened.
        return None
