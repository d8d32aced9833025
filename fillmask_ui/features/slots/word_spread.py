"""What a model expects at the mask of each sentence of a template.

Definition. P(word | sentence) is that of `fill`: a softmax over the whole vocabulary, and for a
word of several sub-tokens the chain rule from left to right. The *spread* of a word is the largest
log probability minus the smallest over the sentences, in nats: e^spread is how many times more
probable the word is in one sentence than in another. Without words to look at, those with the
largest spread are taken that have `LEAST_PROBABILITY` in some sentence: rarer words have larger
spreads, which mean little.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fillmask_ui.features.slots.slot_template import SlotSentence, sentences_of
from fillmask_ui.filling.candidates import check_choices, check_work, unscorable
from fillmask_ui.filling.prompt import encode_masked, mask_position
from fillmask_ui.filling.words import (
    log_probabilities_at,
    split_into_tokens,
    tokens_read,
    word_scores,
)
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import Displayed, ModelSignature, counted, excerpt

LEAST_PROBABILITY = 0.01  # in some sentence, of a word that is chosen


@dataclass(frozen=True)
class SlotWord:
    """A word at the mask of each of S sentences."""

    word: str
    tokens: int  # number of its sub-tokens in the first sentence
    probability: tuple[float, ...]  # S
    nll_nats: tuple[float, ...]  # S

    @property
    def spread_nats(self) -> float:
        """The largest log probability minus the smallest."""
        least, most = min(self.nll_nats), max(self.nll_nats)
        return most - least if most > least else 0.0  # both may be infinite


@dataclass(frozen=True, repr=False)
class SlotTable(Displayed):
    """A template: S sentences, and words with their probability in each."""

    template: str
    sentences: tuple[SlotSentence, ...]  # S
    words: tuple[SlotWord, ...]  # as given, or the largest spread first
    signature: ModelSignature

    def __repr__(self) -> str:
        sizes = f"{len(self.sentences)} sentences, {counted(len(self.words), 'word')}"
        return f"SlotTable({excerpt(self.template)}, {sizes})"

    def to_dict(self) -> dict[str, Any]:
        words = [asdict(word) | {"spread_nats": word.spread_nats} for word in self.words]
        return {
            "template": self.template,
            "sentences": [asdict(sentence) for sentence in self.sentences],
            "words": words,
            "model": self.signature.name,
            "signature": str(self.signature),
        }


def slots(
    model: ModelLike,
    template: str,
    candidates: Sequence[str] = (),
    *,
    top_k: int = 12,
    most_work: int | None = None,
) -> SlotTable:
    """Words at the mask of each sentence of a template.

    Args:
        model: from `load_model`, or a reference such as `embedded`.
        template: with one mask in each sentence and up to two slots, as in
            `{He|She} works as a [MASK].`; at most 24 sentences.
        candidates: words to look at, of any number of sub-tokens; none for the largest spreads.
        top_k: how many words are chosen then, 1 to 100.
        most_work: bound on the tokens that the model reads for words of several sub-tokens.

    Raises:
        OptionError: for a template that cannot be read (`sentences_of`), a number out of range, a
            word without tokens or too much work.
        TextError: if a sentence is too long.
        ModelOutputError: if the model returns NaN.
    """
    model = as_model(model)
    check_choices(top_k, candidates)
    sentences = sentences_of(template, model.vocabulary.mask_token)
    encodings = [encode_masked(model, sentence.text) for sentence in sentences]
    positions = [mask_position(encoding, model.vocabulary, 0) for encoding in encodings]
    tokenized = [
        split_into_tokens(model, encoding, position, candidates)
        for encoding, position in zip(encodings, positions, strict=True)
    ]
    work = sum(map(tokens_read, encodings, tokenized))
    check_work(work, most_work)
    texts = [encoding.ids for encoding in encodings]
    log_probs = log_probabilities_at(model, texts, positions)  # [S, V]
    if not candidates:
        table_words = _chosen_words(model, log_probs, top_k)
    else:
        scores = [
            word_scores(model, ids, position, row_words, log_probs[row : row + 1])
            for row, (ids, position, row_words) in enumerate(
                zip(texts, positions, tokenized, strict=True)
            )
        ]
        table_words = []
        for word_in_sentences in zip(*scores, strict=True):
            first = word_in_sentences[0]
            probability = tuple(score.probability for score in word_in_sentences)
            nll_nats = tuple(score.nll_nats for score in word_in_sentences)
            table_words.append(SlotWord(first.word, len(first.parts), probability, nll_nats))
    return SlotTable(template, sentences, tuple(table_words), model.signature)


def spellable_words(
    models: Sequence[MaskedLM], template: str, words: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """The words that every model can spell, and why others are left out; errors as of `slots`."""
    problems: dict[str, str] = {}
    for model in models:
        first_sentence = sentences_of(template, model.vocabulary.mask_token)[0]
        problems |= unscorable(model, first_sentence.text, words)
    return tuple(word for word in words if word not in problems), [*problems.values()]


def _chosen_words(model: MaskedLM, log_probs: np.ndarray, count: int) -> list[SlotWord]:
    """The words of the largest spread, by log probabilities [S, V]."""
    vocabulary = model.vocabulary
    best = log_probs.max(axis=0)  # [V]
    likely = np.flatnonzero(best >= math.log(LEAST_PROBABILITY)).tolist()
    whole_words = [
        token_id
        for token_id in likely
        if token_id not in vocabulary.special_ids
        and not vocabulary.is_continuation(token_id)
        and any(character.isalnum() for character in vocabulary.word(token_id))
    ]
    # Some models expect nothing but fragments, or no word much.
    pool = whole_words or likely or sorted(set(log_probs.argmax(axis=1).tolist()))
    token_words = []
    for token_id in pool:
        nll_nats = -log_probs[:, token_id] + 0.0  # [S]
        probability = tuple(np.exp(-nll_nats).tolist())
        name = vocabulary.word(token_id)
        token_words.append(SlotWord(name, 1, probability, tuple(nll_nats.tolist())))
    by_name: dict[str, SlotWord] = {}
    for word in sorted(token_words, key=lambda word: -word.spread_nats):
        by_name.setdefault(word.word, word)
    return [*by_name.values()][:count]
