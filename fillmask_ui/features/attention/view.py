"""The mode Attention of Explore: a grid of heads, and one of them word by word."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fillmask_ui.features.attention.mask_attention import (
    MaskAttention,
    WordAttention,
    entropies_nats,
    mask_attention,
    rank_correlation,
)
from fillmask_ui.filling.occlusion import Occlusion
from fillmask_ui.show.render import render
from fillmask_ui.show.table import Table
from fillmask_ui.ui.explore.attribution_view import measured_occlusion, words_answer
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
from fillmask_ui.ui.session import Session

MAX_WORDS = 16  # with a line each, those of the largest weights
# Weights, relative to the largest, from which a word of the sentence has tint 1, 2, 3 and 4.
TINT_BORDERS = (0.1, 0.25, 0.5, 0.8)
_TO_MASK, _WITHOUT_SPECIAL = "to", "out"  # values of the fields `look` and `special`


@dataclass(frozen=True)
class HeadChoice:
    """The head, or the mean of a layer, that is looked at."""

    layer: int  # from 1
    head: int | None  # from 1; None for the mean
    to_mask: bool  # whether words look at the mask, rather than the mask at words
    without_special: bool  # whether [CLS] and [SEP] are left out

    @classmethod
    def of(cls, fields: Mapping[str, str], layers: int, heads: int) -> "HeadChoice":
        """What the fields of the mode say; nonsense says nothing: the mean of the last layer."""
        layer = _number(fields.get("layer", ""), layers)
        head = _number(fields.get("head", ""), heads) if layer else None
        return cls(
            layer or layers,
            head,
            fields.get("look") == _TO_MASK,
            fields.get("special") == _WITHOUT_SPECIAL,
        )

    def weight(self, word: WordAttention) -> float:
        return word.to_mask if self.to_mask else word.from_mask


@dataclass(frozen=True)
class Tile:
    """A head in the grid, or the mean of a layer."""

    name: str
    fields: str  # JSON of the fields that choose it
    entropy_nats: float  # at the mask
    peak: float  # 1 if it looks at one token, 0 if at all alike
    chosen: bool


@dataclass(frozen=True)
class Line:
    """A word with its line to or from the mask."""

    text: str
    weight: float
    width: float  # relative to the largest, in [0, 1]
    is_mask: bool


def attention_view(session: Session, question: Question) -> Json:
    """All heads at the chosen mask, and one of them; some words of the occlusion at a time."""
    loaded = LoadedQuestion.read(session, question)
    result = _seen(session, loaded)
    choice = HeadChoice.of(question.fields, *result.shape)
    words = result.words(choice.layer, choice.head)
    listed = [word for word in words if not (choice.without_special and word.is_special)]
    most = max(listed, key=choice.weight)
    largest = choice.weight(most) or 1.0
    lines = _lines(listed, choice, result.position, largest)
    occlusion = measured_occlusion(session, loaded)
    total, measured = sum(word.is_word for word in words), len(occlusion.words)
    tokens = result.encoding.tokens
    values = {
        "choice": choice,
        "name": head_name(choice.layer, choice.head),
        "heads": result.shape[1],
        "grid": _grid(result, choice),
        "lines": lines,
        "mask_row": next((i for i, line in enumerate(lines) if line.is_mask), len(lines) // 2),
        "mask": tokens[result.position],
        "most": most,
        "words": words,
        "special": [(word.text, choice.weight(word)) for word in words if word.is_special],
        "left_out": len(listed) - len(lines),
        "correlation": _correlation(words, choice, occlusion) if measured >= total else None,
        "measured": measured,
        "total": total,
        "number": loaded.mask + 1 if loaded.several else 0,
    }
    entries = [
        {
            "token": word.tokens[0],
            "level": sum(choice.weight(word) >= border * largest for border in TINT_BORDERS),
            "sign": "reference",
            "html": render("attention/word.html", word=word, mask=values["mask"]),
        }
        for word in words
        if word.is_word
    ]
    table = "" if question.start else render("attention/table.html", **values)
    html = {"story": render("attention/attention.html", **values), "table": table}
    return words_answer(loaded, entries, measured, total, html)


def attention_file(session: Session, question: Question) -> Json:
    """A CSV file of all heads at the chosen mask: its `name`, `type` and `text`."""
    rows = [*_seen(session, LoadedQuestion.read(session, question)).rows()]
    text = Table.of([*rows[0]], [(*row.values(),) for row in rows]).to_csv()
    return {"name": "fillmask-attention.csv", "type": "text/csv", "text": text}


def _seen(session: Session, loaded: LoadedQuestion) -> MaskAttention:
    # The first opens a part of the model that nothing else needs.
    return session.slowly(
        loaded.model,
        (mask_attention, loaded.text, loaded.mask),
        lambda _: mask_attention(loaded.model, loaded.text, loaded.mask),
    )


def _number(text: str, most: int) -> int | None:
    return int(text) if text.isdecimal() and 1 <= int(text) <= most else None


def _grid(result: MaskAttention, choice: HeadChoice) -> list[list[Tile]]:
    """A row of tiles for each layer, the mean of its heads at the end."""
    heads, most = result.entropies_nats, math.log(len(result.encoding))
    means = entropies_nats(result.from_mask.mean(axis=1))
    grid = []
    for row, (entropies, mean) in enumerate(zip(heads.tolist(), means.tolist(), strict=True)):
        tiles = []
        for column, entropy in enumerate((*entropies, mean)):
            head = column + 1 if column < len(entropies) else None
            fields = {"layer": str(row + 1), "head": "" if head is None else str(head)}
            tiles.append(
                Tile(
                    head_name(row + 1, head),
                    json.dumps(fields, separators=(",", ":")),
                    entropy,
                    1 - min(1, entropy / most),
                    (choice.layer, choice.head) == (row + 1, head),
                )
            )
        grid.append(tiles)
    return grid


def head_name(layer: int, head: int | None) -> str:
    """How a head is called.

    >>> head_name(3, 5), head_name(3, None)
    ('layer 3, head 5', 'layer 3, mean of its heads')
    """
    return f"layer {layer}, mean of its heads" if head is None else f"layer {layer}, head {head}"


def _lines(
    words: Sequence[WordAttention], choice: HeadChoice, mask: int, largest: float
) -> list[Line]:
    """The words of the largest weights in the order of the sentence."""
    best = sorted(words, key=lambda word: -choice.weight(word))[:MAX_WORDS]
    return [
        Line(word.text, weight := choice.weight(word), weight / largest, mask in word.tokens)
        for word in sorted(best, key=lambda word: word.tokens)
    ]


def _correlation(
    words: Sequence[WordAttention], choice: HeadChoice, occlusion: Occlusion
) -> float | None:
    """Spearman's, over words: their weights, and how far the guess moves without them."""
    weights = {word.tokens: choice.weight(word) for word in words}
    return rank_correlation(
        [weights[occluded.word.tokens] for occluded in occlusion.words],
        [occluded.kl_nats for occluded in occlusion.words],
    )
