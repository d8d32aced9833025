"""What the Explore tab shows for its inputs: plain functions, no Gradio events."""

import contextlib
import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fillmask_ui.comparing import Comparison, ContrastedWord
from fillmask_ui.errors import FillmaskError, OptionError, TextError
from fillmask_ui.files import csv_cell
from fillmask_ui.filling import fill, score_candidate_at, unscorable
from fillmask_ui.filling.candidates import MAX_JOINT_MASKS
from fillmask_ui.filling.prompt import check_length, split_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding, Filling, ScoredWord, finite
from fillmask_ui.show.displays import comparison_rows, filling_rows
from fillmask_ui.show.drawing import MAX_BARS, bars_of, single_id
from fillmask_ui.show.numbers import loss_text, percent
from fillmask_ui.show.render import render
from fillmask_ui.text_words import text_words
from fillmask_ui.ui.components import error_message
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
from fillmask_ui.ui.explore.sentence_strip import MAX_STRIP_TOKENS, Draft, strip_html, version_of
from fillmask_ui.ui.session import Session, check_text

# Pieces shown of one mask, by their templates.
PIECES = {
    "bars": "page/bars.html",
    "stats": "explore/stats.html",
    "candidates": "explore/candidates.html",
    "scored": "explore/scored.html",
    "details": "explore/details.html",
}
_WELCOME = "Write a sentence, or start from an example."
_CSV_COLUMNS = (
    *("mask", "position", "rank", "word", "token", "token_id"),
    *("probability", "nll_nats", "nll_bits", "cumulative_probability"),
)
_COLUMNS_OF_TWO = (
    *("mask", "reference_position", "candidate_position", *ContrastedWord.__dataclass_fields__),
    *("reference_model", "candidate_model"),
)


@dataclass(frozen=True)
class Answer:
    """The contents of the tab; empty where there is nothing to show."""

    kind: Literal["none", "hint", "error"]  # of the notice
    notice: str = ""  # a message to the reader
    draft: Draft = field(default_factory=Draft)  # the text and the words behind its masks
    model: str = ""  # name and precision of the model that answered
    filling: Filling | None = None  # all figures, for the downloads
    selected: int = 0  # number of the mask shown, from 0
    hidden: ScoredWord | None = None  # the word behind that mask, if known
    unit: str = "nats"
    measurable: bool = False  # whether it can be measured, without a mask
    html: Mapping[str, str] = field(default_factory=dict)  # `strip`, `tokens`, `PIECES` of the mask

    def to_dict(self) -> Json:
        mask = self.filling.masks[self.selected] if self.filling else None
        mask_values: Json | None = None
        losses: list[Json] = []
        if self.filling and mask:
            losses = [loss_point(self.filling, self.selected, self.hidden, self.unit)]
            mask_values = {
                "candidates": [
                    {
                        "id": candidate.token_id,
                        **_some(candidate, "word", "probability", "nll_nats"),
                    }
                    for candidate in mask.candidates
                ],
                "rest": max(0.0, 1.0 - sum(candidate.probability for candidate in mask.candidates)),
                **_some(mask, "entropy_nats", "perplexity"),
            }
        hidden = self.hidden and _some(self.hidden, "word", "probability", "nll_nats", "rank")
        return {
            "kind": self.kind,
            "notice": self.notice,
            "base": sendable(self.draft.text),
            "hidden": [word and sendable(word) for word in self.draft.hidden],
            "version": version_of(self.draft.text),
            "model": self.model,
            "selected": self.selected,
            "masks": len(self.draft.hidden),
            "mask": mask_values and finite(mask_values),
            "truth": hidden and finite(hidden),
            "losses": losses,
            "measurable": self.measurable,
            "html": dict(self.html),
        }


def _some(record: Any, *names: str) -> Json:
    return {name: getattr(record, name) for name in names}


def sendable(text: str) -> str:
    r"""A text without lone surrogates, which JSON cannot carry.

    >>> sendable("half \ud800 😀")
    'half � 😀'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def answer(session: Session, question: Question) -> Answer:
    """What to show; problems with the inputs are reported in the answer, never raised."""
    if not question.text.strip():
        return Answer("hint", _WELCOME)
    try:
        loaded = LoadedQuestion.read(session, question)
        encoding = loaded.model.vocabulary.encode(loaded.text)
    except FillmaskError as error:
        return Answer("error", error_message(error), draft=question.draft)
    model, draft = loaded.model, loaded.draft
    try:
        check_length(model, encoding)
        if strange := unknown_words(encoding, model):
            reply = Answer("hint", strange)
        elif draft.hidden:
            reply = _predicted(session, loaded)
        else:
            reply = Answer("none", measurable=True)
    except FillmaskError as error:
        reply = Answer("error", error_message(error))
    strip = strip_html(
        draft, encoding, model.vocabulary, reply.filling, reply.selected, reply.hidden
    )
    tokens = [*zip(encoding.tokens, encoding.ids, strict=True)][:MAX_STRIP_TOKENS]
    html = {"strip": strip, "tokens": render("explore/tokens.html", tokens=tokens)}
    return replace(reply, draft=draft, model=model_name(model), html={**reply.html, **html})


def model_name(model: MaskedLM) -> str:
    """Name and precision of a model."""
    return f"{model.signature.name} · {model.signature.precision}"


def unknown_words(encoding: Encoding, model: MaskedLM) -> str:
    """A warning if the model knows less than half of the words; else blank.

    Its predictions would rest on hardly more than the number of words.
    """
    words = text_words(encoding)
    words = tuple(w for w in words if any(c.isalnum() for c in w.text))
    unknown = model.vocabulary.unk_id
    known_words = [w for w in words if not any(encoding.ids[i] == unknown for i in w.tokens)]
    if not words or 2 * len(known_words) >= len(words):
        return ""
    some = f"only {len(known_words)} of the {len(words)} words" if known_words else "no word"
    return (
        f"This model knows {some} of this sentence, so its predictions would mean little. "
        "Choose a model trained on this language."
    )


def _predicted(session: Session, loaded: LoadedQuestion) -> Answer:
    model, text, question = loaded.model, loaded.text, loaded.question
    words, notice = split_words(question.words), ""
    try:
        check_text(text, words)
        problems = unscorable(model, text, words)
        words = tuple(word for word in words if word not in problems)
        notice = " ".join(f"{problem[:1].upper() + problem[1:]}." for problem in problems.values())
        filling = session.ask(model, fill, text, top_k=question.top_k, candidates=words, joint=0)
    except OptionError as error:
        # Predictions are shown even if some words cannot be scored.
        notice = error_message(error)
        filling = session.ask(model, fill, text, top_k=question.top_k, joint=0)
    hidden = scored_hidden(session, loaded, loaded.mask)
    return Answer(
        "error" if notice else "none",
        notice,
        filling=filling,
        selected=loaded.mask,
        hidden=hidden,
        unit=question.unit,
        html=mask_html(filling, model, loaded.mask, question=question, hidden=hidden),
    )


def scored_hidden(session: Session, loaded: LoadedQuestion, mask: int) -> ScoredWord | None:
    """The word behind a mask; None if it is unknown or cannot be scored."""
    if (word := loaded.draft.word(mask)) is not None:
        # It may have no tokens, or more than the model or the text's limit allows.
        with contextlib.suppress(OptionError, TextError):
            return session.ask(loaded.model, score_candidate_at, loaded.text, word, mask)
    return None


def joint_html(filling: Filling, unit: str) -> str:
    """The joint fillings of a text as a table, or why there is none; blank for a single mask."""
    version = version_of(filling.encoding.text)
    return render(
        "page/joint.html", filling=filling, unit=unit, version=version, most=MAX_JOINT_MASKS
    )


def mask_html(
    filling: Filling,
    model: MaskedLM,
    selected: int = 0,
    *,
    question: Question,
    hidden: ScoredWord | None = None,
) -> dict[str, str]:
    """One mask of a text as `PIECES` of HTML; `hidden` is the word behind it, if known."""
    mask = filling.masks[selected]
    signature = filling.signature
    values = {
        "filling": filling,
        "selected": selected,
        "mask": mask,
        "bars": bars_of(mask, selected, model.vocabulary, signature.vocabulary_size, hidden),
        "left_out": max(0, len(mask.candidates) - MAX_BARS),
        "endings": [
            candidate.token_id
            for candidate in mask.candidates
            if model.vocabulary.is_continuation(candidate.token_id) and candidate.word[:1].isalnum()
        ],
        "unit": question.unit,
        "zoom": question.zoom,
        "hidden": hidden,
        "hidden_id": single_id(hidden),
        "version": version_of(filling.encoding.text),
    }
    return {piece: render(template, **values) for piece, template in PIECES.items()}


def masks_csv(filling: Filling | Comparison) -> str:
    """All words of all masks, one per line, unrounded."""
    out = io.StringIO()
    if isinstance(filling, Comparison):
        columns, rows = _COLUMNS_OF_TWO, [*comparison_rows(filling)]
    else:
        columns, rows = _CSV_COLUMNS, [row for row in filling_rows(filling) if not row["asked"]]
    writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({name: csv_cell(cell) for name, cell in row.items()} for row in rows)
    return out.getvalue()


# Each one may take a pass of the model.
MAX_POINTS = 8


def loss_point(filling: Filling, mask: int, hidden: ScoredWord | None, unit: str) -> Json:
    """A mask on the loss curve: its hidden word, or its first candidate if that is unknown."""
    best = filling.masks[mask].candidates[0]
    scored = hidden or best
    return finite(
        {
            "mask": mask,
            "word": scored.word.strip() or best.token,
            "hidden": hidden is not None,
            **_some(scored, "probability", "nll_nats"),  # an infinite loss becomes null
            "texts": (percent(scored.probability), loss_text(scored.nll_nats, unit)),
        }
    )


def losses(session: Session, question: Question) -> Json:
    """The points of the first masks on the loss curve; `answer` has only the selected one."""
    filling = answer(session, question).filling
    if filling is None:
        return {"points": []}
    loaded = LoadedQuestion.read(session, question)
    points = [
        loss_point(filling, mask, scored_hidden(session, loaded, mask), question.unit)
        for mask in range(min(MAX_POINTS, len(filling.masks)))
    ]
    return {"version": version_of(loaded.text), "points": points}
