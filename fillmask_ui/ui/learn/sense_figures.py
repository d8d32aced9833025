"""Figures of the chapter on words with two meanings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fillmask_ui.lessons.word_vectors import (
    TWO_SENSES,
    Background,
    Sentence,
    WordVectors,
    alikeness,
    background,
    cosines,
    find_word,
    nearest_senses,
    plane,
    read_sentences,
    word_vectors,
)
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.background import Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown

# Of the embedded texts, beside the reader's own: some thousand tokens in less than a second.
_BACKGROUND_TEXTS = 40
_SIGNS = "●■▲◆"
_WIDTH, _HEIGHT, _MARGIN = 460, 300, 26


@dataclass(frozen=True)
class Cell:
    """One similarity of a matrix."""

    cosine: float
    shade: float  # how dark, in [0, 1]
    same: bool  # whether both sentences have one sense


@dataclass(frozen=True)
class Point:
    """One sentence on the map."""

    x: float
    y: float
    label: str
    sense: int  # -1 for a sentence whose sense is asked for


@dataclass(frozen=True)
class Contrast:
    """Mean cosines of one kind of vectors."""

    name: str
    same: float | None  # of two sentences with one sense; None where there are none
    other: float | None  # of two sentences with different senses
    tokens: float  # of any two tokens of the background


def _background(asked: Asked) -> Background | Waiting:
    def work(report: Report) -> Background:
        with open_texts(TextSource(samples=_BACKGROUND_TEXTS)) as texts:
            said = "Reading some texts to compare with…"
            return background(
                asked.model, (own.text for own in texts), lambda part: report(Waiting(said, part))
            )

    state = asked.session.slowly(asked.model, ("token vectors",), work)
    return state if isinstance(state, Waiting) else state.result


@dataclass(frozen=True)
class _Form:
    """What the fields hold that the figures share."""

    word: str
    sentences: tuple[Sentence, ...]
    set: Mapping[str, str]  # of an example that was asked for


def _form(asked: Asked) -> _Form:
    for example in TWO_SENSES:
        if asked.pressed(f"take_{example.word}"):
            taken = {"word": example.word, "sentences": example.lines, "fresh": example.fresh[1]}
            return _Form(example.word, read_sentences(example.lines), taken)
    plain = TWO_SENSES[0]
    word = asked.text("word", plain.word, 50).strip()
    return _Form(word, read_sentences(asked.text("sentences", plain.lines)), {})


def _matrix(
    vectors: WordVectors, similarity: np.ndarray, caption: str, *, listed: bool = False
) -> str:
    senses = vectors.senses
    cells = [
        [
            Cell(float(value), min(max(float(value), 0.0), 1.0) ** 3, bool(one == other))
            for value, other in zip(row, senses, strict=True)
        ]
        for row, one in zip(similarity, senses, strict=True)
    ]
    values = {"usages": vectors.usages if listed else (), "caption": caption, "signs": _SIGNS}
    return render("page/learn/senses_matrix.html", cells=cells, senses=senses.tolist(), **values)


def show_cosines(asked: Asked) -> Shown:
    """The cosines of a word's vectors as they are."""
    form = _form(asked)
    vectors = word_vectors(asked.model, form.sentences, form.word)
    similarity = cosines(vectors.vectors, vectors.vectors)
    caption = f"Cosines of \u201c{form.word}\u201d in each two sentences"
    contrast = _contrast("", similarity, vectors.senses, 0.0)
    pieces = {
        "matrix": _matrix(vectors, similarity, caption, listed=True),
        "summary": render("page/learn/senses_summary.html", contrast=contrast),
    }
    return Shown(pieces, form.set)


def _contrast(
    name: str, similarity: np.ndarray, senses: Sequence[int] | np.ndarray, tokens: float
) -> Contrast:
    pairs = list(combinations(range(len(senses)), 2))
    same = [float(similarity[one, two]) for one, two in pairs if senses[one] == senses[two]]
    other = [float(similarity[one, two]) for one, two in pairs if senses[one] != senses[two]]
    means = [float(np.mean(own)) if own else None for own in (same, other)]
    return Contrast(name, means[0], means[1], tokens)


def show_rogue(asked: Asked) -> Shown | Waiting:
    """Which dimensions the mean cosine comes from, and all cosines after z-scoring.

    The reader may push one dimension of all vectors: raw cosines rise, z-scored ones stay.
    """
    known = _background(asked)
    if isinstance(known, Waiting):
        return known
    form = _form(asked)
    found = word_vectors(asked.model, form.sentences, form.word, known)
    pushed = asked.number("push", 0, 3, 0)
    index = alikeness(found.background.vectors).dimensions[0].index
    length = float(np.linalg.norm(found.background.vectors, axis=1).mean())
    push = np.zeros(found.vectors.shape[1], dtype=np.float32)
    push[index] = pushed * length
    vectors = WordVectors(
        found.usages,
        found.vectors + push,
        Background(found.background.vectors + push, known.texts),
    )
    raw = cosines(vectors.vectors, vectors.vectors)
    scored_vectors = vectors.z_scored(vectors.vectors)
    scored = cosines(scored_vectors, scored_vectors)
    everything = alikeness(vectors.background.vectors)
    scored_everything = alikeness(vectors.z_scored(vectors.background.vectors))
    contrasts = [
        _contrast("as they are", raw, vectors.senses, everything.mean_cosine),
        _contrast("z-scored", scored, vectors.senses, scored_everything.mean_cosine),
    ]
    values = {
        "alikeness": everything,
        "background": vectors.background,
        "pushed": pushed,
        "index": index,
        "size": vectors.vectors.shape[1],
    }
    pieces = {
        "dimensions": render("page/learn/rogue_dimensions_bars.html", **values),
        "note": render("page/learn/rogue_dimensions_note.html", **values),
        "contrast": render("page/learn/senses_contrast.html", contrasts=contrasts),
        "raw": _matrix(vectors, raw, "Cosines of the vectors as they are"),
        "scored": _matrix(vectors, scored, "Cosines of the z-scored vectors"),
    }
    return Shown(pieces, form.set)


def show_map(asked: Asked) -> Shown | Waiting:
    """The z-scored vectors in the plane in which they differ most."""
    known = _background(asked)
    if isinstance(known, Waiting):
        return known
    form = _form(asked)
    vectors = word_vectors(asked.model, form.sentences, form.word, known)
    return Shown({"map": _map(vectors, form.word)}, form.set)


def _map(vectors: WordVectors, word: str, fresh: np.ndarray | None = None) -> str:
    found = plane(vectors.z_scored(vectors.vectors))
    places = found.points if fresh is None else np.vstack([found.points, found.place(fresh)])
    across, up = _axes(places)
    senses = [*vectors.senses.tolist(), -1]
    labels = [*map(str, range(1, len(vectors.usages) + 1)), "new"]
    points = [
        Point(across(float(x)), up(float(y)), labels[i], senses[i])
        for i, (x, y) in enumerate(places)
    ]
    return render(
        "page/learn/senses_map.html",
        points=points,
        usages=vectors.usages if fresh is None else (),
        shares=found.shares,
        word=word,
        signs=_SIGNS,
        width=_WIDTH,
        height=_HEIGHT,
        coordinates=places.tolist(),
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


def show_nearest(asked: Asked) -> Shown | Waiting:
    """The sense whose centroid is nearest to the word in a new sentence."""
    known = _background(asked)
    if isinstance(known, Waiting):
        return known
    form = _form(asked)
    text = form.set.get("fresh") or asked.text("fresh", TWO_SENSES[0].fresh[1], 500).strip()
    vectors = word_vectors(asked.model, form.sentences, form.word, known)
    # Its own tokens are not of the background, so that nothing else changes while one types.
    usage = find_word(asked.model, Sentence(text, -1), form.word)
    own = word_vectors(asked.model, [usage.sentence], form.word, known).vectors
    fresh = vectors.z_scored(own)  # [1, H]
    found = nearest_senses(fresh[0], vectors.z_scored(vectors.vectors), vectors.senses)
    result = render(
        "page/learn/nearest_sense_result.html", found=found, usage=usage, signs=_SIGNS, form=form
    )
    return Shown({"nearest": result, "map": _map(vectors, form.word, fresh)}, form.set)


_CONTROLS = {"examples": TWO_SENSES}
FIGURES: Mapping[str, Figure] = {
    "word_cosines": Figure("One word in several sentences", show_cosines, _CONTROLS),
    "rogue_dimensions": Figure("What makes cosines large", show_rogue, _CONTROLS),
    "sense_map": Figure("A map of the vectors", show_map, _CONTROLS),
    "nearest_sense": Figure("The nearest sense", show_nearest, _CONTROLS),
}
