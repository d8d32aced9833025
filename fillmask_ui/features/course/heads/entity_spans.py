"""Entities as spans of words: from tags to spans, and how many spans are right.

Source:
    Precision, recall and F1 over whole spans: Tjong Kim Sang and De Meulder 2003,
    arXiv:cs/0306050, section 2.3; its program `conlleval` also reads tags that BIO forbids so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.intervals import Interval, ratio_interval


@dataclass(frozen=True, order=True)
class EntitySpan:
    """An entity: some neighbouring words and its type."""

    start: int  # index of its first word
    end: int  # one past its last
    entity: str


@dataclass(frozen=True)
class SpanScores:
    """Spans counted over some sentences; a share of nothing is 0."""

    right: int  # predicted spans that are true: same words, same type
    predicted: int
    true: int
    interval: Interval | None  # of F1, over sentences; None where these do not tell

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / max(self.predicted + self.true, 1)


def repaired(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags that BIO allows: an I- that continues nothing of its type becomes a B-.

    >>> repaired(["O", "I-LOC", "I-LOC", "I-PER"])
    ('O', 'B-LOC', 'I-LOC', 'B-PER')
    """
    return tuple(
        f"B{tag[1:]}" if tag[0] == "I" and before[1:] != tag[1:] else tag
        for before, tag in zip(("O", *tags), tags, strict=False)
    )


def entity_spans(tags: Sequence[str]) -> tuple[EntitySpan, ...]:
    """The entities of a sentence by the tags of its words.

    >>> entity_spans(["B-LOC", "I-LOC", "O", "I-PER"])
    (EntitySpan(start=0, end=2, entity='LOC'), EntitySpan(start=3, end=4, entity='PER'))
    """
    spans: list[EntitySpan] = []
    for number, tag in enumerate(repaired(tags)):
        if tag[0] == "I":
            spans[-1] = EntitySpan(spans[-1].start, number + 1, tag[2:])
        elif tag[0] == "B":
            spans.append(EntitySpan(number, number + 1, tag[2:]))
    return tuple(spans)


def score_spans(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> SpanScores:
    """Compare the tags of the words of each sentence."""
    counts = []  # of each sentence: right, predicted, true
    for tags, guesses in zip(true, predicted, strict=True):
        spans, guessed = {*entity_spans(tags)}, {*entity_spans(guesses)}
        counts.append((len(spans & guessed), len(guessed), len(spans)))
    by_sentence = np.array(counts)  # [N, 3]
    # F1 is a ratio of sums over sentences, 2 right / (predicted + true).
    interval = ratio_interval(2.0 * by_sentence[:, 0], by_sentence[:, 1:].sum(axis=1), quick=True)
    if interval is not None:
        low, high = max(interval.low, 0.0), min(interval.high, 1.0)
        interval = Interval(low, high, interval.method) if low < high else None
    right, guessed_count, true_count = by_sentence.sum(axis=0).tolist()
    return SpanScores(right, guessed_count, true_count, interval)
