"""Two models on one sentence: the loss of every word under both.

Definition. Each model is asked alone, as by `surprisal`: each word is hidden in turn, and its loss
is -ln P(word | the rest). The difference is that of the candidate less that of the reference,
positive where the candidate is the more surprised.

With different tokenizers the shortest stretches of the text are compared at whose ends both have
the end of a word: `don` `'t` and `don` `'` `t` share `don` and `'t`. The loss of a stretch is the
sum over its words, which were hidden one by one. Means are per word or character: a loss per token
means nothing across tokenizers.

Rivals: the KL divergence at the hidden word sees the whole distribution, but is not a property of
the text that stands there.

Source:
    Per-character losses where tokenizers differ: Cotterell et al. 2018, arXiv:1806.03743.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fillmask_ui.errors import TextError
from fillmask_ui.filling.prompt import encode_unmasked
from fillmask_ui.filling.word_surprisal import (
    SentenceSurprisal,
    SurprisalSummary,
    WordSurprisal,
    summarize_surprisal,
    surprisal,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Displayed, by_role, finite
from fillmask_ui.text_words import TextWord, text_words

DIFFERENT_CUTS = (
    "The two models cut this text into different tokens: it is compared word by word, a word that "
    "one of them cuts further counts as a whole, and there is no mean per token."
)


@dataclass(frozen=True)
class SharedStretch:
    """Words of either tokenizer that stand for the same characters."""

    start: int  # its first character
    end: int  # one past its last
    first: range  # numbers of the words of the reference
    second: range  # numbers of the words of the candidate


@dataclass(frozen=True)
class Alignment:
    """The words of one text under two tokenizers."""

    text: str
    alike: bool  # whether both read the same tokens
    stretches: tuple[SharedStretch, ...]  # from left to right; one per word if `alike`


def align_text(reference: MaskedLM, candidate: MaskedLM, text: str) -> Alignment:
    """The words of a text under two models' tokenizers; errors as of `compare_sentence`."""
    first = encode_unmasked(reference, text)
    try:
        second = encode_unmasked(candidate, text)
    except TextError as error:
        raise TextError(f"{candidate.signature.name}: {error}") from error
    alike = all(
        getattr(first, name) == getattr(second, name) for name in ("ids", "tokens", "spans")
    )
    stretches = align_words(text_words(first), text_words(second))
    return Alignment(first.text, alike, stretches)


def align_words(first: Sequence[TextWord], second: Sequence[TextWord]) -> tuple[SharedStretch, ...]:
    """The shortest stretches that both cut at their ends, without words that one lacks.

    >>> don, mark, t = (TextWord("don't"[a:b], a, b, (n,)) for n, (a, b) in
    ...     enumerate([(0, 3), (3, 4), (4, 5)]))
    >>> align_words([don, mark, t], [don, TextWord("'t", 3, 5, (1,))])[1]
    SharedStretch(start=3, end=5, first=range(1, 3), second=range(1, 2))
    """
    ends = [0]  # of stretches of words that overlap
    for word in sorted((*first, *second), key=lambda own: own.start):
        if word.start < ends[-1]:
            ends[-1] = max(ends[-1], word.end)
        else:
            ends.append(word.end)
    stretches = []
    for before, end in itertools.pairwise(ends):
        here, there = (
            range(*(bisect_left(words, edge, key=lambda own: own.start) for edge in (before, end)))
            for words in (first, second)
        )
        if here and there:
            start = min(first[here[0]].start, second[there[0]].start)
            stretches.append(SharedStretch(start, end, here, there))
    return tuple(stretches)


@dataclass(frozen=True)
class ComparedWord:
    """One word under both models; `other_` is the candidate's."""

    text: str
    start: int  # its first character in the text
    end: int  # one past its last
    first: tuple[WordSurprisal, ...]  # by the reference; several where only it cuts the word
    second: tuple[WordSurprisal, ...]  # by the candidate
    flipped: bool | None  # whether the best tokens differ; None if a side has several words

    @property
    def nll_nats(self) -> float:
        return math.fsum(own.nll_nats for own in self.first)

    @property
    def other_nll_nats(self) -> float:
        return math.fsum(own.nll_nats for own in self.second)

    @property
    def difference_nats(self) -> float:
        """Candidate less reference; NaN if both find the word impossible."""
        return self.other_nll_nats - self.nll_nats

    @property
    def unknown(self) -> bool:
        """Whether a vocabulary cannot spell it; sums leave it out."""
        return any(own.unknown for own in (*self.first, *self.second))

    def to_dict(self) -> dict[str, Any]:
        names = ("nll_nats", "other_nll_nats", "difference_nats", "flipped", "unknown")
        values = {name: finite(getattr(self, name)) for name in ("start", "end", *names)}
        return {"word": self.text} | by_role(values)


@dataclass(frozen=True)
class ComparisonSummary:
    """The words of a text that both models can spell."""

    words: int
    characters: int  # of these words
    total_nll_nats: float  # under the reference
    other_total_nll_nats: float  # under the candidate
    mean_word_nll_nats: float
    other_mean_word_nll_nats: float
    mean_difference_nats: float  # candidate less reference, per word
    mean_character_nll_nats: float
    other_mean_character_nll_nats: float
    largest: ComparedWord  # with the largest difference either way, the first of a tie
    flipped: int  # words whose best token differs
    first: SurprisalSummary  # of the reference alone
    second: SurprisalSummary  # of the candidate alone


@dataclass(frozen=True)
class SentenceComparison(Displayed):
    """Every word of one text under two models."""

    alignment: Alignment
    first: SentenceSurprisal  # the reference alone
    second: SentenceSurprisal  # the candidate alone
    words: tuple[ComparedWord, ...]  # from left to right

    @property
    def summary(self) -> ComparisonSummary | None:
        return summarize_comparison(self.words)

    @property
    def note(self) -> str:
        return "" if self.alignment.alike else DIFFERENT_CUTS

    def to_dict(self) -> dict[str, Any]:
        """What `fillmask-ui surprise --baseline --json` prints."""
        summary = self.summary
        names = ("words", "characters", "total_nll_nats", "other_total_nll_nats", "flipped")
        means = ("mean_word_nll_nats", "other_mean_word_nll_nats", "mean_difference_nats")
        both = summary and {name: finite(getattr(summary, name)) for name in (*names, *means)}
        return {
            "reference": self.first.to_dict(),
            "candidate": self.second.to_dict(),
            "by_word": not self.alignment.alike,
            "notes": [self.note] if self.note else [],
            "both": both and by_role(both),
            "largest": summary and summary.largest.to_dict(),
            "words": [own.to_dict() for own in self.words],
        }


def compare_sentence(reference: MaskedLM, candidate: MaskedLM, text: str) -> SentenceComparison:
    """The loss of every word of a text under two models; errors as of `surprisal`.

    >>> from fillmask_ui import load_model
    >>> found = compare_sentence(load_model(), load_model("embedded:int8"), "The cat sat.")
    >>> [own.text for own in found.words], found.alignment.alike
    (['The', 'cat', 'sat', '.'], True)
    """
    alignment = align_text(reference, candidate, text)
    first, second = surprisal(reference, text), surprisal(candidate, text)
    words = compared_words(alignment, first.words, second.words)
    return SentenceComparison(alignment, first, second, words)


def compared_words(
    alignment: Alignment, first: Sequence[WordSurprisal], second: Sequence[WordSurprisal]
) -> tuple[ComparedWord, ...]:
    """The words of both models side by side, as far as both are known."""
    found = []
    for stretch in alignment.stretches:
        if stretch.first.stop > len(first) or stretch.second.stop > len(second):
            break
        one = tuple(first[number] for number in stretch.first)
        two = tuple(second[number] for number in stretch.second)
        flipped = None
        if len(one) == len(two) == 1:
            best, other = one[0].wanted[0], two[0].wanted[0]
            # The strings of two vocabularies differ in their prefixes alone: `Ġcat`, `cat`.
            alike = best.word.strip() == other.word.strip()
            flipped = best.token != other.token if alignment.alike else not alike
        text = alignment.text[stretch.start : stretch.end]
        found.append(ComparedWord(text, stretch.start, stretch.end, one, two, flipped))
    return tuple(found)


def summarize_comparison(words: Sequence[ComparedWord]) -> ComparisonSummary | None:
    """Of the words compared so far; None if none is known to both."""
    known = [own for own in words if not own.unknown]
    first = summarize_surprisal([part for own in words for part in own.first])
    second = summarize_surprisal([part for own in words for part in own.second])
    if not known or first is None or second is None:
        return None

    def size(own: ComparedWord) -> float:
        return 0.0 if math.isnan(own.difference_nats) else abs(own.difference_nats)

    total = math.fsum(part.nll_nats for own in known for part in own.first)
    other = math.fsum(part.nll_nats for own in known for part in own.second)
    characters = sum(own.end - own.start for own in known)
    return ComparisonSummary(
        words=len(known),
        characters=characters,
        total_nll_nats=total,
        other_total_nll_nats=other,
        mean_word_nll_nats=total / len(known),
        other_mean_word_nll_nats=other / len(known),
        mean_difference_nats=other / len(known) - total / len(known),
        mean_character_nll_nats=total / characters,
        other_mean_character_nll_nats=other / characters,
        largest=max(known, key=size),
        flipped=sum(bool(own.flipped) for own in known),
        first=first,
        second=second,
    )
