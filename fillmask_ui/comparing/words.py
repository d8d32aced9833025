"""Two models on one sentence: the loss of every word under both.

Definition. Each model is asked alone, as by `sentence_surprise`, whose numbers these are to the
last digit: each word hidden in turn, -ln P(word | the rest). The difference is A - B, so that it
is positive where A is the more surprised of the two.

Different tokenizers. What is compared is then the shortest stretches of the text at whose ends both
have the end of a word; the loss of a stretch is the sum over its words, which were hidden one by
one. A loss per token means nothing across tokenizers, so means are per word or character.

Rivals: KL(A || B) at the hidden word sees the whole distribution, but is no property of the text
that stands there (`comparing.masks` has it once a word is hidden).

Source:
    Per-character losses where tokenizers differ: Cotterell et al. 2018, arXiv:1806.03743.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fillmask_ui.comparing.alignment import Alignment, SharedStretch, align_text
from fillmask_ui.filling.surprise import (
    SentenceSurprise,
    SurpriseSummary,
    WordSurprise,
    sentence_surprise,
    summarize_surprise,
    surprise_dict,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import finite

DIFFERENT_CUTS = (
    "The two models cut this text into different tokens: it is compared word by word, a word that "
    "one of them cuts further counts as a whole, and there is no mean per token."
)


@dataclass(frozen=True)
class ComparedWord:
    """One word under both models; A's number first."""

    text: str
    start: int  # its first character in the text
    end: int  # one past its last
    first: tuple[WordSurprise, ...]  # by A; several where A cuts the word and B does not
    second: tuple[WordSurprise, ...]  # by B
    flipped: bool | None  # whether the best tokens differ; None where one side has several words

    @property
    def nll_nats(self) -> float:
        """-ln P(word) under A."""
        return math.fsum(own.nll_nats for own in self.first)

    @property
    def other_nll_nats(self) -> float:
        """-ln P(word) under B."""
        return math.fsum(own.nll_nats for own in self.second)

    @property
    def difference_nats(self) -> float:
        """A - B; NaN where both find the word impossible."""
        return self.nll_nats - self.other_nll_nats

    @property
    def unknown(self) -> bool:
        """Whether either vocabulary cannot spell it; no sum counts it then."""
        return any(own.unknown for own in (*self.first, *self.second))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; `other` are B's words."""
        return {
            "word": self.text,
            "start": self.start,
            "end": self.end,
            "nll_nats": finite(self.nll_nats),
            "other_nll_nats": finite(self.other_nll_nats),
            "difference_nats": finite(self.difference_nats),
            "flipped": self.flipped,
            "unknown": self.unknown,
            "other": [surprise_dict(own) for own in self.second],
        }


@dataclass(frozen=True)
class ComparisonSummary:
    """The words of a text together, those left out that either model cannot spell."""

    words: int
    characters: int  # of these words
    total_nll_nats: float  # under A
    other_total_nll_nats: float  # under B
    largest: ComparedWord  # with the largest difference either way, the first of a tie
    flipped: int  # words whose best token differs
    first: SurpriseSummary  # all of A's own words, as A alone has it
    second: SurpriseSummary  # of B's

    @property
    def mean_word_nll_nats(self) -> float:
        return self.total_nll_nats / self.words

    @property
    def other_mean_word_nll_nats(self) -> float:
        return self.other_total_nll_nats / self.words

    @property
    def mean_difference_nats(self) -> float:
        """A - B per word."""
        return self.mean_word_nll_nats - self.other_mean_word_nll_nats

    @property
    def mean_character_nll_nats(self) -> float:
        return self.total_nll_nats / self.characters

    @property
    def other_mean_character_nll_nats(self) -> float:
        return self.other_total_nll_nats / self.characters


@dataclass(frozen=True)
class SentenceComparison:
    """Every word of one text under two models."""

    alignment: Alignment
    first: SentenceSurprise  # A alone
    second: SentenceSurprise  # B alone
    words: tuple[ComparedWord, ...]  # from left to right

    @property
    def summary(self) -> ComparisonSummary | None:
        return summarize_comparison(self.words)

    @property
    def note(self) -> str:
        """What a reader must know of the comparison; blank for nothing."""
        return "" if self.alignment.alike else DIFFERENT_CUTS

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; the shape that `fillmask-ui surprise --compare --json` prints.

        It is that of A alone; `compare` has the figures of B alone, and each word under both.
        """
        summary, second = self.summary, self.second.to_dict()
        names = ("words", "characters", "total_nll_nats", "other_total_nll_nats", "flipped")
        means = ("mean_word_nll_nats", "other_mean_word_nll_nats", "mean_difference_nats")
        largest = summary and {
            "word": summary.largest.text,
            "difference_nats": finite(summary.largest.difference_nats),
        }
        return {
            **self.first.to_dict(),
            "compare": {
                **{name: second[name] for name in second if name not in ("text", "words")},
                "by_word": not self.alignment.alike,
                "notes": [self.note] if self.note else [],
                "both": summary
                and {name: finite(getattr(summary, name)) for name in (*names, *means)},
                "largest": largest,
                "words": [own.to_dict() for own in self.words],
            },
        }


def compare_sentence(model_a: MaskedLM, model_b: MaskedLM, text: str) -> SentenceComparison:
    """The loss of every word of a text without masks under two models, each word hidden once.

    Args:
        model_a: from `load_model`.
        model_b: any other, or the same: differences are then exactly 0.
        text: any text that both take.

    Raises:
        TextError: if the text is blank, has a mask or is too long for either.
        ModelOutputError: if a model returns NaN.

    >>> from fillmask_ui import load_model
    >>> found = compare_sentence(load_model(), load_model("embedded:int8"), "The cat sat.")
    >>> [own.text for own in found.words], found.alignment.alike
    (['The', 'cat', 'sat', '.'], True)
    """
    alignment = align_text(model_a, model_b, text)
    first, second = sentence_surprise(model_a, text), sentence_surprise(model_b, text)
    words = compared_words(alignment, first.words, second.words)
    return SentenceComparison(alignment, first, second, words)


def compared_words(
    alignment: Alignment,
    first: Sequence[WordSurprise],
    second: Sequence[WordSurprise],
    *,
    start: int = 0,
) -> tuple[ComparedWord, ...]:
    """What is known of both models' words beside each other.

    Args:
        alignment: of the text.
        first: A's words, or those known so far.
        second: B's.
        start: number of the first stretch wanted, from 0.
    """
    found = []
    for stretch in alignment.stretches[start:]:
        if stretch.first.stop > len(first) or stretch.second.stop > len(second):
            break
        found.append(
            _compared(
                alignment,
                stretch,
                tuple(first[number] for number in stretch.first),
                tuple(second[number] for number in stretch.second),
            )
        )
    return tuple(found)


def _compared(
    alignment: Alignment,
    stretch: SharedStretch,
    first: tuple[WordSurprise, ...],
    second: tuple[WordSurprise, ...],
) -> ComparedWord:
    flipped = None
    if len(first) == len(second) == 1:
        best, other = first[0].wanted[0], second[0].wanted[0]
        # The strings of two vocabularies differ in their marks alone: `Ġcat`, `cat`.
        alike = alignment.alike
        flipped = best.token != other.token if alike else best.word.strip() != other.word.strip()
    text = alignment.text[stretch.start : stretch.end]
    return ComparedWord(text, stretch.start, stretch.end, first, second, flipped)


def summarize_comparison(words: Sequence[ComparedWord]) -> ComparisonSummary | None:
    """The words of a text, or those compared so far; None where none is known to both."""
    known = [own for own in words if not own.unknown]
    first = summarize_surprise([part for own in words for part in own.first])
    second = summarize_surprise([part for own in words for part in own.second])
    if not known or first is None or second is None:
        return None

    def far(own: ComparedWord) -> float:
        return 0.0 if math.isnan(own.difference_nats) else abs(own.difference_nats)

    return ComparisonSummary(
        words=len(known),
        characters=sum(own.end - own.start for own in known),
        total_nll_nats=math.fsum(part.nll_nats for own in known for part in own.first),
        other_total_nll_nats=math.fsum(part.nll_nats for own in known for part in own.second),
        largest=max(known, key=far),
        flipped=sum(bool(own.flipped) for own in known),
        first=first,
        second=second,
    )
