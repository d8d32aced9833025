"""Labelled sentences: those of the course, and those that a reader adds.

Words have BIO tags: B- begins an entity, I- goes on inside it, O is outside.

Source:
    Ramshaw and Marcus 1995, arXiv:cmp-lg/9505040.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import yaml

from fillmask_ui.errors import TextError
from fillmask_ui.records import Span

SENTIMENTS = ("negative", "positive")
RELATIONS = ("entail", "contradict", "neutral")
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")
MOST_ADDED = 20  # sentences of a reader
MOST_CHARACTERS = 300  # of a sentence
_SIGNS = {"-": 0, "−": 0, "+": 1}  # -> index in SENTIMENTS
_ENTITY = re.compile(r"\[([^\]]+)\](PER|LOC|ORG)")
# A word ends at a blank, before a sign, or before the period of the sentence: "Mt." is a word.
_WORD = re.compile(r"[,;:!?]|\.$|[^\s,;:!?]+?(?=[\s,;:!?]|\.?$)")


@dataclass(frozen=True)
class LabeledText:
    """A sentence, or two, and the index of the class."""

    text: str
    label: int
    second: str = ""  # the second sentence of a pair


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence word by word; signs count as words."""

    text: str
    words: tuple[Span, ...]
    tags: tuple[str, ...]  # of the words, from TAGS
    marked: str  # the text with its entities in brackets

    @property
    def spelled(self) -> tuple[str, ...]:
        return tuple(self.text[word.start : word.end] for word in self.words)

    def with_tags(self, changes: Mapping[int, str]) -> "TaggedSentence":
        """With another tag at some words, by their indices."""
        tags = tuple(changes.get(number, tag) for number, tag in enumerate(self.tags))
        return replace(self, tags=tags)


@dataclass(frozen=True)
class LabeledTexts:
    """The sentences of `labeled.yaml`."""

    sentiment: tuple[LabeledText, ...]
    pairs: tuple[LabeledText, ...]  # each first sentence with all RELATIONS in order
    learn: tuple[TaggedSentence, ...]
    test: tuple[TaggedSentence, ...]


@cache
def labeled_texts() -> LabeledTexts:
    """Read once."""
    entries = yaml.safe_load(Path(__file__).with_name("labeled.yaml").read_text("utf-8"))
    negative, positive, learn, test = (
        entries[name].split(" / ") for name in (*SENTIMENTS, "learn", "test")
    )
    pairs = [
        LabeledText(first, label, second)
        for first, *seconds in entries["pairs"]
        for label, second in enumerate(seconds)
    ]
    sentiment = [LabeledText(text, 0) for text in negative]
    sentiment += [LabeledText(text, 1) for text in positive]
    tagged = [tuple(map(read_tagged, sentences)) for sentences in (learn, test)]
    return LabeledTexts(tuple(sentiment), tuple(pairs), *tagged)


def read_tagged(marked: str) -> TaggedSentence:
    """A sentence whose entities are in brackets, each with its type behind it.

    >>> sentence = read_tagged("[Mt. Sanitas]LOC is high.")
    >>> sentence.spelled, sentence.tags
    (('Mt.', 'Sanitas', 'is', 'high', '.'), ('B-LOC', 'I-LOC', 'O', 'O', 'O'))
    """
    text, entities = "", {}  # the beginning of each stretch -> its type, blank outside
    for number, part in enumerate(_ENTITY.split(marked)):
        if number % 3 < 2:  # outside, inside, type, outside, ...
            entities[len(text)] = ""
            start, text = len(text), text + part
        else:
            entities[start] = part
            entities[len(text)] = ""
    words = tuple(Span(match.start(), match.end()) for match in _WORD.finditer(text))
    tags = []
    for word in words:
        start = max(position for position in entities if position <= word.start)
        sign = "B" if start == word.start else "I"
        tags.append(f"{sign}-{entities[start]}" if entities[start] else "O")
    return TaggedSentence(text, words, tuple(tags), marked)


def read_added(typed: str) -> tuple[LabeledText, ...]:
    """Sentences that a reader adds, one a line; a `TextError` if a label is missing.

    >>> read_added("+ Well done.")
    (LabeledText(text='Well done.', label=1, second=''),)
    """
    lines = [line for line in map(str.strip, typed.splitlines()) if line]
    if len(lines) > MOST_ADDED:
        raise TextError(f"there are {len(lines)} sentences of yours: write at most {MOST_ADDED}")
    for line in lines:
        if line[0] not in _SIGNS:
            raise TextError(
                f"the line {line[:40]!r} has no label: begin it with + if it is positive and with "
                "- if it is negative"
            )
    return tuple(LabeledText(check_sentence(line[1:]), _SIGNS[line[0]]) for line in lines)


def check_sentence(text: str) -> str:
    """A sentence without needless blanks; a `TextError` if it is empty or too long."""
    text = " ".join(text.split())
    if not text:
        raise TextError("a sentence is empty: write one")
    if len(text) > MOST_CHARACTERS:
        raise TextError(
            f"a sentence has {len(text):,} characters, and this figure takes at most "
            f"{MOST_CHARACTERS}: shorten it"
        )
    return text


def check_classes(examples: Sequence[LabeledText]) -> None:
    """A `TextError` unless there are sentences of each sentiment to learn from."""
    if not examples:
        raise TextError("there is no training sentence: write some of yours, or take ours too")
    labels = {example.label for example in examples}
    if len(labels) == 1:
        raise TextError(
            f"all training sentences are {SENTIMENTS[labels.pop()]}, so there is nothing to tell "
            "apart: add one of the other class"
        )
