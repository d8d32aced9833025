"""What the Explore tab shows for what its inputs hold: plain functions, no Gradio events."""

import contextlib
import csv
import hashlib
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fillmask_ui.errors import FillmaskError, OptionError, TextError
from fillmask_ui.filling import MAX_TOP_K, check_length, mask_positions, split_words
from fillmask_ui.models.progress import ProgressCallback
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding, Filling, ScoredWord
from fillmask_ui.show.charts.explore import MAX_BARS, candidate_names, candidates_figure
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.editing import Draft, can_hide, carried
from fillmask_ui.ui.session import Session, check_text
from fillmask_ui.ui.widgets import error_message

UNITS = ("nats", "bits")
# What is shown of one mask; each is a template.
PIECES = ("choices", "stats", "chart_note", "candidates", "scored", "joint", "details")
# A longer text is read in the box, not as a thousand buttons.
MAX_STRIP_TOKENS = 600
_WELCOME = "Write a sentence and hide a word with [MASK] or ___, or start from an example."
_CSV_COLUMNS = (
    *("mask", "position", "rank", "word", "token", "token_id"),
    *("probability", "nll_nats", "nll_bits", "cumulative_probability"),
)


@dataclass(frozen=True)
class Question:
    """The inputs of the tab at one moment."""

    text: str  # of the sentence box
    model: str = ""  # reference of the model picked; blank for the page's default
    top_k: int = 10  # candidates wanted
    words: str = ""  # candidate words as typed, separated by commas
    unit: str = UNITS[0]  # one of `UNITS`
    selected: int = 0  # number of the mask to show, from 0
    draft: Draft = field(default_factory=Draft)  # of the latest answer


@dataclass(frozen=True)
class Answer:
    """The contents of the tab at one moment; empty where there is nothing to show."""

    kind: Literal["none", "hint", "error"]  # of the notice
    notice: str = ""  # a message to the reader
    draft: Draft = field(default_factory=Draft)  # the text and the words behind its masks
    filling: Filling | None = None  # all figures, for the downloads
    selected: int = 0  # number of the mask shown, from 0
    choices: tuple[str, ...] = ()  # one short name per mask
    figure: Any | None = None  # best candidates of the mask shown, a plotly figure
    html: Mapping[str, str] = field(default_factory=dict)  # `strip`, and `PIECES` of the mask


def answer(
    session: Session, question: Question, on_progress: ProgressCallback | None = None
) -> Answer:
    """What to show; what is wrong with the inputs is said in the answer, never raised."""
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
            check_length(model, encoding)
            # A very long text has no strip to click on.
            click = "click one below, or " if len(encoding) <= MAX_STRIP_TOKENS else ""
            way = f"{click}write {model.vocabulary.mask_token} or ___ in its place."
            found = Answer("hint", f"No word is hidden yet: {way}")
    except FillmaskError as error:
        found = Answer("error", error_message(error))
    strip = strip_html(draft, encoding, model.vocabulary, found.filling, found.selected)
    return replace(found, draft=draft, html={**found.html, "strip": strip})


def current_draft(question: Question, model: MaskedLM) -> Draft:
    """The text of the sentence box with the words behind its masks, as far as they are known."""
    return carried(question.draft, question.text, model.vocabulary.mask_token)


def _predicted(session: Session, model: MaskedLM, question: Question) -> Answer:
    """The answer without the strip; the question's draft is that of its text."""
    draft = question.draft
    top_k = max(1, min(MAX_TOP_K, int(question.top_k)))
    notice = ""
    try:
        words = split_words(question.words)
        filling = session.fill(model, draft.text, top_k=top_k, words=words)
    except OptionError as error:
        # A word that cannot be scored must not hide what can be predicted.
        notice = error_message(error)
        filling = session.fill(model, draft.text, top_k=top_k)
    selected = question.selected if 0 <= question.selected < len(filling.masks) else 0
    hidden = None
    if (word := draft.word(selected)) is not None:
        # It may have no tokens or too many, or make the text too long once the mask has widened.
        with contextlib.suppress(OptionError, TextError):
            hidden = session.score_at(model, draft.text, word, selected)
    names = tuple(
        f"Mask {number} ({word})" if word else f"Mask {number}"
        for number, word in enumerate(draft.words(len(filling.masks)), start=1)
    )
    return Answer(
        "error" if notice else "none",
        notice,
        filling=filling,
        selected=selected,
        choices=names,
        figure=candidates_figure(
            filling.masks[selected],
            unit=question.unit,
            marked=_single_id(hidden),
            key_prefix=f"{version_of(draft.text)}:{selected}:",
        ),
        html=mask_html(filling, selected, unit=question.unit, hidden=hidden, names=names),
    )


def version_of(text: str) -> str:
    """Short name of a text, so that a click on what showed an older text is recognised."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def strip_html(
    draft: Draft,
    encoding: Encoding,
    vocabulary: Vocabulary,
    filling: Filling | None = None,
    selected: int = 0,
) -> str:
    """The sentence as the tokens that the model sees, each a button; nothing for a long text.

    `encoding` is that of the draft's text; a `filling` gives each mask its best guess.
    """
    if len(encoding) > MAX_STRIP_TOKENS:
        return ""
    numbers = {place: mask for mask, place in enumerate(mask_positions(encoding, vocabulary))}
    words = encoding.word_ids
    tokens = [
        {
            "index": index,
            "mask": numbers.get(index),
            "shown": vocabulary.word(encoding.ids[index]).strip() or token,
            "about": f"token {token}, id {encoding.ids[index]}",
            "can_hide": can_hide(encoding, vocabulary, index),
            "joined": index > 0 and words[index] is not None and words[index] == words[index - 1],
        }
        for index, token in enumerate(encoding.tokens)
    ]
    best = [mask.candidates[0] for mask in filling.masks] if filling else []
    return render(
        "page/strip.html",
        tokens=tokens,
        hidden=draft.words(len(numbers)),
        guesses=[(candidate_names([guess])[0], guess.probability) for guess in best],
        selected=selected,
        version=version_of(draft.text),
    )


def mask_html(
    filling: Filling,
    selected: int = 0,
    *,
    unit: str = UNITS[0],
    hidden: ScoredWord | None = None,
    names: Sequence[str] = (),
) -> dict[str, str]:
    """One mask of a text as `PIECES` of HTML.

    `hidden` is the word behind the mask where that is known, `names` are those of all masks.
    """
    values = {
        "filling": filling,
        "selected": selected,
        "mask": filling.masks[selected],
        "unit": unit,
        "hidden": hidden,
        "hidden_id": _single_id(hidden),
        "names": names,
        "version": version_of(filling.encoding.text),
        "max_bars": MAX_BARS,
    }
    return {piece: render(f"page/{piece}.html", **values) for piece in PIECES}


def _single_id(word: ScoredWord | None) -> int | None:
    """The token of a word that is just one."""
    return word.parts[0].token_id if word and len(word.parts) == 1 else None


def filling_csv(filling: Filling) -> str:
    """All candidates of all masks, one per line, numbers unrounded."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for number, mask in enumerate(filling.masks, start=1):
        totals = itertools.accumulate(c.probability for c in mask.candidates)
        for c, total in zip(mask.candidates, totals, strict=True):
            own = {"mask": number, "position": mask.position, **vars(c)}
            writer.writerow(own | {"nll_bits": c.nll_bits, "cumulative_probability": total})
    return out.getvalue()
