"""What a head reads of a frozen encoder: a vector of a text, or one of each of its tokens.

Axes: N texts, T tokens of a text, H hidden size, C tags.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import TextError
from fillmask_ui.features.course.heads.labeled_texts import TAGS, LabeledText, TaggedSentence
from fillmask_ui.features.course.heads.linear_head import LinearHead, fit_head
from fillmask_ui.features.course.next_sentence import sentence_pair
from fillmask_ui.features.course.word_vectors import token_states
from fillmask_ui.filling.prompt import check_length
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding
from fillmask_ui.text_words import characters


@dataclass(frozen=True, eq=False)
class WordTokens:
    """A sentence, its tokens without special ones, and the word of each."""

    sentence: TaggedSentence
    tokens: tuple[str, ...]  # T raw vocabulary strings
    word_numbers: tuple[int, ...]  # T
    states: np.ndarray  # float32 [T, H]

    def tokens_of(self, word: int) -> list[int]:
        """Indices of the tokens of a word; it may have none."""
        return [token for token, number in enumerate(self.word_numbers) if number == word]


@dataclass(frozen=True, eq=False)
class PredictedTags:
    """What a head says of each token, and what that makes of the words."""

    probabilities: np.ndarray  # float64 [T, C]
    token_tags: tuple[str, ...]  # T
    word_tags: tuple[str, ...]  # each is that of the word's first token


def text_states(model: MaskedLM, texts: Sequence[LabeledText], mean: bool = False) -> np.ndarray:
    """A vector of each sentence or pair, float32 [N, H]: that of its first token, such as [CLS].

    With `mean` it is the mean over its tokens, special ones left out. A `TextError` for a text
    without tokens, or with too many.
    """
    encodings = [
        sentence_pair(model, text.text, text.second).encoding
        if text.second
        else _encoded(model, text.text)
        for text in texts
    ]
    states = token_states(model, encodings, special=not mean)
    return np.array([rows.mean(axis=0) if mean else rows[0] for rows in states])


def word_tokens(model: MaskedLM, sentences: Sequence[TaggedSentence]) -> tuple[WordTokens, ...]:
    """The tokens of sentences and their states; errors as of `text_states`."""
    encodings = [_encoded(model, sentence.text) for sentence in sentences]
    split = []
    for sentence, encoding, states in zip(
        sentences, encodings, token_states(model, encodings), strict=True
    ):
        ordinary = [index for index in range(len(encoding)) if not encoding.special[index]]
        starts = [characters(encoding, index).start for index in ordinary]
        # The first word that ends behind the beginning of the token.
        word_ends = [word.end for word in sentence.words[:-1]]
        numbers = np.searchsorted(word_ends, starts, side="right").tolist()
        tokens = tuple(encoding.tokens[index] for index in ordinary)
        split.append(WordTokens(sentence, tokens, tuple(numbers), states))
    return tuple(split)


def fit_tags(sentences: Sequence[WordTokens]) -> LinearHead:
    """A head over TAGS. Each token learns the tag of its word."""
    labels = [
        TAGS.index(entry.sentence.tags[word]) for entry in sentences for word in entry.word_numbers
    ]
    states = np.concatenate([sentence.states for sentence in sentences])
    return fit_head(states, np.array(labels), len(TAGS))


def predict_tags(head: LinearHead, sentence: WordTokens) -> PredictedTags:
    """The likeliest tag of each token; the first token of a word decides for the word."""
    probabilities = head.probabilities(sentence.states)
    token_tags = tuple(TAGS[best] for best in probabilities.argmax(axis=1))
    tokens = [sentence.tokens_of(word) for word in range(len(sentence.sentence.words))]
    word_tags = tuple(token_tags[indices[0]] if indices else "O" for indices in tokens)
    return PredictedTags(probabilities, token_tags, word_tags)


def _encoded(model: MaskedLM, text: str) -> Encoding:
    encoding = model.vocabulary.encode(text)
    check_length(model, encoding)
    if all(encoding.special):
        raise TextError(f"the sentence {text[:40]!r} has no tokens: write some words")
    return encoding
