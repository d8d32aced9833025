"""The vectors of one word in several sentences: how alike they are, and which sense is nearest.

The vector of a word is the encoder's hidden state at its tokens, by default of the last layer, and
their mean where there are several. Axes: S sentences, N tokens of the background, H hidden size.

Source:
    Ethayarajh 2019, arXiv:1909.00512 (anisotropy: even vectors of unrelated words have a cosine
    above 0); Timkey and van Schijndel 2021, arXiv:2109.04404 (a few rogue dimensions make it, and
    z-scoring each dimension undoes it); senses by the nearest centroid: Peters et al. 2018,
    arXiv:1802.05365, section 5.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from fillmask_ui.batching import pad, plan_batches
from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.filling.prompt import check_length
from fillmask_ui.protocol import EncoderStates, LayerStates, MaskedLM
from fillmask_ui.records import Encoding
from fillmask_ui.text_words import text_words

MOST_SENTENCES = 12
LAYERS = {
    "last": "last",
    "four": "mean of the last four",
    "middle": "middle",
    "embeddings": "embeddings",
}
_BATCH_TOKENS = 512
_GROUP = re.compile(r"(\d+)\s*:\s*(.*)")


@dataclass(frozen=True)
class TwoSenses:
    """A word, and sentences for each of its senses."""

    word: str
    lines: str  # as a reader would type them
    fresh: list[str]  # one more sentence of each sense, whose sense is to be found


TWO_SENSES = tuple(
    TwoSenses(**entry)
    for entry in yaml.safe_load(Path(__file__).with_name("two_senses.yaml").read_text("utf-8"))
)


@dataclass(frozen=True)
class SenseSentence:
    """A sentence and the sense that its reader gave it."""

    text: str
    sense: int  # from 0, in the order in which senses first come up


@dataclass(frozen=True)
class WordUse:
    """Where a word stands in a sentence."""

    sentence: SenseSentence
    encoding: Encoding
    tokens: tuple[int, ...]  # of the word, as indices
    start: int  # its first character in the text
    end: int  # one past its last


@dataclass(frozen=True, eq=False)
class Background:
    """Token vectors of running text, special tokens left out."""

    vectors: np.ndarray  # float32 [N, H]
    texts: int


@dataclass(frozen=True, eq=False)
class WordVectors:
    """One word in several sentences, and what vectors of this model are like at all."""

    uses: tuple[WordUse, ...]
    vectors: np.ndarray  # float32 [S, H]
    background: Background  # the tokens of these sentences among them

    @property
    def senses(self) -> np.ndarray:
        """int64 [S]."""
        return np.array([use.sentence.sense for use in self.uses])

    def z_scored(self, vectors: np.ndarray) -> np.ndarray:
        """Float64 [S, H]: each dimension less its mean over the background, by its deviation."""
        background = self.background.vectors.astype(np.float64)
        deviation = background.std(axis=0)
        deviation[deviation == 0] = 1  # a constant dimension is 0 afterwards
        return (vectors - background.mean(axis=0)) / deviation


@dataclass(frozen=True, eq=False)
class Plane:
    """The two directions in which some vectors differ most."""

    points: np.ndarray  # float64 [S, 2]
    shares: tuple[float, float]  # of the variance of the vectors


@dataclass(frozen=True)
class SenseCosine:
    """How near a word is to one sense."""

    sense: int
    cosine: float  # with the mean of the z-scored vectors of this sense
    sentences: int  # that it is the mean of


def read_sentences(text: str) -> tuple[SenseSentence, ...]:
    r"""Sentences as a reader types them, one a line: a blank line or `2:` begins another sense.

    A `TextError` if there are fewer than two sentences, or more than `MOST_SENTENCES`.

    >>> [(own.text, own.sense) for own in read_sentences("A bank.\n\nThe bank!\n1: One bank.")]
    [('A bank.', 0), ('The bank!', 1), ('One bank.', 0)]
    """
    sentences: list[SenseSentence] = []
    names: list[int] = []  # of senses as the reader numbers them
    current, blank = 1, False
    for line in map(str.strip, text.splitlines()):
        named = _GROUP.fullmatch(line)
        if named:
            current = int(named[1])
        elif line and blank and sentences:
            current = max(names) + 1
        blank = not line
        if sentence := named[2] if named else line:
            if current not in names:
                names.append(current)
            sentences.append(SenseSentence(sentence, names.index(current)))
    if not 2 <= len(sentences) <= MOST_SENTENCES:
        raise TextError(
            f"there are {len(sentences)} sentences: write 2 to {MOST_SENTENCES}, one a line, with "
            "a blank line between the senses"
        )
    return tuple(sentences)


def find_word(model: MaskedLM, sentence: SenseSentence, word: str) -> WordUse:
    """The first place of a word in a sentence, whatever its case.

    A whole word wins over a part of another; that part counts where scripts write no blanks, or
    where endings follow. A `TextError` if it does not occur or the sentence is too long.
    """
    encoding = model.vocabulary.encode(sentence.text)
    check_length(model, encoding)
    for candidate in text_words(encoding):
        if candidate.text.casefold() == word.casefold():
            return WordUse(sentence, encoding, candidate.tokens, candidate.start, candidate.end)
    match = re.search(re.escape(word), encoding.text, re.IGNORECASE) if word else None
    if match is None:
        raise TextError(
            f"the word {word!r} does not occur in {sentence.text!r}: write it there as it stands "
            "in the field of the word, or change that"
        )
    tokens = tuple(
        index
        for index, span in enumerate(encoding.spans)
        if span.start < match.end() and match.start() < span.end and not encoding.special[index]
    )
    return WordUse(sentence, encoding, tokens, match.start(), match.end())


def background(
    model: MaskedLM,
    texts: Iterable[str],
    report: Callable[[float], None] = lambda _: None,
    layer: str = "last",
) -> Background:
    """Vectors of all tokens of some texts, each cut to what the model reads.

    `report` is called with the share done, in [0, 1].
    """
    encodings = [model.vocabulary.encode(text).part(slice(model.max_tokens)) for text in texts]
    parts: list[np.ndarray] = []
    for batch in plan_batches([len(encoding) for encoding in encodings], max_tokens=_BATCH_TOKENS):
        report(sum(map(len, parts)) / sum(map(len, encodings)))
        parts += token_states(model, [encodings[index] for index in batch], layer=layer)
    return Background(np.concatenate(parts), len(encodings))


def word_vectors(
    model: MaskedLM,
    sentences: Sequence[SenseSentence],
    word: str,
    background_vectors: Background | None = None,
    layer: str = "last",
) -> WordVectors:
    """A word in each of some sentences, over a known background; errors as of `find_word`."""
    uses = tuple(find_word(model, sentence, word.strip()) for sentence in sentences)
    states = token_states(model, [use.encoding for use in uses], layer=layer)
    vectors = []
    for use, text_states in zip(uses, states, strict=True):
        state_rows = (
            np.cumsum(~np.array(use.encoding.special)) - 1
        )  # row of each token in `text_states`
        vectors.append(text_states[state_rows[list(use.tokens)]].mean(axis=0))
    background_vectors = background_vectors or Background(
        np.zeros((0, states[0].shape[1]), np.float32), 0
    )
    together = Background(
        np.concatenate([background_vectors.vectors, *states]), background_vectors.texts
    )
    return WordVectors(uses, np.array(vectors), together)


def token_states(
    model: MaskedLM, encodings: Sequence[Encoding], special: bool = False, layer: str = "last"
) -> list[np.ndarray]:
    """Hidden states of the tokens of each text in one of LAYERS, float32 [T', H].

    Special tokens have a row with `special` alone. A `ModelError` if the model gives no states.
    """
    if not isinstance(model, EncoderStates):
        raise ModelError(
            f"{model.signature.name} gives logits alone, so there are no vectors of words to look "
            "at: choose the embedded model, or one that runs on PyTorch"
        )
    cols = [np.flatnonzero(~np.array(encoding.special) | special) for encoding in encodings]
    if layer != "last":
        pairs = zip(encodings, cols, strict=True)
        return [_layer_states(model, encoding, layer)[places] for encoding, places in pairs]
    batch = pad([np.array(encoding.ids) for encoding in encodings], model.vocabulary.pad_id)
    rows = np.repeat(np.arange(len(cols)), [len(encoding) for encoding in cols])
    states = model.states_at(batch.input_ids, batch.attention_mask, rows, np.concatenate(cols))
    return np.split(states, np.cumsum([len(encoding) for encoding in cols])[:-1])


def _layer_states(model: MaskedLM, encoding: Encoding, layer: str) -> np.ndarray:
    """Float32 [T, H], special tokens included."""
    if not isinstance(model, LayerStates):
        raise ModelError(f"{model.signature.name} shows its last layer alone: choose that")
    embeddings, *layers = (
        np.asarray(states, np.float32).reshape(len(encoding), -1)  # some begin with an axis of 1
        for states in model.layer_states(np.array(encoding.ids))
    )
    if layer == "four":
        return np.mean(layers[-4:], axis=0)
    return embeddings if layer == "embeddings" else layers[(len(layers) - 1) // 2]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine similarity of each vector [S, H] with each other one [R, H]: float64 [S, R]."""
    return _unit(first) @ _unit(second).T


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def cosine_parts(vectors: np.ndarray) -> np.ndarray:
    """What each dimension adds to the mean cosine of all pairs of tokens [N, H]: float64 [H].

    The cosine of two vectors is a sum over dimensions, and so is the mean of many; N is at least 2.
    """
    unit = _unit(vectors)
    pairs = len(unit) * (len(unit) - 1)
    # Sum over pairs of different tokens = square of the sum, less each token with itself.
    return (unit.sum(axis=0) ** 2 - (unit**2).sum(axis=0)) / pairs


def plane(vectors: np.ndarray, fresh: np.ndarray | None = None) -> Plane:
    """Principal components of vectors [S, H], S at least 2; `others` get a point behind theirs."""
    centre = vectors.mean(axis=0)
    _, sizes, axes = np.linalg.svd(vectors - centre, full_matrices=False)
    # The sign of an axis means nothing: the largest entry points up, so that it is always the same.
    axes = axes[:2] * np.sign(axes[:2][np.arange(2), np.abs(axes[:2]).argmax(axis=1)])[:, None]
    shares = sizes[:2] ** 2 / max(float((sizes**2).sum()), 1e-12)
    every = vectors if fresh is None else np.vstack([vectors, fresh])
    return Plane((every - centre) @ axes.T, (float(shares[0]), float(shares[1])))


def nearest_senses(
    vector: np.ndarray, vectors: np.ndarray, senses: np.ndarray
) -> tuple[SenseCosine, ...]:
    """Cosine of a z-scored vector [H] with the centroid of each sense, the nearest first."""
    cosines_by_sense = []
    for sense in np.unique(senses):
        sense_vectors = vectors[senses == sense]
        cosine = float(cosines(vector[None], sense_vectors.mean(axis=0)[None])[0, 0])
        cosines_by_sense.append(SenseCosine(int(sense), cosine, len(sense_vectors)))
    return tuple(sorted(cosines_by_sense, key=lambda sense: -sense.cosine))
