"""One masked word seen from the left, from the right and from both sides; who may look at whom.

A side is cut off, so that what remains is a text of its own to the model, or hidden by one mask per
token: then the model still knows how long it is.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling import score_candidate_at
from fillmask_ui.filling.masked_position import MaskedPosition, find_masked_position
from fillmask_ui.filling.prompt import encode_masked, mask_position
from fillmask_ui.models.attention_weights import weights_of
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.text_words import TextWord, text_words

MASK = "[MASK]"
_CLOSING = re.compile(r"[^\w\s]+\s*$")  # signs that end a sentence
MOST_GRID_WORDS = 16  # that can still be read
MOST_GRID_TOKENS = 24
MOST_MEASURED_WORDS = 20


@dataclass(frozen=True)
class View:
    """What a model is given of a sentence with a mask."""

    text: str
    mask: int = 0  # number of the mask that is asked about among those of the text

    @property
    def pieces(self) -> tuple[str, str]:
        """The text to the left and to the right of the mask."""
        parts = self.text.split(MASK)
        return MASK.join(parts[: self.mask + 1]), MASK.join(parts[self.mask + 1 :])


@dataclass(frozen=True)
class Sides:
    """A sentence with one mask, to be cut or hidden on either side of it."""

    masked: MaskedPosition
    words: tuple[TextWord, ...]  # all others, signs too

    @classmethod
    def of(cls, model: MaskedLM, text: str) -> "Sides":
        """The sides of a sentence; a `TextError` unless it has exactly one mask."""
        masked = find_masked_position(model, text)
        return cls(masked, text_words(masked.encoding))

    @property
    def sign(self) -> str:
        """What ends the sentence, such as a full stop; blank where nothing does."""
        match = _CLOSING.search(self.masked.after)
        return match.group().rstrip() if match else ""

    def both(self) -> View:
        return View(f"{self.masked.before}{MASK}{self.masked.after}")

    def left(self) -> View:
        """Without the right side, but for the sign at the end."""
        return View(f"{self.masked.before}{MASK}{self.sign}")

    def bare(self) -> View:
        """Without anything behind the mask."""
        return View(f"{self.masked.before}{MASK}")

    def right(self) -> View:
        """Without the left side."""
        return View(f"{MASK}{self.masked.after}")

    def hidden(self, side: str) -> View:
        """With a mask for every token of one side, `left` or `right`, but for the closing sign."""
        if side == "left":
            masks = self._tokens(0, len(self.masked.before))
            return View(" ".join([MASK] * (masks + 1)) + self.masked.after, masks)
        text = self.masked.encoding.text
        masks = self._tokens(
            len(text) - len(self.masked.after), len(text.rstrip()) - len(self.sign)
        )
        return View(self.masked.before + " ".join([MASK] * (masks + 1)) + self.sign)

    def _tokens(self, start: int, stop: int) -> int:
        """Tokens of the words between two characters of the text."""
        return sum(
            len(word.tokens) for word in self.words if start <= word.start and word.end <= stop
        )


@dataclass(frozen=True)
class Attention:
    """Which words a model may look at while it reads each word of a sentence."""

    words: tuple[str, ...]  # in the order of the text
    mask: int  # its index among them
    causal: bool  # each word sees itself and those before it; else each sees all

    def sees(self, reader: int, read: int) -> bool:
        """Whether the first word may look at the second, both as indices."""
        return not self.causal or read <= reader

    @property
    def guesser(self) -> int | None:
        """The word at which the masked one is guessed.

        A causal model predicts the next word, so it guesses at the word before; None without one.
        """
        if not self.causal:
            return self.mask
        return self.mask - 1 if self.mask else None

    @property
    def clues(self) -> int:
        return self.mask if self.causal else len(self.words) - 1


def attention(model: MaskedLM, text: str) -> tuple[Attention, Attention]:
    """A causal and a bidirectional model before a sentence with one mask.

    A `TextError` if it has no mask, several, or more words than a grid can show.
    """
    sentence = Sides.of(model, text)
    words = _spoken(sentence.words)
    mask = sum(word.end <= len(sentence.masked.before) for word in words)
    names = (*(word.text for word in words[:mask]), MASK, *(word.text for word in words[mask:]))
    if len(names) > MOST_GRID_WORDS:
        raise TextError(
            f"the sentence has {len(names)} words and a grid has {MOST_GRID_WORDS} at most: "
            "shorten it"
        )
    return Attention(names, mask, True), Attention(names, mask, False)


@dataclass(frozen=True)
class HeadMap:
    """What each token of a sentence with a mask looks at in one attention head of a model."""

    tokens: tuple[str, ...]  # T, with the special ones
    mask: int  # index of the first mask among them
    layer: int  # from 1
    head: int  # from 1
    shape: tuple[int, int]  # layers of the model, heads of each
    weights: np.ndarray  # float32 [T, T], a row for each token that looks; rows sum to 1


def head_map(model: MaskedLM, text: str, layer: int, head: int) -> HeadMap:
    """One head of a model, the last one for numbers beyond it.

    A `TextError` without a mask or for more tokens than a grid can show, and a `ModelError` for a
    model that does not show its attention.
    """
    encoding = encode_masked(model, text)
    if len(encoding) > MOST_GRID_TOKENS:
        raise TextError(
            f"the sentence has {len(encoding)} tokens and a grid has {MOST_GRID_TOKENS} at most: "
            "shorten it"
        )
    weights = weights_of(model, encoding)  # [L, A, T, T]
    layers, heads = weights.shape[:2]
    layer, head = min(layer, layers), min(head, heads)
    mask = mask_position(encoding, model.vocabulary, 0)
    chosen = weights[layer - 1, head - 1]
    return HeadMap(tuple(encoding.tokens), mask, layer, head, (layers, heads), chosen)


def _spoken(words: Sequence[TextWord]) -> list[TextWord]:
    """Words of letters or digits, signs left out."""
    return [word for word in words if any(c.isalnum() for c in word.text)]


@dataclass(frozen=True)
class SidedWord:
    """The loss of one word by what the model may read, -ln P(word) in nats."""

    word: str
    left: float  # the sign at the end of the text stays
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
    """Three losses of every word of a text, each hidden in turn, whole.

    `report` is called with the numbers of words done and of all. A `TextError` if the text has no
    word that the model can spell, too many words or a mask.
    """
    encoding = model.vocabulary.encode(text)
    if model.vocabulary.mask_id in encoding.ids or MASK in text:
        raise TextError(f"the sentence has a gap: write a word for {MASK}, each is hidden in turn")
    words = _spoken(text_words(encoding))
    if len(words) > MOST_MEASURED_WORDS:
        raise TextError(
            f"the sentence has {len(words)} words and here at most {MOST_MEASURED_WORDS} "
            "are measured: shorten it"
        )
    whole, measured, left_out = encoding.text, [], []
    for number, word in enumerate(words, 1):
        hidden_word = Sides.of(model, f"{whole[: word.start]}{MASK}{whole[word.end :]}")
        views = (hidden_word.left(), hidden_word.right(), hidden_word.both())
        try:
            scored = [score_candidate_at(model, view.text, word.text, view.mask) for view in views]
        except OptionError:  # it cannot be spelled
            left_out.append(word.text)
        else:
            measured.append(SidedWord(word.text, *(score.nll_nats for score in scored)))
        report(number, len(words))
    if not measured:
        raise TextError("the text has no word that this model can spell: write a sentence")
    return SidedText(tuple(measured), tuple(left_out))
