"""The sentences of some texts on which two models differ most.

Definition. In each sentence up to `words_per_sentence` words, drawn with a seed, are hidden one at
a time, each as a whole behind one mask. There the reference says P and the candidate Q, over the
whole vocabulary. A sentence stands for the word at which the two differ most: first come words
whose most probable guess flipped, then the larger KL(P || Q), or with different tokenizers the
larger difference of the losses of the hidden word. Sentences have the same order. A sentence with
masks of its own is compared there, and its hidden words are unknown.

All numbers are those of `compare`, one hidden word a call: a dynamically quantized model rounds by
the largest value of its batch, and a batch of six saves a tenth of the time.

Rivals: hiding every word takes about three times as long; Jensen-Shannon is bounded, hence nearly
blind to a word that the candidate rules out; the losses of the true word alone miss where both are
wrong, each in its own way.

Source:
    KL divergence from the full-precision model and "same top token" to tell quantizations apart:
    llama.cpp, tools/perplexity/README.md, `--kl-divergence`; Dutta et al. 2024, arXiv:2407.09141.
"""

import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

import fillmask_ui.filling.prompt as prompts
from fillmask_ui.comparing.contrast import compare
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import Candidate, Example, counted, finite
from fillmask_ui.text_words import text_words

WORDS = 6  # hidden in a sentence
LEAST_WORDS = 3  # of a sentence: fewer tell a model nothing
MASK = "[MASK]"

_END = re.compile(r"""[.!?…]["'”’»)\]]*\s+|[。！？][」』”’]*|\n+""")
_NO_END = re.compile(r"(?:^|\W)(?:\w|Mr|Mrs|Ms|Dr|Prof|St)\.\s+$")


@dataclass(frozen=True)
class Sentence:
    """One sentence of one text."""

    example: int  # id of the text
    number: int  # in the text, from 0
    text: str  # without blanks around it


def sentences(example: Example) -> Iterator[Sentence]:
    """The sentences of a text, from left to right; a wrong cut does no harm.

    They end at `.`, `!`, `?` or `…` before blanks and anything but a small letter; at `。`, `！`,
    `？`; and at the end of a line.

    >>> example = Example(0, 'Mr. Ray said "No." It was 3 p.m. then! Why?')
    >>> [sentence.text for sentence in sentences(example)]
    ['Mr. Ray said "No."', 'It was 3 p.m. then!', 'Why?']
    """
    start, cut, text = 0, [], example.text
    prompts.check_text(text)
    for match in _END.finditer(text):
        stop = match.end()
        continues = text[stop : stop + 1].islower() or _NO_END.search(text[:stop])
        if "\n" in match.group() or not continues:
            cut.append(text[start:stop])
            start = stop
    stripped = (sentence.strip() for sentence in (*cut, text[start:]))
    for number, sentence in enumerate(filter(None, stripped)):
        yield Sentence(example.id, number, sentence)


@dataclass(frozen=True)
class HiddenWord:
    """A word of a sentence, or a mask of its own, that can be hidden from both models."""

    word: str | None  # that was hidden; None for a mask of the sentence's own
    start: int  # first character of the word, or of the mask, in the sentence
    end: int  # one past its last
    masked: str  # the sentence with `[MASK]` there
    mask: int  # number of this mask, counted from the left, from 0


@dataclass(frozen=True)
class Divergence(HiddenWord):
    """How far two models differ at one hidden word."""

    sentence: Sentence
    kl_nats: float | None  # KL(reference || candidate); None for different tokenizers
    js_nats: float | None  # Jensen-Shannon divergence; the same
    flipped: bool  # whether the first words differ
    reference_first: Candidate  # the most probable token
    candidate_first: Candidate
    reference_nll_nats: float | None  # -ln P(word), if known
    candidate_nll_nats: float | None
    reference_rank: int | None  # of the word, if it is one token
    candidate_rank: int | None

    @property
    def change_nats(self) -> float:
        """The KL divergence, or without one the difference of the losses of the word."""
        if self.kl_nats is not None:
            return self.kl_nats
        if self.reference_nll_nats == self.candidate_nll_nats:  # unknown, or both infinite
            return 0.0
        return abs((self.candidate_nll_nats or 0.0) - (self.reference_nll_nats or 0.0))

    @property
    def order(self) -> tuple[bool, float]:
        """Whether the first word flipped, then the change."""
        return self.flipped, self.change_nats

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        sentence = values.pop("sentence")
        del values["reference_rank"], values["candidate_rank"]
        return finite({**sentence, **values})


@dataclass(frozen=True)
class SearchedSentence:
    """One sentence under both models."""

    sentence: Sentence
    hidden: tuple[Divergence, ...] = ()  # every word hidden in it, from left to right
    left_out: str = ""  # why nothing was hidden

    @property
    def largest(self) -> Divergence | None:
        """Where the two differ most; None if they do not differ."""
        largest = max(self.hidden, key=_order, default=None)
        return largest if largest and largest.order > (False, 0.0) else None


def _order(divergence: Divergence) -> tuple[bool, float]:
    return divergence.order


@dataclass(frozen=True)
class Search:
    """What is known after some sentences."""

    latest: SearchedSentence
    looked: int  # sentences, without those left out
    left_out: int  # sentences
    hidden_words: int  # so far
    parted: int  # sentences on which the models differ at all
    flipped: int  # sentences with another first word where the models differ most
    best: tuple[Divergence, ...]  # most changed first

    def __repr__(self) -> str:
        changes = f"{counted(self.flipped, 'first word')} changed"
        return f"Search({counted(self.looked, 'sentence')}, {changes})"

    def to_dict(self) -> dict[str, Any]:
        """What `fillmask-ui differ --json` prints."""
        return {
            "looked": self.looked,
            "left_out": self.left_out,
            "words": self.hidden_words,
            "parted": self.parted,
            "flipped": self.flipped,
            "best": [divergence.to_dict() for divergence in self.best],
        }


def divergent_sentences(
    reference: ModelLike,
    candidate: ModelLike,
    texts: Iterable[Example | str],
    *,
    most: int = 20,
    words_per_sentence: int = WORDS,
    seed: int = 42,
) -> Generator[Search]:
    """Search texts for the sentences on which two models differ most.

    In each sentence up to `words_per_sentence` words are hidden, which are drawn by the seed, the
    id of the text and the number of the sentence. Plain strings are numbered from 0.

    Yields:
        After each sentence, with the `most` best so far; stop pulling to cancel.

    >>> from fillmask_ui import load_model
    >>> model = load_model("embedded")
    >>> [search] = divergent_sentences(model, model, ["The cat sat on the mat."])
    >>> search.hidden_words, search.parted, search.best
    (6, 0, ())
    """
    for name, value in (("most", most), ("words per sentence", words_per_sentence)):
        if value < 1:
            raise OptionError(f"{name} must be 1 or more; it was {value}")
    reference, candidate = as_model(reference), as_model(candidate)
    if isinstance(texts, str | bytes | Example):
        raise OptionError("the texts were one text: give a list of them, as in [text]")
    best: list[Divergence] = []
    looked = left_out = hidden = parted = flipped = 0
    examples = (
        text if isinstance(text, Example) else Example(number, text)
        for number, text in enumerate(texts)
    )
    for sentence in chain.from_iterable(map(sentences, examples)):
        latest = look(
            reference, candidate, sentence, words_per_sentence=words_per_sentence, seed=seed
        )
        if latest.largest is not None:
            # The sort is stable: of equals the one found first stays first.
            best = sorted([*best, latest.largest], key=_order, reverse=True)[:most]
            parted += 1
            flipped += latest.largest.flipped
        if latest.left_out:
            left_out += 1
        else:
            looked += 1
        hidden += len(latest.hidden)
        yield Search(latest, looked, left_out, hidden, parted, flipped, tuple(best))


def look(
    reference: MaskedLM,
    candidate: MaskedLM,
    sentence: Sentence,
    *,
    words_per_sentence: int = WORDS,
    seed: int = 42,
) -> SearchedSentence:
    """One sentence under both models; arguments as of `divergent_sentences`."""
    text = sentence.text
    for model in (reference, candidate):
        text = text.replace(model.vocabulary.mask_token, MASK)
    sentence = replace(sentence, text=prompts.normalise_masks(text, MASK))
    rng = np.random.default_rng([seed, sentence.example, sentence.number])
    hidden = []
    try:
        for word in _words_to_hide(reference, sentence.text, words_per_sentence, rng):
            with suppress(OptionError):  # a vocabulary cannot spell the word, so it has no loss
                hidden.append(_divergence(reference, candidate, sentence, word))
    except TextError as error:  # too long
        return SearchedSentence(sentence, left_out=str(error))
    reason = "" if hidden else f"fewer than {LEAST_WORDS} words that both can spell"
    return SearchedSentence(sentence, tuple(hidden), reason)


def _words_to_hide(
    model: MaskedLM, text: str, most: int, rng: np.random.Generator
) -> list[HiddenWord]:
    """At most so many words of a sentence as the model cuts it, or the sentence's own masks."""
    masks = [match.span() for match in re.finditer(re.escape(MASK), text)]
    if masks:
        return [
            HiddenWord(None, start, end, text, mask)
            for mask, (start, end) in enumerate(masks[:most])
        ]
    words = [
        word
        for word in text_words(prompts.encode_unmasked(model, text))
        if any(character.isalnum() for character in word.text)
    ]
    if len(words) < LEAST_WORDS:
        return []
    drawn = [words[index] for index in sorted(rng.permutation(len(words))[:most].tolist())]
    return [
        HiddenWord(word.text, word.start, word.end, text[: word.start] + MASK + text[word.end :], 0)
        for word in drawn
    ]


def _divergence(
    reference: MaskedLM, candidate: MaskedLM, sentence: Sentence, hidden: HiddenWord
) -> Divergence:
    words = [] if hidden.word is None else [hidden.word]
    comparison = compare(reference, candidate, hidden.masked, top_k=1, candidates=words, joint=0)
    mask = comparison.masks[hidden.mask]
    filling = comparison.reference.masks[hidden.mask]
    candidate_filling = comparison.candidate.masks[hidden.mask]
    row = next((row for row in mask.candidates if row.asked), None)
    return Divergence(
        **vars(hidden),
        sentence=sentence,
        kl_nats=mask.kl_nats,
        js_nats=mask.js_nats,
        flipped=mask.flipped,
        reference_first=filling.candidates[0],
        candidate_first=candidate_filling.candidates[0],
        reference_nll_nats=filling.scored[0].nll_nats if words else None,
        candidate_nll_nats=candidate_filling.scored[0].nll_nats if words else None,
        reference_rank=row.reference_rank if row else None,
        candidate_rank=row.candidate_rank if row else None,
    )
