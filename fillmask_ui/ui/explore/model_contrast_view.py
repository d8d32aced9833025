"""The masks of a sentence under a second model: paired words, joint fillings, files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fillmask_ui.comparing import Comparison, Contrast, ContrastedWord
from fillmask_ui.comparing.word_contrast import (
    DIFFERENT_CUTS,
    Alignment,
    ComparedWord,
    align_text,
    compared_words,
    summarize_comparison,
)
from fillmask_ui.filling import unscorable
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.drawing import MAX_BARS, Scale
from fillmask_ui.show.numbers import in_unit
from fillmask_ui.show.render import render
from fillmask_ui.show.words import (
    MARKS,
    RankChange,
    candidate_names,
    compared_name,
    first_words,
    mark,
    points,
    rank_change,
)
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.explore import attribution_view
from fillmask_ui.ui.explore.attribution_view import SURPRISAL_SCALE, Asked, Json, Tick, measured
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import current_draft, model_name
from fillmask_ui.ui.explore.sentence_strip import version_of
from fillmask_ui.ui.session import Session

_CSV_COLUMNS = ("mask", "position", "other_position", *ContrastedWord.__dataclass_fields__)


@dataclass(frozen=True)
class Row:
    """A row of the chart."""

    own: ContrastedWord
    name: str
    notes: tuple[str, ...]  # remarks on the word
    points: str
    change: RankChange
    key: str  # `mask:token id` written by a click; blank for none


@dataclass(frozen=True, eq=False)
class Pair:
    """The text of a question under its two models."""

    question: Question
    models: tuple[MaskedLM, MaskedLM]
    text: str
    selected: int  # number of the chosen mask, from 0
    hidden: str | None  # the word behind it, if known
    words: tuple[str, ...]  # typed words that both can score
    notes: tuple[str, ...]  # why the others cannot be compared

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(model_name(model) for model in self.models)


def read(session: Session, question: Question) -> Pair:
    """Load both models and prepare the comparison; a `FillmaskError` if impossible."""
    models = session.model(question.model), session.model(question.compare)
    draft = current_draft(question, models[0])
    selected = question.selected if question.selected < len(draft.hidden) else 0
    asked, problems = split_words(question.words), dict[str, str]()
    hidden = draft.word(selected)
    for model in models:
        text = draft.text.replace(models[0].vocabulary.mask_token, model.vocabulary.mask_token)
        bad = unscorable(model, text, [*asked, *([hidden] if hidden else [])])
        problems |= {word: f"{model.signature.name}: {why}" for word, why in bad.items()}
    words = tuple(word for word in asked if word not in problems)
    notes = tuple(f"{problems[word]}." for word in asked if word in problems)
    return Pair(
        question, models, draft.text, selected, None if hidden in problems else hidden, words, notes
    )


def compared(session: Session, values: Mapping[str, object]) -> Json:
    """The chosen mask under both models: its `story` and `html`.

    The kind is `busy`, with the progress, while the second model loads, and `error` if that fails.
    """
    question = Question.read(values)
    state = session.model_soon(question.compare)
    if isinstance(state, Waiting):
        message = state.message or "Loading the second model…"
        return {"kind": "busy", "notice": message, "fraction": state.fraction}
    pair = read(session, question)
    asked = dict.fromkeys([*([pair.hidden] if pair.hidden else []), *pair.words])
    found = session.compare(
        pair.models, pair.text, top_k=question.top_k, words=tuple(asked), joint=0
    )
    several = len(found.masks) > 1
    return shown(pair, found.masks[pair.selected], found.notes, several=several)


def shown(
    pair: Pair,
    mask: Contrast,
    notes: Sequence[str] = (),
    *,
    several: bool = False,
    writes: int = 0,
) -> Json:
    """One mask under both models, in the form of `compared`.

    Args:
        pair: the text and its models.
        mask: the comparison.
        notes: remarks.
        several: whether to number the mask.
        writes: whose tokens a click on a word writes: 0 for A's, 1 for B's.
    """
    vocabularies = [model.vocabulary for model in pair.models]
    values = {
        "mask": mask,
        "selected": pair.selected,
        "several": several,
        "first": [compared_name(row, *vocabularies) for row in first_words(mask)],
    }
    return {
        "kind": "none",
        "story": render("page/explore/compare_story.html", **values),
        "html": render(
            "page/explore/compare.html",
            rows=[_row(row, pair, writes) for row in mask.candidates],
            most=MAX_BARS,
            names=pair.names,
            notes=[*(f"{note[:1].upper()}{note[1:]}." for note in notes), *pair.notes],
            unit=pair.question.unit,
            zoom=pair.question.zoom,
            version=version_of(pair.text),
            **values,
        ),
    }


def _row(row: ContrastedWord, pair: Pair, writes: int) -> Row:
    token_id = row.other_token_id if writes else row.token_id
    kind, notes = mark(row), []
    if row.asked and row.word == pair.hidden:
        notes.append("the hidden word")
    elif row.asked and not kind:
        notes.append("asked")
    if kind and not (kind == "asked" and notes):
        notes.append(kind if kind == "asked" else MARKS[kind])
    return Row(
        row,
        compared_name(row, *(model.vocabulary for model in pair.models)),
        tuple(notes),
        points(row),
        rank_change(row),
        "" if token_id is None else f"{pair.selected}:{token_id}",
    )


def joint_html(session: Session, question: Question) -> str:
    """The joint fillings of both models as a table; blank if there are none."""
    pair = read(session, question)
    found = session.compare(pair.models, pair.text, top_k=1)
    return render(
        "page/explore/compare_joint.html",
        joint=found.joint,
        names=pair.names,
        unit=question.unit,
        version=version_of(pair.text),
    )


def comparison(session: Session, question: Question, top_k: int | None) -> Comparison:
    """All masks under both models, for a file."""
    pair = read(session, question)
    return session.compare(pair.models, pair.text, top_k=top_k, words=pair.words)


def comparison_csv(found: Comparison) -> str:
    """All words of all masks, one per line, unrounded; columns with `other` are of B."""
    out = io.StringIO()
    writer = csv.DictWriter(out, (*_CSV_COLUMNS, "model", "other_model"), lineterminator="\n")
    writer.writeheader()
    names = {
        "model": found.first.signature.name,
        "other_model": found.second.signature.name,
    }
    for number, mask in enumerate(found.masks, start=1):
        place = {
            "mask": number,
            "position": mask.position,
            "other_position": mask.other_position,
        }
        writer.writerows(place | vars(row) | names for row in mask.candidates)
    return out.getvalue()


# The lines of a longer text are drawn once all words are known.
MAX_GROWING = 100


@dataclass(frozen=True)
class DifferenceScale:
    """From -1, A less surprised, to 1, A more surprised.

    By the square root of the difference, so that small changes by a quantization show, too.
    """

    end_nats: float
    marks: Mapping[str, tuple[float, ...]]  # unit -> numbers beside it, above 0

    def tint(self, nats: float) -> float:
        """The share of the full tint, with the sign of the difference."""
        if math.isnan(nats):
            return 0.0
        return math.copysign(min(1.0, math.sqrt(abs(nats) / self.end_nats)), nats)

    def ticks(self, unit: str) -> tuple[Tick, ...]:
        """Tick labels; the first and last stand for everything beyond.

        >>> [tick.label for tick in DifferenceScale(2.0, {"nats": (0.5,)}).ticks("nats")]
        ['−2', '−0.5', '0', '+0.5', '+2']
        """
        end = in_unit(self.end_nats, unit)
        places = [(mark, math.sqrt(mark / end)) for mark in (*self.marks[unit], end)]
        lower = [Tick(f"−{mark:.3g}", (1 - place) / 2) for mark, place in reversed(places)]
        upper = [Tick(f"+{mark:.3g}", (1 + place) / 2) for mark, place in places]
        return (*lower, Tick("0", 0.5), *upper)


DIFFERENCES = DifferenceScale(2.0, {"nats": (0.1, 0.5), "bits": (0.1, 0.7)})


def contrast_words(session: Session, values: Mapping[str, Any]) -> Json:
    """Some words of a sentence under two models, in the form of `surprisal`.

    `waiting` has the progress while the second model loads; failures are in `error`.
    """
    asked = attribution_view.read_asked(session, values)
    state = session.model_soon(asked.question.compare)
    if isinstance(state, Waiting):
        message = state.message or "Loading the second model…"
        return {"waiting": {"kind": "busy", "notice": message, "fraction": state.fraction}}
    other = state.result
    alignment = align_text(asked.model, other, asked.text)
    words = _known(session, asked, other, alignment)
    return _shown(asked, other, alignment, words)


def _known(
    session: Session, asked: Asked, other: MaskedLM, alignment: Alignment
) -> tuple[ComparedWord, ...]:
    """The words measured under both models, word `start` included."""
    if not alignment.stretches:
        return ()
    wanted = alignment.stretches[min(asked.start, len(alignment.stretches) - 1)]
    sides = []
    for model, numbers in ((asked.model, wanted.first), (other, wanted.second)):
        # Reuses what was measured for either model alone.
        found = measured(session, model, asked.text, numbers.stop - 1)
        while len(found.words) < numbers.stop:
            found = measured(session, model, asked.text, numbers.stop - 1)
        sides.append(found.words)
    return compared_words(alignment, *sides)


def _shown(
    asked: Asked, other: MaskedLM, alignment: Alignment, words: Sequence[ComparedWord]
) -> Json:
    """In the form of `Asked.shown`: the words new to the browser, and a summary of all."""
    unit, tint = asked.question.unit, asked.question.tint
    known, total = len(words), len(alignment.stretches)
    new = words[min(asked.start, known) :]
    difference = tint == "difference"
    shared = {
        "unit": unit,
        "vocabularies": (asked.model.vocabulary, other.vocabulary),
        "names": candidate_names,
        "models": (model_name(asked.model), model_name(other)),
        "total": total,
        "known": known,
        "tint": tint,
        "alike": alignment.alike,
        "ticks": (DIFFERENCES if difference else SURPRISAL_SCALE).ticks(unit),
        "note": "" if alignment.alike else DIFFERENT_CUTS,
        "lines": LossLines.of(words, unit) if total <= MAX_GROWING or known == total else None,
        "summary": summarize_comparison(words),
        "unknown": [own.text for own in words if own.unknown],
    }
    return {
        "version": version_of(asked.text),
        "tint": tint,
        "words": [entry for own in new for entry in _entries(own, tint, unit, shared)],
        "known": known,
        "total": total,
        "next": known if known < total else None,
        "html": {
            "story": render("page/explore/apart.html", **shared),
            "table": render("page/explore/apart_table.html", words=new, **shared),
        },
    }


def _entries(own: ComparedWord, tint: str, unit: str, shared: Mapping[str, Any]) -> list[Json]:
    """One per button of the strip, which shows A's words."""
    html = render("page/explore/apart_word.html", own=own, **shared)
    label, sign, strength = _label(own, tint, unit)
    return [
        {
            "token": part.word.tokens[0],
            "tint": strength,
            "sign": sign,
            "label": label,
            "html": html,
        }
        for part in own.first
    ]


def _label(own: ComparedWord, tint: str, unit: str) -> tuple[str, str, float]:
    """The label below a word, its side of the scale, and the strength of its tint."""
    if own.unknown:
        return "unknown", "", 0.0
    if tint != "difference":
        nats = own.nll_nats if tint == "a" else own.other_nll_nats
        return f"{in_unit(nats, unit):.2f}", "", SURPRISAL_SCALE.tint(nats)
    nats = own.difference_nats
    strength = DIFFERENCES.tint(nats)
    if not strength:
        return "=", "", 0.0
    sign = "more" if strength > 0 else "less"
    return f"{'▲' if strength > 0 else '▼'}{in_unit(abs(nats), unit):.2f}", sign, abs(strength)


# In units of the drawing: pixels at the default font size.
_LEFT, _TOP, _RIGHT, _BOTTOM = 48, 24, 24, 216
_LABELS = 72  # height of the words below
_LEAST, _MOST = 30, 84  # between two words
_WIDTH = 660  # of a short sentence
_MAX_LABEL = 12  # characters of a word


@dataclass(frozen=True)
class LossPoint:
    """One word along the sentence."""

    x: float
    label: str  # the word, cut if long
    a: float  # y of A's loss
    b: float  # y of B's loss
    own: ComparedWord


@dataclass(frozen=True)
class LossLines:
    """Both lines in a drawing of `width` by `height`."""

    points: tuple[LossPoint, ...]
    y: Scale  # of the losses, in the reader's unit
    left: float
    right: float
    width: float
    height: float

    @classmethod
    def of(cls, words: Sequence[ComparedWord], unit: str) -> LossLines | None:
        """From the words known to both models; None for fewer than two."""
        known = [own for own in words if not own.unknown]
        if len(known) < 2:
            return None
        losses = [
            in_unit(nats, unit) for own in known for nats in (own.nll_nats, own.other_nll_nats)
        ]
        # An impossible word is drawn at the top.
        top = max((loss for loss in losses if math.isfinite(loss)), default=1.0)
        y = Scale(0.0, max(top, 0.1) * 1.04, _BOTTOM, _TOP)
        step = max(_LEAST, min(_MOST, (_WIDTH - _LEFT - _RIGHT) / len(known)))
        points = tuple(
            LossPoint(
                x=_LEFT + (number + 0.5) * step,
                label=own.text if len(own.text) <= _MAX_LABEL else own.text[: _MAX_LABEL - 1] + "…",
                a=y(in_unit(own.nll_nats, unit)),
                b=y(in_unit(own.other_nll_nats, unit)),
                own=own,
            )
            for number, own in enumerate(known)
        )
        right = _LEFT + step * len(known)
        return cls(points, y, _LEFT, right, right + _RIGHT, _BOTTOM + _LABELS)

    def path(self, side: str) -> str:
        """The line of `a` or `b` as an SVG polyline takes it."""
        return " ".join(f"{point.x:.1f},{getattr(point, side):.1f}" for point in self.points)
