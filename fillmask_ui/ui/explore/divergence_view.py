"""Where two models differ on some texts: honest rates, a histogram, and the sentences behind it.

The browser asks for one window after another; what was found is remembered for all visitors.
"""

import json
import math
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise

from fillmask_ui.comparing.divergence_search import (
    WORDS,
    Divergence,
    SearchedSentence,
    Sentence,
    look,
    sentences,
)
from fillmask_ui.errors import OptionError
from fillmask_ui.intervals import share_interval
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.show.bars import Axis, BarRow, Cell
from fillmask_ui.show.numbers import in_unit, is_zero
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.explore.explore_state import Json, Question
from fillmask_ui.ui.session import Session, check_text

MAX_SENTENCES = 200  # looked at in one search
MAX_LISTED = 20  # hidden words listed
# One call takes about so long; a sentence takes some tenths of a second.
WINDOW_SECONDS = 0.8
# Of the histogram, in the reader's unit; what lies beyond the last has a bar of its own.
BORDERS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Searched:
    """The sentences looked at so far."""

    words: tuple[SearchedSentence, ...]  # as `Session.further` counts them


def divergent(session: Session, question: Question) -> Json:
    """Two models on some sentences, sentence `start` included, in the form of `surprisal`."""
    if not question.compare:
        raise OptionError("there is one model: pick a second one to compare it with")
    names = (question.model, question.compare)
    first, second = (session.model_soon(name) for name in names)
    asked = _asked(question)

    def grow(_: MaskedLM, known: Searched | None) -> Searched:
        done, until = known.words if known else (), time.monotonic() + WINDOW_SECONDS
        for sentence in asked[len(done) :]:
            done = (*done, look(first, second, sentence))
            if time.monotonic() > until:
                break
        return Searched(done)

    key = (look, str(second.signature), id(second), asked)
    found = session.further(first, key, question.start, grow)
    known, total = len(found.words), len(asked)
    return {
        "kind": "none",
        "known": known,
        "total": total,
        "next": known if known < total else None,
        "html": _html(found, (first, second), question),
    }


@cache
def embedded_sentences() -> tuple[Sentence, ...]:
    """The first sentences of the embedded texts, in the order of their evaluation."""
    with open_texts(TextSource()) as texts:
        found = (sentence for text in texts for sentence in sentences(text))
        return tuple(islice(found, MAX_SENTENCES))


def _asked(question: Question) -> tuple[Sentence, ...]:
    """The embedded sentences, or the visitor's."""
    if question.sentences is None:
        return embedded_sentences()
    if not question.sentences:
        raise OptionError("there are none yet: write some under “Your sentences”, by the examples")
    lines = question.sentences[:MAX_SENTENCES]
    check_text("\n".join(lines))
    return tuple(Sentence(number, 0, line) for number, line in enumerate(lines))


def _html(found: Searched, models: tuple[MaskedLM, MaskedLM], question: Question) -> str:
    unit = question.unit
    hidden = [own for looked in found.words for own in looked.hidden]
    left_out = sum(bool(looked.left_out) for looked in found.words)
    flips = sum(own.flipped for own in hidden)
    kls = [own.kl_nats for own in hidden if own.kl_nats is not None]
    bins = _bins(hidden, unit)
    in_bin = 0 <= question.bin < len(bins)
    chosen = bins[question.bin] if in_bin else hidden

    def differs(own: Divergence) -> bool:
        return own.flipped or not is_zero(in_unit(own.change_nats, unit), 3)

    listed = sorted(chosen, key=lambda own: _size(own, question.order), reverse=True)
    axis = Axis.fitted([float(len(own)) for own in bins], "hidden words")
    return render(
        "explore/search_found.html",
        looked=len(found.words) - left_out,
        left_out=left_out,
        words=len(hidden),
        most_words=WORDS,
        flips=flips,
        interval=share_interval(flips, len(hidden)) if hidden else None,
        mean_kl_nats=math.fsum(kls) / len(kls) if kls else None,
        same=not any(differs(own) for own in hidden),
        rows=list(_bars(bins, axis, unit, question.bin)),
        axis=axis,
        bin=question.bin if in_bin else None,
        chosen=len(chosen),
        order=question.order,
        by_kl=bool(kls) or not hidden,
        listed=[_listed(own, models) for own in listed[:MAX_LISTED] if differs(own) or in_bin],
        unit=unit,
    )


def _bins(hidden: Sequence[Divergence], unit: str) -> list[list[Divergence]]:
    """The hidden words by their change, from each border to the next."""
    bins: list[list[Divergence]] = [[] for _ in BORDERS]
    for own in hidden:
        bins[max(1, bisect(BORDERS, in_unit(own.change_nats, unit))) - 1].append(own)
    return bins


def _bars(
    bins: Sequence[Sequence[Divergence]], axis: Axis, unit: str, pressed: int
) -> Iterator[BarRow]:
    names = [f"{low:g}–{high:g}" for low, high in pairwise(BORDERS)] + [f"{BORDERS[-1]:g}+ {unit}"]
    for number, (name, own) in enumerate(zip(names, bins, strict=True)):
        flips = sum(one.flipped for one in own)
        yield BarRow(
            name,
            (axis.mark(float(len(own)), "rest", f"{len(own):,}"),),
            (Cell(f"{flips:,}", quiet=not flips),),
            key=str(number) if own else "",
            title="lists these hidden words",
            pressed=number == pressed,
        )


def _size(own: Divergence, order: str) -> float:
    """By what the list is sorted; a word without that number comes last."""
    if (
        order == "probability"
        and own.reference_nll_nats is not None
        and own.candidate_nll_nats is not None
    ):
        return abs(math.exp(-own.candidate_nll_nats) - math.exp(-own.reference_nll_nats))
    if order == "rank" and own.reference_rank is not None and own.candidate_rank is not None:
        return abs(own.candidate_rank - own.reference_rank)
    return own.change_nats if order == "kl" else -1.0


def _listed(own: Divergence, models: tuple[MaskedLM, MaskedLM]) -> Json:
    """A hidden word with what both models say there, and the state that a click on it sets."""
    firsts = zip(models, (own.reference_first, own.candidate_first), strict=True)
    hidden = [own.word] if own.word else []
    state = {"text": own.masked, "base": own.masked, "hidden": hidden, "selected": own.mask}
    return {
        "own": own,
        "names": [candidate_names([first], model.vocabulary)[0] for model, first in firsts],
        "set": json.dumps(state),
    }
