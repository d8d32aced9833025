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
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import Displayed, counted, excerpt, finite
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
    reference: range  # numbers of the words of the reference
    candidate: range  # numbers of the words of the candidate


@dataclass(frozen=True)
class Alignment:
    """The words of one text under two tokenizers."""

    text: str
    alike: bool  # whether both read the same tokens
    stretches: tuple[SharedStretch, ...]  # from left to right; one per word if `alike`


def align_text(reference: MaskedLM, candidate: MaskedLM, text: str) -> Alignment:
    """The words of a text under two models' tokenizers; errors as of `compare_sentence`."""
    encoding = encode_unmasked(reference, text)
    try:
        candidate_encoding = encode_unmasked(candidate, text)
    except TextError as error:
        raise TextError(f"{candidate.signature.name}: {error}") from error
    alike = all(
        getattr(encoding, name) == getattr(candidate_encoding, name)
        for name in ("ids", "tokens", "spans")
    )
    stretches = align_words(text_words(encoding), text_words(candidate_encoding))
    return Alignment(encoding.text, alike, stretches)


def align_words(
    reference: Sequence[TextWord], candidate: Sequence[TextWord]
) -> tuple[SharedStretch, ...]:
    """The shortest stretches that both cut at their ends, without words that one lacks.

    >>> don, mark, t = (TextWord("don't"[a:b], a, b, (n,)) for n, (a, b) in
    ...     enumerate([(0, 3), (3, 4), (4, 5)]))
    >>> align_words([don, mark, t], [don, TextWord("'t", 3, 5, (1,))])[1]
    SharedStretch(start=3, end=5, reference=range(1, 3), candidate=range(1, 2))
    """
    borders = [0]  # ends of stretches of words that overlap
    for word in sorted((*reference, *candidate), key=_start):
        if word.start < borders[-1]:
            borders[-1] = max(borders[-1], word.end)
        else:
            borders.append(word.end)
    stretches = []
    for before, end in itertools.pairwise(borders):
        numbers = _numbers_between(reference, before, end)
        candidate_numbers = _numbers_between(candidate, before, end)
        if numbers and candidate_numbers:
            start = min(reference[numbers[0]].start, candidate[candidate_numbers[0]].start)
            stretches.append(SharedStretch(start, end, numbers, candidate_numbers))
    return tuple(stretches)


def _start(word: TextWord) -> int:
    return word.start


def _numbers_between(words: Sequence[TextWord], start: int, end: int) -> range:
    """Numbers of the words that begin at characters from `start` to before `end`."""
    return range(bisect_left(words, start, key=_start), bisect_left(words, end, key=_start))


@dataclass(frozen=True)
class ComparedWord:
    """One word under both models."""

    text: str
    start: int  # its first character in the text
    end: int  # one past its last
    reference: tuple[WordSurprisal, ...]  # several where only the reference cuts the word
    candidate: tuple[WordSurprisal, ...]  # several where only the candidate cuts the word
    flipped: bool | None  # whether the best tokens differ; None if a model has several words

    @property
    def reference_nll_nats(self) -> float:
        return math.fsum(part.nll_nats for part in self.reference)

    @property
    def candidate_nll_nats(self) -> float:
        return math.fsum(part.nll_nats for part in self.candidate)

    @property
    def difference_nats(self) -> float:
        """Candidate less reference; NaN if both find the word impossible."""
        return self.candidate_nll_nats - self.reference_nll_nats

    @property
    def unknown(self) -> bool:
        """Whether a vocabulary cannot spell it; sums leave it out."""
        return any(part.unknown for part in (*self.reference, *self.candidate))

    def to_dict(self) -> dict[str, Any]:
        losses = ("reference_nll_nats", "candidate_nll_nats", "difference_nats")
        names = ("start", "end", *losses, "flipped", "unknown")
        return {"word": self.text, **{name: finite(getattr(self, name)) for name in names}}


@dataclass(frozen=True)
class ComparisonSummary:
    """The words of a text that both models can spell."""

    word_count: int
    characters: int  # of these words
    reference_total_nll_nats: float
    candidate_total_nll_nats: float
    largest: ComparedWord  # with the largest difference either way, the first of a tie
    flipped: int  # words whose best token differs
    reference: SurprisalSummary  # of the reference alone
    candidate: SurprisalSummary  # of the candidate alone

    @property
    def reference_mean_word_nll_nats(self) -> float:
        return self.reference_total_nll_nats / self.word_count

    @property
    def candidate_mean_word_nll_nats(self) -> float:
        return self.candidate_total_nll_nats / self.word_count

    @property
    def mean_difference_nats(self) -> float:
        """Candidate less reference, per word."""
        return self.candidate_mean_word_nll_nats - self.reference_mean_word_nll_nats

    @property
    def reference_mean_character_nll_nats(self) -> float:
        return self.reference_total_nll_nats / self.characters

    @property
    def candidate_mean_character_nll_nats(self) -> float:
        return self.candidate_total_nll_nats / self.characters


@dataclass(frozen=True)
class SentenceComparison(Displayed):
    """Every word of one text under two models."""

    alignment: Alignment
    reference: SentenceSurprisal  # the reference alone
    candidate: SentenceSurprisal  # the candidate alone
    words: tuple[ComparedWord, ...]  # from left to right

    def __repr__(self) -> str:
        losses = ""
        if summary := self.summary:
            reference, candidate = (
                summary.reference_total_nll_nats,
                summary.candidate_total_nll_nats,
            )
            losses = f", {reference:.3f} and {candidate:.3f} nats"
        words = counted(len(self.words), "word")
        return f"SentenceComparison({excerpt(self.alignment.text)}, {words}{losses})"

    @property
    def summary(self) -> ComparisonSummary | None:
        return summarize_comparison(self.words)

    @property
    def note(self) -> str:
        return "" if self.alignment.alike else DIFFERENT_CUTS

    def to_dict(self) -> dict[str, Any]:
        """What `fillmask-ui surprise --baseline --json` prints."""
        summary = self.summary
        totals = ("reference_total_nll_nats", "candidate_total_nll_nats")
        means = ("reference_mean_word_nll_nats", "candidate_mean_word_nll_nats")
        names = ("characters", *totals, "flipped", *means, "mean_difference_nats")
        return {
            "reference": self.reference.to_dict(),
            "candidate": self.candidate.to_dict(),
            "by_word": not self.alignment.alike,
            "notes": [self.note] if self.note else [],
            "both": summary
            and {"words": summary.word_count}
            | {name: finite(getattr(summary, name)) for name in names},
            "largest": summary and summary.largest.to_dict(),
            "words": [word.to_dict() for word in self.words],
        }


def compare_sentence(reference: ModelLike, candidate: ModelLike, text: str) -> SentenceComparison:
    """The loss of every word of a text under two models; errors as of `surprisal`.

    >>> from fillmask_ui import load_model
    >>> compared = compare_sentence(load_model(), load_model("embedded:int8"), "The cat sat.")
    >>> [word.text for word in compared.words], compared.alignment.alike
    (['The', 'cat', 'sat', '.'], True)
    """
    reference, candidate = as_model(reference), as_model(candidate)
    alignment = align_text(reference, candidate, text)
    losses, candidate_losses = surprisal(reference, text), surprisal(candidate, text)
    words = compared_words(alignment, losses.words, candidate_losses.words)
    return SentenceComparison(alignment, losses, candidate_losses, words)


def compared_words(
    alignment: Alignment, reference: Sequence[WordSurprisal], candidate: Sequence[WordSurprisal]
) -> tuple[ComparedWord, ...]:
    """The words of both models side by side, as far as both are known."""
    words = []
    for stretch in alignment.stretches:
        if stretch.reference.stop > len(reference) or stretch.candidate.stop > len(candidate):
            break
        parts = tuple(reference[number] for number in stretch.reference)
        candidate_parts = tuple(candidate[number] for number in stretch.candidate)
        flipped = None
        if len(parts) == len(candidate_parts) == 1:
            best, candidate_best = parts[0].expected[0], candidate_parts[0].expected[0]
            if alignment.alike:
                flipped = best.token != candidate_best.token
            else:  # the strings of two vocabularies differ in their prefixes alone: `Ġcat`, `cat`
                flipped = best.word.strip() != candidate_best.word.strip()
        text = alignment.text[stretch.start : stretch.end]
        words.append(
            ComparedWord(text, stretch.start, stretch.end, parts, candidate_parts, flipped)
        )
    return tuple(words)


def summarize_comparison(words: Sequence[ComparedWord]) -> ComparisonSummary | None:
    """Of the words compared so far; None if none is known to both."""
    spelled = [word for word in words if not word.unknown]
    reference = summarize_surprisal([part for word in words for part in word.reference])
    candidate = summarize_surprisal([part for word in words for part in word.candidate])
    if not spelled or reference is None or candidate is None:
        return None
    return ComparisonSummary(
        word_count=len(spelled),
        characters=sum(word.end - word.start for word in spelled),
        reference_total_nll_nats=math.fsum(word.reference_nll_nats for word in spelled),
        candidate_total_nll_nats=math.fsum(word.candidate_nll_nats for word in spelled),
        largest=max(spelled, key=_change_nats),
        flipped=sum(bool(word.flipped) for word in spelled),
        reference=reference,
        candidate=candidate,
    )


def _change_nats(word: ComparedWord) -> float:
    return 0.0 if math.isnan(word.difference_nats) else abs(word.difference_nats)
