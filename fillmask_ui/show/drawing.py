"""Drawings that the page makes itself: scales of SVG, and the words expected at a mask as bars.

The axis of the bars is the same for every answer, so that they compare from one to the next. What
they do not show stands in the last one, so that all of them add up to 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import MaskFilling, ScoredWord
from fillmask_ui.show.words import candidate_names

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
        """Where a number stands; one beyond the ends stands at the end."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, most: int = 6) -> tuple[float, ...]:
        """Round numbers between the ends, at most so many."""
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
    key: str = ""  # `mask:token id` of a token that a click writes; blank for none
    note: str = ""  # what a reader should know, such as its rank


def bars_of(
    mask: MaskFilling,
    number: int,
    vocabulary: Vocabulary,
    vocabulary_size: int,
    hidden: ScoredWord | None = None,
) -> tuple[Bar, ...]:
    """The best words, then the hidden one and those asked about where they are not among them.

    Args:
        mask: with at least one candidate; the best `MAX_BARS` are shown.
        number: of the mask in its text, from 0.
        vocabulary: of the model.
        vocabulary_size: V.
        hidden: the word behind the mask, where it is known.

    Returns:
        The bars in the order in which they are read; the last one stands for all other tokens.
        Words of several tokens count apart: theirs are probabilities of another event.
    """
    shown = mask.candidates[:MAX_BARS]
    true_id = single_id(hidden)
    bars = [
        Bar(
            name,
            candidate.probability,
            "hidden" if candidate.token_id == true_id else "",
            f"{number}:{candidate.token_id}",
            "the hidden word" if candidate.token_id == true_id else "",
        )
        for name, candidate in zip(candidate_names(shown, vocabulary), shown, strict=True)
    ]
    ids = {candidate.token_id for candidate in shown}
    total = sum(candidate.probability for candidate in shown)
    for word in _others(hidden, mask.scored):
        token_id = single_id(word)
        if token_id is not None and token_id in ids:
            continue
        is_hidden = word is hidden
        key = "" if token_id is None else f"{number}:{token_id}"
        notes = ["the hidden word"] if is_hidden else []
        notes.append(f"rank {word.rank:,}" if word.rank else f"{len(word.parts)} tokens")
        bars.append(
            Bar(
                word.word,
                word.probability,
                "hidden" if is_hidden else "asked",
                key,
                ", ".join(notes),
            )
        )
        if token_id is not None:
            ids.add(token_id)
            total += word.probability
    left = vocabulary_size - len(ids)
    rest = max(0.0, 1.0 - total) if left else 0.0
    return (*bars, Bar("all other words", rest, "rest", note=f"{left:,} of them"))


def _others(hidden: ScoredWord | None, asked: Sequence[ScoredWord]) -> list[ScoredWord]:
    """The hidden word first, no word twice."""
    words = [*([hidden] if hidden else []), *asked]
    return list({tuple(p.token_id for p in word.parts): word for word in reversed(words)}.values())[
        ::-1
    ]


def single_id(word: ScoredWord | None) -> int | None:
    """The token of a word that is just one."""
    return word.parts[0].token_id if word and len(word.parts) == 1 else None
