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
        raise OptionError("there is one model: choose a second one to compare it with")
    names = (question.model, question.compare)
    first, second = (session.model_soon(name) for name in names)
    all_sentences = _sentences(question)

    def grow(_: MaskedLM, cached: Searched | None) -> Searched:
        looked_at, until = cached.words if cached else (), time.monotonic() + WINDOW_SECONDS
        for sentence in all_sentences[len(looked_at) :]:
            looked_at = (*looked_at, look(first, second, sentence))
            if time.monotonic() > until:
                break
        return Searched(looked_at)

    key = (look, str(second.signature), id(second), all_sentences)
    searched = session.further(first, key, question.start, grow)
    count, total = len(searched.words), len(all_sentences)
    return {
        "kind": "none",
        "known": count,
        "total": total,
        "next": count if count < total else None,
        "html": _html(searched, (first, second), question),
    }


@cache
def embedded_sentences() -> tuple[Sentence, ...]:
    """The first sentences of the embedded texts, in the order of their evaluation."""
    with open_texts(TextSource()) as texts:
        all_sentences = (sentence for text in texts for sentence in sentences(text))
        return tuple(islice(all_sentences, MAX_SENTENCES))


def _sentences(question: Question) -> tuple[Sentence, ...]:
    """The embedded sentences, or the visitor's."""
    if question.sentences is None:
        return embedded_sentences()
    if not question.sentences:
        raise OptionError(
            "there are no sentences yet: write some under “Your sentences”, below the examples"
        )
    lines = question.sentences[:MAX_SENTENCES]
    check_text("\n".join(lines))
    return tuple(Sentence(number, 0, line) for number, line in enumerate(lines))


def _html(searched: Searched, models: tuple[MaskedLM, MaskedLM], question: Question) -> str:
    unit = question.unit
    hidden = [word for sentence in searched.words for word in sentence.hidden]
    left_out = sum(bool(sentence.left_out) for sentence in searched.words)
    flips = sum(word.flipped for word in hidden)
    kls = [word.kl_nats for word in hidden if word.kl_nats is not None]
    bins = _bins(hidden, unit)
    in_bin = 0 <= question.bin < len(bins)
    chosen = bins[question.bin] if in_bin else hidden

    listed = sorted(chosen, key=lambda word: _size(word, question.order), reverse=True)
    axis = Axis.fitted([float(len(words)) for words in bins], "hidden words")
    return render(
        "explore/search_found.html",
        looked=len(searched.words) - left_out,
        left_out=left_out,
        words=len(hidden),
        most_words=WORDS,
        flips=flips,
        interval=share_interval(flips, len(hidden)) if hidden else None,
        mean_kl_nats=math.fsum(kls) / len(kls) if kls else None,
        same=not any(_differs(word, unit) for word in hidden),
        rows=list(_bars(bins, axis, unit, question.bin)),
        axis=axis,
        bin=question.bin if in_bin else None,
        chosen=len(chosen),
        order=question.order,
        by_kl=bool(kls) or not hidden,
        listed=[
            _listed(word, models) for word in listed[:MAX_LISTED] if in_bin or _differs(word, unit)
        ],
        unit=unit,
    )


def _differs(word: Divergence, unit: str) -> bool:
    """Whether the models differ there in the digits shown."""
    return word.flipped or not is_zero(in_unit(word.change_nats, unit), 3)


def _bins(hidden: Sequence[Divergence], unit: str) -> list[list[Divergence]]:
    """The hidden words by their change, from each border to the next."""
    bins: list[list[Divergence]] = [[] for _ in BORDERS]
    for word in hidden:
        bins[max(1, bisect(BORDERS, in_unit(word.change_nats, unit))) - 1].append(word)
    return bins


def _bars(
    bins: Sequence[Sequence[Divergence]], axis: Axis, unit: str, pressed: int
) -> Iterator[BarRow]:
    names = [f"{low:g}–{high:g}" for low, high in pairwise(BORDERS)] + [f"{BORDERS[-1]:g}+ {unit}"]
    for number, (name, words) in enumerate(zip(names, bins, strict=True)):
        flips = sum(word.flipped for word in words)
        yield BarRow(
            name,
            (axis.mark(float(len(words)), "rest", f"{len(words):,}"),),
            (Cell(f"{flips:,}", quiet=not flips),),
            key=str(number) if words else "",
            title="Show these hidden words",
            pressed=number == pressed,
        )


def _size(word: Divergence, order: str) -> float:
    """By what the list is sorted; a word without that number comes last."""
    losses = word.reference_nll_nats, word.candidate_nll_nats
    if order == "probability" and losses[0] is not None and losses[1] is not None:
        return abs(math.exp(-losses[1]) - math.exp(-losses[0]))
    if order == "rank" and word.reference_rank is not None and word.candidate_rank is not None:
        return abs(word.candidate_rank - word.reference_rank)
    return word.change_nats if order == "kl" else -1.0


def _listed(word: Divergence, models: tuple[MaskedLM, MaskedLM]) -> Json:
    """A hidden word with what both models say there, and the state that a click on it sets."""
    firsts = zip(models, (word.reference_first, word.candidate_first), strict=True)
    hidden = [word.word] if word.word else []
    state = {"text": word.masked, "base": word.masked, "hidden": hidden, "selected": word.mask}
    return {
        "word": word,
        "names": [candidate_names([first], model.vocabulary)[0] for model, first in firsts],
        "set": json.dumps(state),
    }
