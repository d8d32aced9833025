"""Drawings that the page makes itself: scales of SVG, and the words expected at a mask as bars."""

import math
from dataclasses import dataclass

from fillmask_ui.records import MaskFilling, ScoredWord
from fillmask_ui.show.words import Spelling, candidate_names

MAX_BARS = 30


@dataclass(frozen=True)
class Scale:
    """Numbers along an axis, placed between two ends of a drawing.

    >>> axis = Scale(0, 10, 40, 240)
    >>> axis(5), axis.ticks()
    (140.0, (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))
    """

    low: float  # of the numbers
    high: float
    start: float  # where `low` stands, in units of the drawing
    end: float  # where `high` stands

    def __call__(self, value: float) -> float:
        """The place of a number, at most at the ends."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, most: int = 6) -> tuple[float, ...]:
        """At most so many round numbers between the ends."""
        span = (self.high - self.low) or 1.0
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(s * power for s in (1, 2, 5, 10) if span / (s * power) <= most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(round(i * step, 12) for i in range(first, last + 1))


@dataclass(frozen=True)
class Bar:
    """One word, or all others."""

    word: str
    probability: float
    kind: str = ""  # `hidden` for the true word, `asked` for one asked about, `rest`, or blank
    key: str = ""  # `mask:token id` of a token that a click writes; blank without one
    note: str = ""  # such as its rank
    nll_nats: float | None = None  # None for all others


def bars_of(
    mask: MaskFilling,
    number: int,
    vocabulary: Spelling,
    vocabulary_size: int,
    hidden: ScoredWord | None = None,
) -> tuple[Bar, ...]:
    """The best words, then the hidden word and those asked about, then all other words as one bar.

    The bars of tokens add up to 1. Words of several tokens come on top: theirs are probabilities of
    another event. The mask has at least one candidate; its `number` counts from 0.
    """
    candidates, true_id = mask.candidates[:MAX_BARS], single_id(hidden)
    names = candidate_names(candidates, vocabulary)
    bars: dict[tuple[int, ...], Bar] = {}  # by the ids of the tokens
    for name, candidate in zip(names, candidates, strict=True):
        token_id, probability = candidate.token_id, candidate.probability
        kind, note = ("hidden", "the hidden word") if token_id == true_id else ("", "")
        key = f"{number}:{token_id}"
        bars[(token_id,)] = Bar(name, probability, kind, key, note, candidate.nll_nats)
    for word in (*([hidden] if hidden else []), *mask.scored):
        if word.ids in bars:
            continue
        note = f"rank {word.rank:,}" if word.rank else f"{len(word.ids)} tokens"
        kind, note = ("hidden", f"the hidden word, {note}") if word is hidden else ("asked", note)
        key = f"{number}:{word.ids[0]}" if len(word.ids) == 1 else ""
        bars[word.ids] = Bar(word.word, word.probability, kind, key, note, word.nll_nats)
    tokens = [bar.probability for ids, bar in bars.items() if len(ids) == 1]
    left = vocabulary_size - len(tokens)
    remaining = max(0.0, 1.0 - sum(tokens)) if left else 0.0
    return (*bars.values(), Bar("all other words", remaining, "rest", note=f"in {left:,} words"))


def single_id(word: ScoredWord | None) -> int | None:
    """The id of a word that is one token."""
    return word.ids[0] if word and len(word.ids) == 1 else None
