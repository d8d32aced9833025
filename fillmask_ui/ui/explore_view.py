"""What the Explore tab shows for what its inputs hold: plain functions, no Gradio events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from fillmask_ui.errors import FillmaskError, OptionError, TextError
from fillmask_ui.filling import split_words
from fillmask_ui.records import Filling, ScoredWord
from fillmask_ui.show.charts import explore as plots
from fillmask_ui.ui import editing, results
from fillmask_ui.ui.editing import Draft
from fillmask_ui.ui.session import check_text

if TYPE_CHECKING:
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.records import Encoding
    from fillmask_ui.ui.session import Session

MAX_TOP_K = 100
# Masks whose whole vocabulary is written to a file; each is tens of thousands of lines.
MAX_WHOLE_MASKS = 16
UNITS = ("nats", "bits")


@dataclass(frozen=True)
class Question:
    """The inputs of the tab at one moment.

    Attributes:
        text: of the sentence box.
        model: reference of the model picked.
        top_k: candidates wanted.
        words: candidate words as typed, separated by commas.
        unit: `nats` or `bits`.
        selected: number of the mask to show, from 0.
        draft: of the latest answer, for the words behind the masks.
    """

    text: str
    model: str = ""
    top_k: int = 10
    words: str = ""
    unit: str = "nats"
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
        choices: one short name a mask.
        stats: figures of the mask shown, HTML.
        figure: its best candidates, a plotly figure.
        chart_note: what the chart leaves out.
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
    session: Session, question: Question, on_progress: Callable[..., None] | None = None
) -> Answer:
    """What to show; what is wrong with the inputs is said in the answer, never raised.

    Args:
        session: the page's models.
        question: the inputs.
        on_progress: told how far a model is loaded.
    """
    if not question.text.strip():
        return Answer(
            "hint",
            "Write a sentence and hide a word with [MASK] or ___, or start from an example.",
        )
    draft, strip = question.draft, ""
    try:
        check_text(question.text)
        model = session.model(question.model, on_progress)
        draft = editing.carried(question.draft, question.text, model.vocabulary.mask_token)
        encoding = model.vocabulary.encode(draft.text)
        strip = results.strip_html(draft, encoding, model.vocabulary)
        if not draft.hidden:
            return _nothing_hidden(model, encoding, draft, strip)
        return _predicted(session, model, question, draft, encoding)
    except FillmaskError as error:
        return Answer("error", sentence(error), strip=strip, draft=draft)


def sentence(error: FillmaskError) -> str:
    """An error as a sentence, with a capital unless it starts with a name."""
    message = str(error)
    starts_with_word = message.split(" ", 1)[0].isalpha()
    return message[:1].upper() + message[1:] if starts_with_word else message


def _nothing_hidden(model: MaskedLM, encoding: Encoding, draft: Draft, strip: str) -> Answer:
    if len(encoding) > model.max_tokens:
        raise TextError(
            f"the text has {len(encoding):,} tokens and this model takes at most "
            f"{model.max_tokens:,}: shorten it by about {len(encoding) - model.max_tokens:,}; "
            "nothing was cut"
        )
    mask = model.vocabulary.mask_token
    # A very long text has no strip to click on.
    click = "click one below, or " if strip else ""
    return Answer(
        "hint",
        f"No word is hidden yet: {click}write {mask} or ___ in its place.",
        strip=strip,
        draft=draft,
    )


def _predicted(
    session: Session, model: MaskedLM, question: Question, draft: Draft, encoding: Encoding
) -> Answer:
    top_k = max(1, min(MAX_TOP_K, int(question.top_k)))
    kind: Literal["none", "error"] = "none"
    notice = ""
    try:
        words = split_words(question.words)
        filling = session.fill(model, draft.text, top_k=top_k, words=words)
    except OptionError as error:
        # A word that cannot be scored must not hide what can be predicted.
        kind, notice = "error", sentence(error)
        filling = session.fill(model, draft.text, top_k=top_k)
    count = len(filling.masks)
    selected = question.selected if 0 <= question.selected < count else 0
    mask = filling.masks[selected]
    unit = question.unit if question.unit in UNITS else UNITS[0]
    original = _original(session, model, draft, selected)
    version = results.version_of(draft.text)
    prefix = f"{version}:{selected}:"
    marked = original.parts[0].token_id if original and len(original.parts) == 1 else None
    left_out = len(mask.candidates) - plots.MAX_BARS
    return Answer(
        kind,
        notice,
        strip=results.strip_html(draft, encoding, model.vocabulary, filling, selected),
        draft=draft,
        filling=filling,
        selected=selected,
        choices=tuple(_choice(draft, number) for number in range(count)),
        stats=results.stats_html(mask, model.signature.vocabulary_size, unit, original),
        figure=plots.candidates_figure(mask, unit=unit, marked=marked, key_prefix=prefix),
        chart_note=(
            f"The chart shows the first {plots.MAX_BARS}; the table below has all "
            f"{len(mask.candidates)}."
            if left_out > 0
            else ""
        ),
        candidates=results.candidates_html(mask, unit, prefix, original),
        scored=results.scored_html(mask.scored, unit, original) if mask.scored or original else "",
        joint=results.joint_html(filling.joint, unit, version) if filling.joint else "",
        details=results.details_html(filling, mask),
    )


def _choice(draft: Draft, number: int) -> str:
    word = draft.hidden[number] if number < len(draft.hidden) else None
    return f"Mask {number + 1}" + (f" ({word})" if word else "")


def _original(session: Session, model: MaskedLM, draft: Draft, selected: int) -> ScoredWord | None:
    """The loss on the word that was hidden by click, where it is known and can be scored."""
    word = draft.hidden[selected] if selected < len(draft.hidden) else None
    if word is None:
        return None
    try:
        return session.score_at(model, draft.text, word, selected)
    except (OptionError, TextError):
        # The word has no tokens or too many, or the text is too long once the mask has widened.
        return None


@dataclass(frozen=True)
class Click:
    """What a click makes of the tab.

    Attributes:
        draft: the text and the words behind its masks.
        selected: number of the mask to show, from 0.
    """

    draft: Draft
    selected: int


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
    """
    model, draft = _current(session, question)
    if results.version_of(draft.text) != version:
        return Click(draft, question.selected)
    if action == "restore":
        return Click(editing.restore(draft, model.vocabulary, token), 0)
    if action == "choose":
        return Click(draft, token)
    hidden = editing.hide(draft, model.vocabulary, token)
    if hidden == draft:
        return Click(draft, question.selected)
    # The mask just made is the one to look at: it is where the two texts part.
    start = editing.common_length(draft.text, hidden.text)
    return Click(hidden, hidden.text[:start].count(model.vocabulary.mask_token))


def clicked_candidate(session: Session, question: Question, key: str) -> Draft:
    """The text with a candidate filled in.

    Args:
        session: the page's models.
        question: the inputs, as they are now.
        key: `version:mask:token id`, or `version:all:token id,token id,...`, of the row or bar.
    """
    model, draft = _current(session, question)
    version, which, ids = (*key.split(":"), "", "")[:3]
    if results.version_of(draft.text) != version:
        return draft
    token_ids = tuple(int(i) for i in ids.split(",") if i.isdecimal())
    known = all(i < model.signature.vocabulary_size for i in token_ids)
    if not token_ids or not known:
        return draft
    if which == "all":
        return editing.fill_all(draft, model.vocabulary, token_ids)
    if which.isdecimal():
        return editing.fill_in(draft, model.vocabulary, int(which), token_ids[0])
    return draft


def _current(session: Session, question: Question) -> tuple[MaskedLM, Draft]:
    model = session.model(question.model)
    return model, editing.carried(question.draft, question.text, model.vocabulary.mask_token)


def whole_vocabulary(session: Session, question: Question) -> Filling:
    """All tokens at each mask of the text, for a file.

    Raises:
        FillmaskError: if nothing can be predicted, or the file would be too large.
    """
    model, draft = _current(session, question)
    if len(draft.hidden) > MAX_WHOLE_MASKS:
        raise OptionError(
            f"the text has {len(draft.hidden)} masks, and a file of all tokens has at most "
            f"{MAX_WHOLE_MASKS}: leave some masks out, or download what is shown"
        )
    return session.fill(model, draft.text, top_k=None)
