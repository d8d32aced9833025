"""How a guess forms, as a grid: a row for each layer, the last at the top, a column a token."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fillmask_ui.filling.logit_lens import LayerGuess, LogitLens, TokenLayers
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.show.drawing import Bar
from fillmask_ui.show.numbers import percent
from fillmask_ui.show.words import candidate_names


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
        drawn = []
        for own in self.bars:
            share = own.probability
            drawn.append((own.word, round(share, 5), percent(share), own.kind == "hidden"))
        return json.dumps(drawn)


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
    """What the templates show: one mask, or the tokens of a text, special ones left out."""

    rows: tuple[LayerRow, ...]  # the last layer first
    heads: tuple[str, ...]  # the tokens; none for a mask
    leads_from: int  # the layer from which on the best word of the last one leads
    before: str  # what the layer below that says; blank where there is none
    known: str  # the true word of a mask; blank if it is not followed
    right: tuple[int, int]  # columns in which the true word leads, in the first and the last layer

    @classmethod
    def of(cls, found: LogitLens, vocabulary: Vocabulary) -> "LayerGrid":
        masked = found.encoding.ids[found.positions[0].position] == vocabulary.mask_id
        special = found.encoding.special
        columns = [own for own in found.positions if masked or not special[own.position]]
        names = [_true_name(own.layers[0], vocabulary) for own in columns]
        heads = () if masked else tuple(names)
        cells = [
            _cells(own, vocabulary, f" at “{name}”" if heads else "")
            for own, name in zip(columns, names, strict=True)
        ]
        own = columns[0].layers
        depths = _depths(own) if masked else [None] * len(own)
        lines = enumerate(zip(zip(*cells, strict=True), depths, strict=True))
        rows = [LayerRow(number, across, depth) for number, (across, depth) in lines]
        best = [guess.candidates[0].token_id for guess in own]
        leads = next((i for i in range(len(best), 0, -1) if best[i - 1] != best[-1]), 0)
        return cls(
            rows=tuple(reversed(rows)),
            heads=heads,
            leads_from=leads,
            before=rows[leads - 1].cells[0].word if leads else "",
            known=names[0] if masked else "",
            right=(sum(c.right for c in rows[0].cells), sum(c.right for c in rows[-1].cells)),
        )


def _true_name(own: LayerGuess, vocabulary: Vocabulary) -> str:
    return candidate_names([own.true], vocabulary)[0] if own.true else ""


def _cells(own: TokenLayers, vocabulary: Vocabulary, at: str) -> list[LayerCell]:
    """A column; with `at` its tint is the probability of the token that stands there."""
    cells = []
    for guess in own.layers:
        names, true = candidate_names(guess.candidates, vocabulary), guess.true
        kinds = ["hidden" if true and c.token_id == true.token_id else "" for c in guess.candidates]
        shares = [c.probability for c in guess.candidates]
        bars = tuple(map(Bar, names, shares, kinds))
        share = true.probability if at and true else shares[0]
        title = f"Layer {guess.layer}{at}" if guess.layer else f"The embeddings{at}"
        cells.append(LayerCell(names[0], percent(share), share, bool(kinds[0]), title, bars))
    return cells


def _depths(layers: Sequence[LayerGuess]) -> Sequence[Depth | None]:
    """Of the true word; the axis ends at its largest probability."""
    chances = [own.true.probability for own in layers if own.true]
    if not chances:
        return [None] * len(layers)
    shares = [own / (max(chances) or 1.0) for own in chances]
    padded = [shares[0], *shares, shares[-1]]
    return [
        Depth(own, (own + padded[i + 2]) / 2, (own + padded[i]) / 2, percent(chances[i]))
        for i, own in enumerate(shares)
    ]
