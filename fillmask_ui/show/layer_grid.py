"""How a guess forms, as a grid: a row for each layer, the last at the top, a column a token."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fillmask_ui.filling.logit_lens import LayerGuess, LogitLens, TokenLayers
from fillmask_ui.show.drawing import Bar
from fillmask_ui.show.numbers import percent
from fillmask_ui.show.words import Spelling, candidate_names


class LayerCell(NamedTuple):
    """What one layer would say at one token."""

    word: str  # the best
    text: str  # its probability, or that of the true word where the cell is tinted by it
    share: float  # the same, in [0, 1]
    right: bool  # whether the best word is the true one
    title: str
    bars: tuple[Bar, ...]  # of the best words

    @property
    def drawn(self) -> str:
        """The bars for the script of the page: name, share, number, whether it is the true word."""
        return json.dumps(
            [
                (
                    own.word,
                    round(own.probability, 5),
                    percent(own.probability),
                    own.kind == "hidden",
                )
                for own in self.bars
            ]
        )


class Depth(NamedTuple):
    """The true word in one layer, on the line through all of them; in shares of its axis."""

    share: float
    above: float  # half way to the layer above, and to that below
    below: float
    text: str  # its probability


class LayerRow(NamedTuple):
    """One layer."""

    layer: int
    cells: tuple[LayerCell, ...]
    depth: Depth | None


@dataclass(frozen=True)
class LayerGrid:
    """What the templates show; of tokens, special ones are left out."""

    rows: tuple[LayerRow, ...]  # the last layer first
    heads: tuple[str, ...]  # the tokens of a text without a mask
    leads_from: int  # the layer from which on the last answer leads, or all tokens lead
    before: str  # what the layer below that says
    known: str  # the true word of a mask
    right: tuple[int, int]  # tokens that lead in the first layer, in the last

    @classmethod
    def of(cls, found: LogitLens, vocabulary: Spelling) -> "LayerGrid":
        special = found.encoding.special
        whole = found.positions[0].layers[0].true is not None and len(found.positions) > 1
        shown = [own for own in found.positions if not (whole and special[own.position])]
        columns = [_cells(own, vocabulary, tinted=whole) for own in shown or found.positions]
        (first, *_) = shown or found.positions
        true = [own.true for own in first.layers]
        depths = [None] * len(true) if whole else _depths(first.layers)
        rows = zip(zip(*columns, strict=True), depths, strict=True)
        made = [LayerRow(layer, cells, depth) for layer, (cells, depth) in enumerate(rows)]
        best = [own.candidates[0].token_id for own in first.layers]
        leads = next((i for i in range(len(best), 0, -1) if best[i - 1] != best[-1]), 0)
        names = [candidate_names([own.true], vocabulary)[0] for own in first.layers if own.true]
        count = [sum(cell.right for cell in made[place].cells) for place in (0, -1)]
        return cls(
            tuple(reversed(made)),
            tuple(_token(own, vocabulary) for own in shown) if whole else (),
            leads,
            made[leads - 1].cells[0].word if leads else "",
            names[0] if names and not whole else "",
            (count[0], count[1]),
        )


def _token(own: TokenLayers, vocabulary: Spelling) -> str:
    (true,) = (own.layers[0].true,)
    return candidate_names([true], vocabulary)[0] if true else own.token


def _cells(own: TokenLayers, vocabulary: Spelling, *, tinted: bool) -> list[LayerCell]:
    at = f" at “{_token(own, vocabulary)}”" if tinted else ""
    cells = []
    for guess in own.layers:
        names = candidate_names(guess.candidates, vocabulary)
        true_id = guess.true.token_id if guess.true else None
        bars = tuple(
            Bar(name, c.probability, "hidden" if c.token_id == true_id else "")
            for name, c in zip(names, guess.candidates, strict=True)
        )
        share = guess.true.probability if tinted and guess.true else bars[0].probability
        title = f"Layer {guess.layer}{at}" if guess.layer else f"The embeddings{at}"
        right = guess.candidates[0].token_id == true_id
        cells.append(LayerCell(names[0], percent(share), share, right, title, bars))
    return cells


def _depths(layers: Sequence[LayerGuess]) -> list[Depth | None]:
    """Of the true word; the axis ends at its largest probability."""
    chances = [own.true.probability for own in layers if own.true]
    if len(chances) < len(layers):
        return [None] * len(layers)
    shares = [own / (max(chances) or 1.0) for own in chances]
    padded = [shares[0], *shares, shares[-1]]
    return [
        Depth(own, (own + padded[i + 2]) / 2, (own + padded[i]) / 2, percent(chances[i]))
        for i, own in enumerate(shares)
    ]
