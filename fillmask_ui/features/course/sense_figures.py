"""Figures of the chapter on words with two meanings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fillmask_ui.features.course.word_vectors as space
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.filling import layers
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.layer_grid import LayerGrid
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.figure import Control, FigureInputs, around, control
from fillmask_ui.ui.job import Report, Waiting

# Of the embedded texts, beside the reader's own: some thousand tokens in less than a second.
_BACKGROUND_TEXTS = 40
_WIDTH, _HEIGHT, _MARGIN = 460, 300, 26


def _background(request: FigureInputs, layer: str = "last") -> space.Background:
    def work(report: Report) -> space.Background:
        with open_texts(TextSource(samples=_BACKGROUND_TEXTS)) as texts:
            message = "Reading texts for comparison…"
            return space.background(
                request.model,
                (example.text for example in texts),
                lambda part: report(Waiting(message, part)),
                layer,
            )

    return request.slowly(("token vectors", layer), work)


_LAYER = control("choice", "layer", "Layer of the vectors", space.LAYERS, "last")


def _layer(request: FigureInputs) -> str:
    return request["layer"] if request["layer"] in space.LAYERS else "last"


_FRESH = space.TWO_SENSES[0].fresh[1]


def _controls(*beside: Control, fresh: bool = False) -> Sequence[Control]:
    """A word of two senses and its sentences; what is given stands beside them."""
    words = (control("button", f"take_{e.word}", e.word) for e in space.TWO_SENSES)
    first, hint = space.TWO_SENSES[0], "one per line; a blank line between the senses"
    typed = (
        control("text", "word", "Word", first.word, carried=True, short=True),
        control("text", "sentences", "Sentences", first.lines, 7, hint, carried=True),
    )
    carried = () if fresh else (control("hidden", "fresh", value=_FRESH, carried=True),)
    parts = (around("group", "Words to try", *words), *beside, around("fold", "Your own", *typed))
    return *parts, *carried


@dataclass(frozen=True)
class _WordInputs:
    """What the controls ask about."""

    word: str
    sentences: Sequence[space.SenseSentence]
    fresh: str  # the new sentence
    preset: Mapping[str, str] = field(default_factory=dict)  # new values of the controls


def _word_inputs(request: FigureInputs) -> _WordInputs:
    """What was typed, or the example whose button was pressed."""
    for example in space.TWO_SENSES:
        if request.pressed(f"take_{example.word}"):
            fresh, sentences = example.fresh[1], space.read_sentences(example.lines)
            preset = {"word": example.word, "sentences": example.lines, "fresh": fresh}
            return _WordInputs(example.word, sentences, fresh, preset)
    word, fresh = request["word"][:50].strip(), request["fresh"][:500].strip()
    return _WordInputs(word, space.read_sentences(request["sentences"]), fresh)


@figure("word_cosines", "One word in several sentences", *_controls(_LAYER))
def _show_cosines(request: FigureInputs) -> Any:
    inputs = _word_inputs(request)
    vectors = space.word_vectors(
        request.model, inputs.sentences, inputs.word, layer=_layer(request)
    )
    cosines = _cosines(vectors.vectors, vectors.senses)
    return {"vectors": vectors, "word": inputs.word, **cosines}, inputs.preset


def _cosines(vectors: np.ndarray, senses: np.ndarray) -> dict[str, Any]:
    """Of all pairs [N, N]; the means for one sense and for different ones, None without any."""
    similarity, alike = space.cosines(vectors, vectors), senses[:, None] == senses
    pairs = {"same": similarity[np.triu(alike, 1)], "other": similarity[np.triu(~alike, 1)]}
    means = {name: float(part.mean()) if part.size else None for name, part in pairs.items()}
    return {"similarity": similarity.tolist(), **means}


_PUSH = control("slider", "push", "Push the first by", 0, 3, 0.1, 0, " × the length")


@figure("rogue_dimensions", "What makes cosines large", *_controls(_PUSH))
def _show_rogue(request: FigureInputs) -> Any:
    """Which dimensions the mean cosine comes from, and all cosines after z-scoring.

    The reader may push one dimension of all vectors: raw cosines rise, z-scored ones stay.
    """
    tokens, inputs = _background(request), _word_inputs(request)
    word_vectors = space.word_vectors(request.model, inputs.sentences, inputs.word, tokens)
    texts = word_vectors.background.vectors
    pushed, index = request["push"], int(space.cosine_parts(texts).argmax())
    push = np.zeros(texts.shape[1], dtype=np.float32)
    push[index] = pushed * float(np.linalg.norm(texts, axis=1).mean())
    background = space.Background(texts + push, word_vectors.background.texts)
    vectors = space.WordVectors(word_vectors.uses, word_vectors.vectors + push, background)
    parts = space.cosine_parts(background.vectors)
    most = np.argsort(-parts)[:3]
    largest = background.vectors[:, most[0]]
    return {
        # Of the mean cosine, by dimension.
        "shares": {int(i): float(parts[i] / parts.sum()) for i in most},
        "mean": float(largest.mean()),
        "deviation": float(largest.std()),
        "background": background,
        "pushed": pushed,
        "index": index,
        "senses": vectors.senses.tolist(),
        "contrasts": [
            {
                "tokens": float(space.cosine_parts(scale(background.vectors)).sum()),
                **_cosines(scale(vectors.vectors), vectors.senses),
            }
            for scale in (np.asarray, vectors.z_scored)
        ],
    }, inputs.preset


@figure("sense_map", "A map of the vectors", *_controls())
def _show_map(request: FigureInputs) -> Any:
    tokens, inputs = _background(request), _word_inputs(request)
    vectors = space.word_vectors(request.model, inputs.sentences, inputs.word, tokens)
    return _map(vectors, inputs.word) | {"uses": vectors.uses}, inputs.preset


def _map(vectors: space.WordVectors, word: str, fresh: np.ndarray | None = None) -> dict[str, Any]:
    plane = space.plane(vectors.z_scored(vectors.vectors), fresh)
    across, up = _axes(plane.points)
    return {
        "places": plane.points.tolist(),
        "senses": [*vectors.senses.tolist(), -1],  # -1: the sense is asked for
        "across": across,
        "up": up,
        "shares": plane.shares,
        "word": word,
    }


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


_NEW = control("text", "fresh", "A new sentence", _FRESH, carried=True)


@figure("nearest_sense", "The nearest sense", *_controls(_LAYER, _NEW, fresh=True))
def _show_nearest(request: FigureInputs) -> Any:
    layer, inputs = _layer(request), _word_inputs(request)
    tokens = _background(request, layer)
    vectors = space.word_vectors(request.model, inputs.sentences, inputs.word, tokens, layer)
    # Its own tokens are not of the background, so that nothing else changes while one types.
    use = space.find_word(request.model, space.SenseSentence(inputs.fresh, -1), inputs.word)
    raw = space.word_vectors(request.model, [use.sentence], inputs.word, tokens, layer).vectors
    fresh = vectors.z_scored(raw)  # [1, H]
    nearest = space.nearest_senses(fresh[0], vectors.z_scored(vectors.vectors), vectors.senses)
    return _map(vectors, inputs.word, fresh) | {"ranking": nearest, "use": use}, inputs.preset


@figure(
    "layer_lens",
    "What each layer would predict",
    control("text", "masked", "A sentence with a mask", "He went to the [MASK] to borrow money."),
    control("text", "hidden", "Hidden word", "bank", short=True),
)
def _show_layers(request: FigureInputs) -> Any:
    text, word = request["masked"].strip(), request["hidden"][:50].strip()
    predictions = request.slowly(
        ("layers", text, word), lambda _: layers(request.model, text, mask=0, word=word)
    )
    return {"grid": LayerGrid.of(predictions, request.model.vocabulary)}
