"""What the Explore tab shows for its inputs: plain functions, no Gradio events."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from fillmask_ui.errors import FillmaskError, OptionError, TextError
from fillmask_ui.filling import fill, score_candidate_at, unscorable
from fillmask_ui.filling.candidates import MAX_JOINT_MASKS
from fillmask_ui.filling.prompt import check_length, split_words
from fillmask_ui.filling.words import text_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding, Filling, ScoredWord, finite
from fillmask_ui.show.drawing import MAX_BARS, bars_of, single_id
from fillmask_ui.show.numbers import loss_text, percent
from fillmask_ui.show.render import render
from fillmask_ui.ui.components import error_message
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.sentence_strip import (
    MAX_STRIP_TOKENS,
    Draft,
    carried,
    strip_html,
    version_of,
)
from fillmask_ui.ui.session import Session, check_text

# Pieces shown of one mask, each a template.
PIECES = ("bars", "stats", "candidates", "scored", "details")
_WELCOME = "Write a sentence, or start from an example."
_CSV_COLUMNS = (
    *("mask", "position", "rank", "word", "token", "token_id"),
    *("probability", "nll_nats", "nll_bits", "cumulative_probability"),
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
    loss: LossPoint | None = None  # of that mask, on the curve of losses
    measurable: bool = False  # whether it can be measured, without a mask
    html: Mapping[str, str] = field(
        default_factory=dict
    )  # `strip`, `tokens`, and `PIECES` of the mask

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values for the browser."""
        mask = self.filling.masks[self.selected] if self.filling else None
        return {
            "kind": self.kind,
            "notice": self.notice,
            "base": sendable(self.draft.text),
            "hidden": [word and sendable(word) for word in self.draft.hidden],
            "version": version_of(self.draft.text),
            "model": self.model,
            "selected": self.selected,
            "masks": len(self.draft.hidden),
            "mask": mask
            and finite(
                {
                    "candidates": [
                        {
                            "id": c.token_id,
                            "word": c.word,
                            "probability": c.probability,
                            "nll_nats": c.nll_nats,
                        }
                        for c in mask.candidates
                    ],
                    "rest": max(0.0, 1.0 - sum(c.probability for c in mask.candidates)),
                    "entropy_nats": mask.entropy_nats,
                    "perplexity": mask.perplexity,
                }
            ),
            "truth": self.hidden
            and finite(
                {
                    "word": self.hidden.word,
                    "probability": self.hidden.probability,
                    "nll_nats": self.hidden.nll_nats,
                    "rank": self.hidden.rank,
                }
            ),
            "losses": points_json([self.loss] if self.loss else []),
            "measurable": self.measurable,
            "html": dict(self.html),
        }


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
        check_text(question.text)
        model = session.model(question.model)
        draft = current_draft(question, model)
        encoding = model.vocabulary.encode(draft.text)
    except FillmaskError as error:
        return Answer("error", error_message(error), draft=question.draft)
    try:
        check_length(model, encoding)
        if strange := unknown_words(encoding, model):
            found = Answer("hint", strange)
        elif draft.hidden:
            found = _predicted(session, model, replace(question, draft=draft))
        else:
            found = Answer("none", measurable=True)
    except FillmaskError as error:
        found = Answer("error", error_message(error))
    strip = strip_html(
        draft, encoding, model.vocabulary, found.filling, found.selected, found.hidden
    )
    tokens = [*zip(encoding.tokens, encoding.ids, strict=True)][:MAX_STRIP_TOKENS]
    html = {"strip": strip, "tokens": render("page/explore/tokens.html", tokens=tokens)}
    return replace(found, draft=draft, model=model_name(model), html={**found.html, **html})


def model_name(model: MaskedLM) -> str:
    """Name and precision of a model."""
    return f"{model.signature.name} · {model.signature.precision}"


def current_draft(question: Question, model: MaskedLM) -> Draft:
    """The text of the sentence box, with the words known behind its masks."""
    return carried(question.draft, question.text, model.vocabulary.mask_token)


def unknown_words(encoding: Encoding, model: MaskedLM) -> str:
    """A warning if the model knows less than half of the words; else blank.

    Its predictions would rest on hardly more than the number of words.
    """
    words = text_words(encoding, model.vocabulary)
    words = tuple(w for w in words if any(c.isalnum() for c in w.text))
    unknown = model.vocabulary.unk_id
    known = [w for w in words if not any(encoding.ids[i] == unknown for i in w.tokens)]
    if not words or 2 * len(known) >= len(words):
        return ""
    some = f"only {len(known)} of the {len(words)} words" if known else "no word"
    return (
        f"This model knows {some} of this sentence, so its guesses would mean nothing. "
        "Pick a model that was trained on this language."
    )


def _predicted(session: Session, model: MaskedLM, question: Question) -> Answer:
    """The answer without the strip; the question's draft is already that of its text."""
    draft, words, notice = question.draft, split_words(question.words), ""
    try:
        check_text(draft.text, words)
        problems = unscorable(model, draft.text, words)
        words = tuple(word for word in words if word not in problems)
        notice = " ".join(f"{problem[:1].upper() + problem[1:]}." for problem in problems.values())
        filling = session.ask(
            model, fill, draft.text, top_k=question.top_k, candidates=words, joint=0
        )
    except OptionError as error:
        # Predictions are shown even if some words cannot be scored.
        notice = error_message(error)
        filling = session.ask(model, fill, draft.text, top_k=question.top_k, joint=0)
    selected = question.selected if 0 <= question.selected < len(filling.masks) else 0
    hidden = None
    if (word := draft.word(selected)) is not None:
        # It may have no tokens, or more than the model or the text's limit allows.
        with contextlib.suppress(OptionError, TextError):
            hidden = session.ask(model, score_candidate_at, draft.text, word, selected)
    html = mask_html(filling, model, selected, question=question, hidden=hidden)
    return Answer(
        "error" if notice else "none",
        notice,
        filling=filling,
        selected=selected,
        hidden=hidden,
        loss=loss_point(filling, selected, hidden, question.unit),
        html=html,
    )


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
        "vocabulary": model.vocabulary,
        "unit": question.unit,
        "zoom": question.zoom,
        "hidden": hidden,
        "hidden_id": single_id(hidden),
        "version": version_of(filling.encoding.text),
    }
    return {piece: render(f"page/{piece}.html", **values) for piece in PIECES}


def filling_csv(filling: Filling) -> str:
    """All candidates of all masks, one per line, unrounded."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for number, mask in enumerate(filling.masks, start=1):
        totals = itertools.accumulate(c.probability for c in mask.candidates)
        for c, total in zip(mask.candidates, totals, strict=True):
            own = {"mask": number, "position": mask.position, **vars(c)}
            writer.writerow(own | {"nll_bits": c.nll_bits, "cumulative_probability": total})
    return out.getvalue()


# Each one may take a pass of the model.
MAX_POINTS = 8


@dataclass(frozen=True)
class LossPoint:
    """The hidden word of a mask on the loss curve, or its first candidate if unknown."""

    mask: int  # its number, from 0
    word: str
    hidden: bool  # whether it is the hidden word
    probability: float
    nll_nats: float  # infinite for an impossible word
    texts: tuple[str, str]  # probability and loss, formatted


def loss_point(filling: Filling, mask: int, hidden: ScoredWord | None, unit: str) -> LossPoint:
    """The point of one mask; `hidden` is its word if known and scorable."""
    best = filling.masks[mask].candidates[0]
    own = hidden or best
    word = own.word.strip() or best.token
    texts = (percent(own.probability), loss_text(own.nll_nats, unit))
    return LossPoint(mask, word, hidden is not None, own.probability, own.nll_nats, texts)


def loss_points(
    session: Session, model: MaskedLM, filling: Filling, words: Sequence[str | None], unit: str
) -> list[LossPoint]:
    """A point for each of the first masks; `words` are the hidden ones, one per mask."""
    points = []
    for mask, word in enumerate(words[:MAX_POINTS]):
        scored: ScoredWord | None = None
        if word is not None:
            # An unscorable word has no loss: use the first candidate.
            with contextlib.suppress(OptionError, TextError):
                scored = session.ask(model, score_candidate_at, filling.encoding.text, word, mask)
        points.append(loss_point(filling, mask, scored, unit))
    return points


def points_json(points: Sequence[LossPoint]) -> list[dict[str, Any]]:
    """Points as JSON; an infinite loss becomes null."""
    return [finite(asdict(point)) for point in points]
