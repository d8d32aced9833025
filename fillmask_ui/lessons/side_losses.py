"""How well every word of a sentence is guessed from the left, from the right and from both sides.

Each word is hidden in turn, whole, and scored as `score_candidates` scores it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling import score_candidate_at
from fillmask_ui.filling.words import text_words
from fillmask_ui.lessons.sides import MASK, Sides, spoken
from fillmask_ui.protocol import MaskedLM

MOST_WORDS = 20


@dataclass(frozen=True)
class SidedWord:
    """The loss of one word by what the model may read."""

    word: str
    left: float  # -ln P(word) in nats; the sign at the end of the text stays
    right: float
    both: float


@dataclass(frozen=True)
class SidedText:
    """The words of one text, from left to right."""

    words: tuple[SidedWord, ...]  # at least one
    left_out: tuple[str, ...]  # words that the model cannot spell

    def mean(self, side: str) -> float:
        """Mean loss per word in nats, of `left`, `right` or `both`."""
        return math.fsum(getattr(word, side) for word in self.words) / len(self.words)


def side_losses(model: MaskedLM, text: str, report: Callable[[int, int], None]) -> SidedText:
    """Three losses of every word of a text without masks.

    Args:
        model: from `load_model`.
        text: of at most `MOST_WORDS` words.
        report: is told how many words of how many are done.

    Raises:
        TextError: if the text has no word that the model can spell, too many words or a mask.
    """
    encoding = model.vocabulary.encode(text)
    if model.vocabulary.mask_id in encoding.ids or MASK in text:
        raise TextError(f"the sentence has a gap: write a word for {MASK}, each is hidden in turn")
    words = spoken(text_words(encoding, model.vocabulary))
    if len(words) > MOST_WORDS:
        raise TextError(
            f"the sentence has {len(words)} words and here at most {MOST_WORDS} are measured: "
            "shorten it"
        )
    whole, measured, left_out = encoding.text, [], []
    for number, word in enumerate(words, 1):
        sides = Sides.of(model, f"{whole[: word.start]}{MASK}{whole[word.end :]}")
        views = (sides.left(), sides.right(), sides.both())
        try:
            scored = [score_candidate_at(model, view.text, word.text, view.gap) for view in views]
        except OptionError:  # it cannot be spelled
            left_out.append(word.text)
        else:
            measured.append(SidedWord(word.text, *(one.nll_nats for one in scored)))
        report(number, len(words))
    if not measured:
        raise TextError("the text has no word that this model can spell: write a sentence")
    return SidedText(tuple(measured), tuple(left_out))
