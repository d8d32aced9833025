"""A table of words and sentences as tinted cells, and two sentences as a scatter plot."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from fillmask_ui.features.slots.slot_template import SlotSentence
from fillmask_ui.features.slots.word_spread import SlotTable, SlotWord
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.numbers import loss_text, percent

LEAST_POWER = -8  # of ten: probabilities below have the tint of 10^-8
LETTER_WIDTH = 8.0  # of a name in the scatter plot, about, in units of the drawing
PLOT = (60.0, 400.0)  # left and right end of the axis
HEIGHT = (340.0, 20.0)  # its lower and upper end


@dataclass(frozen=True)
class HeatCell:
    """One word in one sentence."""

    text: str
    title: str
    share: float  # of the tint, in [0, 1]
    state: str  # of Explore with this sentence, JSON


@dataclass(frozen=True)
class HeatRow:
    """One word."""

    word: str
    cells: tuple[HeatCell, ...]  # one per sentence


@dataclass(frozen=True)
class HeadGroup:
    """Sentences that share the alternative of the first of two slots."""

    name: str
    size: int


# Left, top, right and bottom.
Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True)
class Label:
    """A name in a drawing."""

    text: str
    x: float
    y: float
    anchor: str  # `text-anchor` of SVG


@dataclass(frozen=True)
class Dot:
    """One word of a scatter plot."""

    title: str
    x: float
    y: float
    label: Label
    moved_x: float  # where a second model has it; the same without one
    moved_y: float
    state: str  # of Explore with the sentence in which the word is more probable, JSON


def log_scale(tables: Sequence[SlotTable], start: float, end: float) -> Scale:
    """Powers of ten around all probabilities, between two ends of a drawing."""
    nlls = [nll for table in tables for word in table.words for nll in word.nll_nats]
    powers = [max(LEAST_POWER, -nll / math.log(10)) for nll in nlls]
    low, high = math.floor(min(powers)), math.ceil(max(powers))
    return Scale(low if low < high else high - 1, high, start, end)


def at(scale: Scale, nll_nats: float) -> float:
    """Where a probability stands on a scale of powers of ten."""
    return scale(-nll_nats / math.log(10))


def power_label(power: float) -> str:
    """A power of ten in percent.

    >>> power_label(0), power_label(-1), power_label(-4)
    ('100%', '10%', '0.01%')
    """
    number = f"{100 * 10.0**power:.8f}"
    return f"{number.rstrip('0').rstrip('.')}%"


def heat_rows(table: SlotTable, scale: Scale, unit: str) -> list[HeatRow]:
    """The rows of one model; `scale` goes from 0 to 1."""
    rows = []
    for word in table.words:
        cells = [
            _cell(word, sentence, column, scale, unit)
            for column, sentence in enumerate(table.sentences)
        ]
        rows.append(HeatRow(word.word, tuple(cells)))
    return rows


def _cell(word: SlotWord, sentence: SlotSentence, column: int, scale: Scale, unit: str) -> HeatCell:
    nll_nats = word.nll_nats[column]
    text = percent(word.probability[column])
    title = f"{sentence.text} {word.word}: {text}, {loss_text(nll_nats, unit)}"
    return HeatCell(text, title, at(scale, nll_nats), _state(sentence, word))


def _state(sentence: SlotSentence, word: SlotWord) -> str:
    """Of Explore, JSON: the sentence, and the word among its candidates."""
    state = {"mode": "", "text": sentence.text, "words": word.word, "selected": 0}
    return json.dumps(state, ensure_ascii=False)


def head_groups(sentences: Sequence[SlotSentence]) -> list[HeadGroup]:
    """The upper row of headings; none for a single slot."""
    if len(sentences[0].fillings) < 2:
        return []
    names = [SlotSentence(sentence.fillings[:1], "").name for sentence in sentences]
    return [HeadGroup(name, len([*group])) for name, group in groupby(names)]


def head_names(sentences: Sequence[SlotSentence]) -> list[str]:
    """The lower row of headings: the alternative of the last slot."""
    return [SlotSentence(sentence.fillings[-1:], "").name for sentence in sentences]


def powers(scale: Scale, most: int = 5) -> list[int]:
    """At most so many powers of ten of a scale, the largest among them."""
    step = math.ceil((scale.high - scale.low + 1) / most)
    return [*range(int(scale.high), int(scale.low) - 1, -step)]


def dots(tables: Sequence[SlotTable], x: Scale, y: Scale) -> list[Dot]:
    """The words of two sentences by their probability, of one model or two."""
    words, candidate_words = tables[0].words, tables[-1].words
    points = [(at(x, word.nll_nats[0]), at(y, word.nll_nats[1])) for word in words]
    labels = placed_labels([word.word for word in words], points)
    drawn = []
    for word, moved, point, label in zip(words, candidate_words, points, labels, strict=True):
        probabilities = f"{percent(word.probability[0])}, {percent(word.probability[1])}"
        moved_x, moved_y = at(x, moved.nll_nats[0]), at(y, moved.nll_nats[1])
        sentence = tables[0].sentences[word.nll_nats.index(min(word.nll_nats))]
        state = _state(sentence, word)
        drawn.append(Dot(f"{word.word}: {probabilities}", *point, label, moved_x, moved_y, state))
    return drawn


def placed_labels(names: Sequence[str], points: Sequence[tuple[float, float]]) -> list[Label]:
    """A name beside each point, where it covers the least of other names and points."""
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    labels = []
    for name, (x, y) in zip(names, points, strict=True):
        width = LETTER_WIDTH * len(name)
        boxes = {
            "start": (x + 9, y - 8, x + 9 + width, y + 7),
            "end": (x - 9 - width, y - 8, x - 9, y + 7),
            "above": (x - width / 2, y - 23, x + width / 2, y - 8),
            "below": (x - width / 2, y + 8, x + width / 2, y + 23),
        }
        side = min(boxes, key=lambda side: sum(_overlap(boxes[side], box) for box in taken))
        left, _, right, bottom = boxes[side]
        taken.append(boxes[side])
        anchor = side if side in ("start", "end") else "middle"
        label_x = {"start": left, "end": right, "middle": x}[anchor]
        labels.append(Label(name, label_x, bottom - 3, anchor))
    return labels


def _overlap(first: Box, second: Box) -> float:
    """The area that two boxes share, and that of the first outside of the drawing."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    outside = max(0.0, first[2] - PLOT[1] - 30) + max(0.0, PLOT[0] - first[0])
    return max(0.0, width) * max(0.0, height) + outside
