"""Figures of the chapter on words with two meanings."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fillmask_ui.lessons.word_vectors import (
    TWO_SENSES,
    Background,
    Sentence,
    WordVectors,
    background,
    cosines,
    find_word,
    mean_cosine,
    nearest_senses,
    plane,
    read_sentences,
    word_vectors,
)
from fillmask_ui.show.drawing import Scale
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown, piece

# Of the embedded texts, beside the reader's own: some thousand tokens in less than a second.
_BACKGROUND_TEXTS = 40
_WIDTH, _HEIGHT, _MARGIN = 460, 300, 26


def _background(asked: Asked) -> Background:
    def work(report: Report) -> Background:
        with open_texts(TextSource(samples=_BACKGROUND_TEXTS)) as texts:
            said = "Reading some texts to compare with…"
            return background(
                asked.model, (own.text for own in texts), lambda part: report(Waiting(said, part))
            )

    return asked.slowly(("token vectors",), work)


@dataclass(frozen=True)
class _Form:
    """What the fields hold that the figures share."""

    word: str
    sentences: tuple[Sentence, ...]
    set: Mapping[str, str]  # of an example that was asked for

    def vectors(self, asked: Asked, known: Background | None = None) -> WordVectors:
        return word_vectors(asked.model, self.sentences, self.word, known)


def _form(asked: Asked) -> _Form:
    for example in TWO_SENSES:
        if asked.pressed(f"take_{example.word}"):
            taken = {"word": example.word, "sentences": example.lines, "fresh": example.fresh[1]}
            return _Form(example.word, read_sentences(example.lines), taken)
    plain = TWO_SENSES[0]
    word = asked.text("word", plain.word, 50).strip()
    return _Form(word, read_sentences(asked.text("sentences", plain.lines)), {})


def show_cosines(asked: Asked) -> Shown:
    """The cosines of a word's vectors."""
    form = _form(asked)
    vectors = form.vectors(asked)
    similarity = cosines(vectors.vectors, vectors.vectors)
    caption = f"Cosines of “{form.word}” in each two sentences"
    means = _mean_cosines(similarity, vectors.senses)
    summary = piece("word_cosines", "summary", **means)
    return Shown(
        {"matrix": _matrix(vectors, similarity, caption, "word_cosines"), "summary": summary},
        form.set,
    )


def _matrix(
    vectors: WordVectors, similarity: np.ndarray, caption: str, figure: str = "rogue_dimensions"
) -> str:
    values = {"similarity": similarity.tolist(), "senses": vectors.senses.tolist()}
    return piece(figure, "matrix", caption=caption, uses=vectors.uses, **values)


def _mean_cosines(similarity: np.ndarray, senses: np.ndarray) -> dict[str, Any]:
    """Mean cosine of two sentences with one sense, and with different ones; None without any."""
    pairs = list(combinations(range(len(senses)), 2))
    same = [similarity[pair] for pair in pairs if senses[pair[0]] == senses[pair[1]]]
    other = [similarity[pair] for pair in pairs if senses[pair[0]] != senses[pair[1]]]
    return {
        name: float(np.mean(own)) if own else None
        for name, own in (("same", same), ("other", other))
    }


def show_rogue(asked: Asked) -> Shown:
    """Which dimensions the mean cosine comes from, and all cosines after z-scoring.

    The reader may push one dimension of all vectors: raw cosines rise, z-scored ones stay.
    """
    known, form = _background(asked), _form(asked)
    found = form.vectors(asked, known)
    texts = found.background.vectors
    pushed = asked.number("push", 0, 3, 0)
    index = mean_cosine(texts).dimensions[0].index
    push = np.zeros(texts.shape[1], dtype=np.float32)
    push[index] = pushed * float(np.linalg.norm(texts, axis=1).mean())
    vectors = WordVectors(
        found.uses, found.vectors + push, Background(texts + push, found.background.texts)
    )
    everything = mean_cosine(vectors.background.vectors)
    scored_texts = vectors.z_scored(vectors.background.vectors)
    scored_vectors = vectors.z_scored(vectors.vectors)
    raw = cosines(vectors.vectors, vectors.vectors)
    scored = cosines(scored_vectors, scored_vectors)
    contrasts = [
        {"name": name, "tokens": tokens.cosine, **_mean_cosines(similarity, vectors.senses)}
        for name, similarity, tokens in (
            ("as they are", raw, everything),
            ("z-scored", scored, mean_cosine(scored_texts)),
        )
    ]
    values = {
        "mean_cosine": everything,
        "background": vectors.background,
        "pushed": pushed,
        "index": index,
    }
    pieces = {
        "dimensions": piece("rogue_dimensions", "dimensions", **values),
        "note": piece("rogue_dimensions", "note", **values),
        "contrast": piece("rogue_dimensions", "contrast", contrasts=contrasts),
        "raw": _matrix(vectors, raw, "Cosines of the vectors as they are"),
        "scored": _matrix(vectors, scored, "Cosines of the z-scored vectors"),
    }
    return Shown(pieces, form.set)


def show_map(asked: Asked) -> Shown:
    """The z-scored vectors in the plane in which they differ most."""
    known, form = _background(asked), _form(asked)
    return Shown({"map": _map(form.vectors(asked, known), form.word)}, form.set)


def _map(vectors: WordVectors, word: str, fresh: np.ndarray | None = None) -> str:
    found = plane(vectors.z_scored(vectors.vectors))
    places = found.points if fresh is None else np.vstack([found.points, found.place(fresh)])
    across, up = _axes(places)
    return piece(
        "sense_map",
        "map",
        places=places.tolist(),
        senses=[*vectors.senses.tolist(), -1],  # -1: the sense is asked for
        across=across,
        up=up,
        uses=vectors.uses if fresh is None else (),
        shares=found.shares,
        word=word,
        width=_WIDTH,
        height=_HEIGHT,
    )


def _axes(places: np.ndarray) -> tuple[Scale, Scale]:
    """Scales of a map on which distances are the same in both directions."""
    low, high = places.min(axis=0), places.max(axis=0)
    room = np.array([_WIDTH, _HEIGHT]) - 2 * _MARGIN
    half = room * max(float(((high - low) / room).max()), 1e-9) / 2
    (left, bottom), (right, top) = (low + high) / 2 - half, (low + high) / 2 + half
    return (
        Scale(float(left), float(right), _MARGIN, _WIDTH - _MARGIN),
        Scale(float(bottom), float(top), _HEIGHT - _MARGIN, _MARGIN),
    )


def show_nearest(asked: Asked) -> Shown:
    """The sense whose centroid is nearest to the word in a new sentence."""
    known, form = _background(asked), _form(asked)
    text = form.set.get("fresh") or asked.text("fresh", TWO_SENSES[0].fresh[1], 500).strip()
    vectors = form.vectors(asked, known)
    # Its own tokens are not of the background, so that nothing else changes while one types.
    use = find_word(asked.model, Sentence(text, -1), form.word)
    own = word_vectors(asked.model, [use.sentence], form.word, known).vectors
    fresh = vectors.z_scored(own)  # [1, H]
    found = nearest_senses(fresh[0], vectors.z_scored(vectors.vectors), vectors.senses)
    result = piece("nearest_sense", "nearest", found=found, use=use)
    return Shown({"nearest": result, "map": _map(vectors, form.word, fresh)}, form.set)


_CONTROLS = {"examples": TWO_SENSES}
FIGURES: Mapping[str, Figure] = {
    "word_cosines": Figure("One word in several sentences", show_cosines, _CONTROLS),
    "rogue_dimensions": Figure("What makes cosines large", show_rogue, _CONTROLS),
    "sense_map": Figure("A map of the vectors", show_map, _CONTROLS),
    "nearest_sense": Figure("The nearest sense", show_nearest, _CONTROLS),
}
