"""How a guess forms, as a grid: a row for each layer, the last at the top, a column a token."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from fillmask_ui.filling.logit_lens import LayerGuess, LogitLens
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.show.drawing import Bar
from fillmask_ui.show.numbers import percent
from fillmask_ui.show.words import candidate_names


class LayerCell(NamedTuple):
    """What one layer would say at one token."""

    title: str
    share: float  # probability of its best word, or of the true one where that is the tint
    bars: tuple[Bar, ...]  # of the best words, best first

    @property
    def right(self) -> bool:
        return self.bars[0].kind == "hidden"

    @property
    def drawn(self) -> str:
        """The bars for the script of the page: name, share, number, whether it is the true word."""
        drawn = []
        for bar in self.bars:
            share = bar.probability
            drawn.append((bar.word, round(share, 5), percent(share), bar.kind == "hidden"))
        return json.dumps(drawn)


class LayerRow(NamedTuple):
    """One layer."""

    layer: int
    cells: tuple[LayerCell, ...]
    chance: float | None  # of the true word of a mask; None if it is not followed


@dataclass(frozen=True)
class LayerGrid:
    """What the templates show: one mask, or the tokens of a text, special ones left out."""

    rows: tuple[LayerRow, ...]  # the last layer first
    heads: tuple[str, ...]  # the tokens; none for a mask
    leads_from: int  # the layer from which on the best word of the last one leads
    true_word: str  # of a mask; blank if it is not followed

    @classmethod
    def of(cls, lens: LogitLens, vocabulary: Vocabulary) -> "LayerGrid":
        masked = lens.encoding.ids[lens.positions[0].position] == vocabulary.mask_id
        special = lens.encoding.special
        columns = [column for column in lens.positions if masked or not special[column.position]]
        # The true token is the same in every layer.
        true_tokens = [column.layers[0].true for column in columns]
        names = [candidate_names([true], vocabulary)[0] if true else "" for true in true_tokens]
        rows = []
        for guesses in zip(*(column.layers for column in columns), strict=True):
            cells = (
                _cell(guess, vocabulary, "" if masked else f" at “{name}”")
                for guess, name in zip(guesses, names, strict=True)
            )
            true = guesses[0].true if masked else None
            rows.append(LayerRow(guesses[0].layer, tuple(cells), true and true.probability))
        best = [guess.candidates[0].token_id for guess in columns[0].layers]
        leads = next((i for i in range(len(best), 0, -1) if best[i - 1] != best[-1]), 0)
        heads = () if masked else tuple(names)
        return cls(tuple(reversed(rows)), heads, leads, names[0] if masked else "")


def _cell(guess: LayerGuess, vocabulary: Vocabulary, at: str) -> LayerCell:
    """With `at` its tint is the probability of the token that stands there."""
    true, candidates = guess.true, guess.candidates
    bars = []
    for name, candidate in zip(candidate_names(candidates, vocabulary), candidates, strict=True):
        is_true = true is not None and candidate.token_id == true.token_id
        bars.append(Bar(name, candidate.probability, "hidden" if is_true else ""))
    title = f"Layer {guess.layer}{at}" if guess.layer else f"The embeddings{at}"
    share = true.probability if at and true else bars[0].probability
    return LayerCell(title, share, tuple(bars))
