"""Where do two models part? The sentences of some texts on which they differ most.

Definition. In each sentence up to `words` words, drawn with a seed, are hidden one at a time, each
as a whole behind one mask. At the mask A says P and B says Q, both over the whole vocabulary. A
sentence is told by the one word at which the two differ most: first come words where the most
probable word flipped, then the larger KL(P || Q), what it costs to believe B where A is right.
Sentences are put in the same order. Where the tokenizers differ P and Q range over different
tokens and have no divergence: what counts then is how far apart the losses of the hidden word are,
which is the same characters for both. A sentence with masks of its own is looked at there, and
what was hidden is not known.

The hidden words of a sentence go through each model in one batch, which finds the word; its
numbers are then those of `compare`, and so of `fill`. A model that is quantized dynamically rounds
by the largest value of its batch, so another word may be found by a hair; no number that is given
depends on it.

Rivals: to hide every word takes about three times as long (`words` may be as large as wanted);
Jensen-Shannon is symmetric and bounded, hence nearly blind to a word that B rules out; the losses
of the true word alone miss where both are wrong, each in its own way.

Source:
    KL divergence from the full-precision model and "same top token" to tell quantizations apart:
    llama.cpp, tools/perplexity/README.md, `--kl-divergence`; Dutta et al. 2024, arXiv:2407.09141.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.comparing.masks import compare
from fillmask_ui.comparing.sentences import Sentence, sentences
from fillmask_ui.comparing.tokenizers import same_tokenizer
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling.prompt import encode_masked, mask_position, normalise_masks
from fillmask_ui.filling.surprise import encode_unmasked
from fillmask_ui.filling.text_words import text_words
from fillmask_ui.filling.words import ROWS_PER_CALL, exponentials_at, split_into_tokens
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Candidate, Example, finite

# Words hidden in a sentence, and the least that one of a text has: fewer tell a model nothing.
WORDS = 6
LEAST_WORDS = 3
MASK = "[MASK]"

Pair = tuple[MaskedLM, MaskedLM]  # A and B


@dataclass(frozen=True)
class Parting:
    """The word of one sentence on which A and B differ most; A's number first."""

    sentence: Sentence
    word: str | None  # what was hidden; None for a mask of the sentence's own
    start: int  # first character of the word, or of the mask, in the sentence
    end: int  # one past its last
    masked: str  # the sentence with `[MASK]` there
    mask: int  # number of this mask, counted from the left, from 0
    kl_nats: float | None  # KL(A || B); None where the tokenizers differ
    js_nats: float | None  # Jensen-Shannon divergence; the same
    flipped: bool  # whether the first words differ
    first: Candidate  # the most probable token under A
    other_first: Candidate  # and under B
    nll_nats: float | None  # -ln P(word) under A; None where the word is not known
    other_nll_nats: float | None  # under B

    @property
    def order(self) -> tuple[bool, float]:
        """How much the two differ: whether the first word flipped, then `_change`, in nats."""
        return self.flipped, _change(self.kl_nats, self.nll_nats, self.other_nll_nats)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values, with the text in place of the sentence's own record."""
        values = asdict(self)
        sentence = values.pop("sentence")
        return finite({**sentence, **values})


@dataclass(frozen=True)
class Looked:
    """One sentence that was looked at."""

    sentence: Sentence
    words: int  # that were hidden in it; 0 where it was left out
    found: Parting | None  # None where the models do not differ at any of them
    left_out: str = ""  # why nothing was hidden


@dataclass(frozen=True)
class Search:
    """What is known after some sentences."""

    latest: Looked
    looked: int  # sentences so far, without those left out
    left_out: int  # sentences so far that were
    words: int  # hidden so far
    parted: int  # sentences on which the models differ at all
    flipped: int  # sentences with another first word at the place that tells them
    best: tuple[Parting, ...]  # most changed first

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; the shape that `fillmask-ui differ --json` prints."""
        counts = ("looked", "left_out", "words", "parted", "flipped")
        return {
            **{name: getattr(self, name) for name in counts},
            "best": [found.to_dict() for found in self.best],
        }


def where_they_part(
    model_a: MaskedLM,
    model_b: MaskedLM,
    texts: Iterable[Example],
    *,
    most: int = 20,
    words: int = WORDS,
    seed: int = 0,
) -> Generator[Search]:
    """Search texts for the sentences on which two models differ most.

    Args:
        model_a: from `load_model`.
        model_b: the same; any other, or the same once more.
        texts: of any length; they are cut into `sentences`.
        most: sentences that are kept.
        words: hidden in each sentence, one at a time.
        seed: of which words; with the id of the text and the number of the sentence.

    Yields:
        After each sentence; stop pulling to cancel.

    Raises:
        OptionError: if a number is below 1.
        ModelOutputError: if a model returns NaN.

    >>> from fillmask_ui import load_model
    >>> model = load_model("embedded")
    >>> [search] = where_they_part(model, model, [Example(0, "The cat sat on the mat.")])
    >>> search.words, search.parted, search.best
    (6, 0, ())
    """
    for name, value in (("most", most), ("words", words)):
        if value < 1:
            raise OptionError(f"{name} must be 1 or more; it was {value}")
    best: list[Parting] = []
    done = left_out = hidden = parted = flipped = 0
    for text in texts:
        for sentence in sentences(text):
            latest = look(model_a, model_b, sentence, words=words, seed=seed)
            if latest.found is not None:
                # The sort is stable: of equals the one found first stays first.
                best = sorted([*best, latest.found], key=lambda own: own.order, reverse=True)
                best = best[:most]
                parted += 1
                flipped += latest.found.flipped
            done, left_out = done + (not latest.left_out), left_out + bool(latest.left_out)
            hidden += latest.words
            yield Search(latest, done, left_out, hidden, parted, flipped, tuple(best))


def look(
    model_a: MaskedLM, model_b: MaskedLM, sentence: Sentence, *, words: int = WORDS, seed: int = 0
) -> Looked:
    """One sentence under both models; arguments as of `where_they_part`."""
    models = (model_a, model_b)
    sentence = replace(sentence, text=_plain_masks(sentence.text, models))
    rng = np.random.default_rng([seed, sentence.example, sentence.number])
    try:
        places = _places(models, sentence.text, words, rng)
    except TextError as error:
        return Looked(sentence, 0, None, str(error))
    if not places:
        return Looked(sentence, 0, None, f"fewer than {LEAST_WORDS} words that both can spell")
    alike = same_tokenizer(model_a.vocabulary, model_b.vocabulary)
    wanted = [_most_changed(models, places)] if alike else places
    found = max((_parting(models, sentence, own) for own in wanted), key=lambda own: own.order)
    return Looked(sentence, len(places), found if found.order > (False, 0.0) else None)


@dataclass(frozen=True)
class _Place:
    """A word, or a mask of the sentence's own, ready for both models; see `Parting`."""

    word: str | None
    start: int
    end: int
    masked: str
    mask: int
    ids: tuple[tuple[int, ...], ...]  # of the masked sentence, for A and for B
    positions: tuple[int, ...]  # of the mask among them


def _plain_masks(text: str, models: Pair) -> str:
    """The text with every mask written as `[MASK]`."""
    for model in models:
        text = text.replace(model.vocabulary.mask_token, MASK)
    return normalise_masks(text, MASK)


def _places(models: Pair, text: str, most: int, rng: np.random.Generator) -> list[_Place]:
    """At most so many places of a sentence; a `TextError` where it is too long for a model."""
    own = [match.start() for match in re.finditer(re.escape(MASK), text)]
    if own:
        return [
            _place(models, text, None, start, start + len(MASK), mask)
            for mask, start in enumerate(own[:most])
        ]
    encoding = encode_unmasked(models[0], text)
    found = [
        word
        for word in text_words(encoding, models[0].vocabulary)
        if any(character.isalnum() for character in word.text)
    ]
    if len(found) < LEAST_WORDS:
        return []
    drawn = sorted(rng.permutation(len(found))[:most].tolist())
    places = []
    for word in (found[index] for index in drawn):
        # A word that a vocabulary cannot spell has no loss there.
        with suppress(OptionError):
            masked = text[: word.start] + MASK + text[word.end :]
            places.append(_place(models, masked, word.text, word.start, word.end, 0))
    return places


def _place(models: Pair, masked: str, word: str | None, start: int, end: int, mask: int) -> _Place:
    """An `OptionError` where a model cannot spell the word, a `TextError` for too long a text."""
    ids, positions = [], []
    for model in models:
        encoding = encode_masked(model, masked)
        position = mask_position(encoding, model.vocabulary, mask)
        split_into_tokens(model, encoding, position, [] if word is None else [word])
        ids.append(encoding.ids)
        positions.append(position)
    return _Place(word, start, end, masked, mask, tuple(ids), tuple(positions))


def _most_changed(models: Pair, places: Sequence[_Place]) -> _Place:
    """The place at which two models of one tokenizer differ most, as far as batches tell."""
    orders: list[tuple[bool, float]] = []
    for start in range(0, len(places), ROWS_PER_CALL):
        part = places[start : start + ROWS_PER_CALL]
        first, second = (
            exponentials_at(model, [own.ids[k] for own in part], [own.positions[k] for own in part])
            for k, model in enumerate(models)
        )
        ratio = scoring.log_ratio(first.log_probabilities, second.log_probabilities)  # [M, V]
        flipped = (first.best_ids != second.best_ids).tolist()
        orders += zip(flipped, scoring.expectation(first, ratio).tolist(), strict=True)
    return places[max(range(len(places)), key=orders.__getitem__)]


def _parting(models: Pair, sentence: Sentence, place: _Place) -> Parting:
    words = [] if place.word is None else [place.word]
    compared = compare(*models, place.masked, top_k=1, candidates=words, joint=0)
    mask = compared.masks[place.mask]
    first, second = (side.masks[place.mask] for side in (compared.first, compared.second))
    return Parting(
        sentence=sentence,
        word=place.word,
        start=place.start,
        end=place.end,
        masked=place.masked,
        mask=place.mask,
        kl_nats=mask.kl_nats,
        js_nats=mask.js_nats,
        flipped=mask.flipped,
        first=first.candidates[0],
        other_first=second.candidates[0],
        nll_nats=first.scored[0].nll_nats if words else None,
        other_nll_nats=second.scored[0].nll_nats if words else None,
    )


def _change(kl_nats: float | None, nll_nats: float | None, other_nll_nats: float | None) -> float:
    if kl_nats is not None:
        return kl_nats
    if nll_nats is None or other_nll_nats is None or nll_nats == other_nll_nats:
        return 0.0
    return abs(nll_nats - other_nll_nats)
