"""A sentence without a mask under two models: the loss of each word, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fillmask_ui.comparing.word_contrast import (
    DIFFERENT_CUTS,
    Alignment,
    ComparedWord,
    align_text,
    compared_words,
    summarize_comparison,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.numbers import in_unit
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.explore import lenses
from fillmask_ui.ui.explore.lenses import Asked, Json, Tick
from fillmask_ui.ui.explore.loss_lines import LossLines
from fillmask_ui.ui.explore.strip import version_of
from fillmask_ui.ui.explore.surprise import SCALE, measured
from fillmask_ui.ui.explore.view import model_name
from fillmask_ui.ui.session import Session

# Of a longer text the lines are drawn once all words are known.
MAX_GROWING = 100


@dataclass(frozen=True)
class DifferenceScale:
    """From A less surprised, -1, to A more surprised, 1.

    It goes by the root of the difference, so that what a quantization changes is seen beside what
    another model does.
    """

    end_nats: float
    marks: Mapping[str, tuple[float, ...]]  # unit -> numbers beside it, above 0

    def tint(self, nats: float) -> float:
        """How much of the full tint, with the sign of the difference."""
        if math.isnan(nats):
            return 0.0
        return math.copysign(min(1.0, math.sqrt(abs(nats) / self.end_nats)), nats)

    def ticks(self, unit: str) -> tuple[Tick, ...]:
        """Numbers to write beside it; the first and the last stand for all beyond.

        >>> [tick.label for tick in DifferenceScale(2.0, {"nats": (0.5,)}).ticks("nats")]
        ['−2', '−0.5', '0', '+0.5', '+2']
        """
        end = in_unit(self.end_nats, unit)
        places = [(mark, math.sqrt(mark / end)) for mark in (*self.marks[unit], end)]
        lower = [Tick(f"−{mark:.3g}", (1 - place) / 2) for mark, place in reversed(places)]
        upper = [Tick(f"+{mark:.3g}", (1 + place) / 2) for mark, place in places]
        return (*lower, Tick("0", 0.5), *upper)


DIFFERENCES = DifferenceScale(2.0, {"nats": (0.1, 0.5), "bits": (0.1, 0.7)})


def apart(session: Session, values: Mapping[str, Any]) -> Json:
    """Some words of a sentence under two models, as `surprise.surprise` gives those of one.

    While the second model is being loaded, `waiting` says how far that is; where the answer cannot
    be had, an `error` says why.
    """
    asked = lenses.read(session, values)
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
    """The words that both models have been asked about, the one of number `start` among them."""
    if not alignment.stretches:
        return ()
    wanted = alignment.stretches[min(asked.start, len(alignment.stretches) - 1)]
    sides = []
    for model, numbers in ((asked.model, wanted.first), (other, wanted.second)):
        # What either model alone has been asked about is not asked again.
        found = measured(session, model, asked.text, numbers.stop - 1)
        while len(found.words) < numbers.stop:
            found = measured(session, model, asked.text, numbers.stop - 1)
        sides.append(found.words)
    return compared_words(alignment, *sides)


def _shown(
    asked: Asked, other: MaskedLM, alignment: Alignment, words: Sequence[ComparedWord]
) -> Json:
    """As `Asked.shown`: those of the words that are new to the browser, and all together."""
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
        "ticks": (DIFFERENCES if difference else SCALE).ticks(unit),
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
    """One per button of the strip, which has A's words."""
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
    """What stands below a word, which side of the scale it is on, and how strong its tint is."""
    if own.unknown:
        return "unknown", "", 0.0
    if tint != "difference":
        nats = own.nll_nats if tint == "a" else own.other_nll_nats
        return f"{in_unit(nats, unit):.2f}", "", SCALE.tint(nats)
    nats = own.difference_nats
    strength = DIFFERENCES.tint(nats)
    if not strength:
        return "=", "", 0.0
    sign = "more" if strength > 0 else "less"
    return f"{'▲' if strength > 0 else '▼'}{in_unit(abs(nats), unit):.2f}", sign, abs(strength)
