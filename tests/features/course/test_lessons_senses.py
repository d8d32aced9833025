"""Vectors of words: the arithmetic against scipy, the course's words against the shipped models."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial import distance
from tiny_models import reference_model

from fillmask_ui.features.course.word_vectors import (
    LAYERS,
    TWO_SENSES,
    Background,
    SenseSentence,
    background,
    cosine_parts,
    cosines,
    nearest_senses,
    plane,
    read_sentences,
    token_states,
    word_vectors,
)
from fillmask_ui.models import load_model
from fillmask_ui.texts import TextSource, open_texts


@pytest.fixture(scope="module")
def known(shipped) -> Background:
    with open_texts(TextSource(samples=10)) as texts:
        return background(shipped, (example.text for example in texts))


@pytest.fixture
def vectors() -> np.ndarray:
    """With one large dimension, as some models have it; float64 [30, 6]."""
    values = np.random.default_rng(2).normal(size=(30, 6))
    values[:, 4] += 7
    return values


@pytest.mark.quick
def test_cosines_are_those_of_scipy(vectors):
    expected = 1 - distance.cdist(vectors[:4], vectors[4:9], "cosine")
    np.testing.assert_allclose(cosines(vectors[:4], vectors[4:9]), expected)


@pytest.mark.quick
def test_the_mean_cosine_is_split_into_its_dimensions(vectors):
    parts = cosine_parts(vectors)
    pairs = list(combinations(range(30), 2))
    expected = np.mean([1 - distance.cosine(vectors[a], vectors[b]) for a, b in pairs])
    assert parts.sum() == pytest.approx(expected)
    assert parts.argmax() == 4
    assert parts[4] > 0.9 * expected
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert parts[4] == pytest.approx(np.mean([unit[a, 4] * unit[b, 4] for a, b in pairs]))


@pytest.mark.quick
def test_principal_components_are_eigenvectors_of_the_covariance(vectors):
    components = plane(vectors)
    sizes, axes = np.linalg.eigh(np.cov(vectors.T))
    assert components.shares == pytest.approx(tuple(sizes[::-1][:2] / sizes.sum()))
    expected = (vectors - vectors.mean(axis=0)) @ axes[:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(components.points), np.abs(expected), atol=1e-9)
    again = plane(vectors, vectors[:3]).points
    np.testing.assert_allclose(again, [*components.points, *components.points[:3]])
    np.testing.assert_allclose(components.points.var(axis=0, ddof=1), sizes[::-1][:2])


@pytest.mark.quick
def test_the_nearest_sense_by_hand():
    vectors = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    near, far = nearest_senses(np.array([3.0, 4.0]), vectors, np.array([0, 0, 1]))
    assert (near.sense, near.cosine, near.sentences) == (1, pytest.approx(0.8), 1)
    assert (far.sense, far.cosine, far.sentences) == (0, pytest.approx(0.6), 2)


def test_z_scores_are_those_of_scipy(shipped, known):
    vectors = word_vectors(shipped, read_sentences(TWO_SENSES[0].lines), "bank", known)
    states = vectors.background.vectors.astype(np.float64)
    assert len(states) > len(known.vectors)
    np.testing.assert_allclose(
        vectors.z_scored(vectors.vectors), stats.zmap(vectors.vectors, states), atol=1e-9
    )


@pytest.mark.parametrize("example", TWO_SENSES, ids=lambda example: example.word)
def test_the_words_of_the_course_make_their_point(shipped, known, example):
    """Sentences of one sense are more alike; a new one is nearest to its own sense."""
    word = word_vectors(shipped, read_sentences(example.lines), example.word, known)
    scored = word.z_scored(word.vectors)
    for vectors in (word.vectors, scored):
        similarity = cosines(vectors, vectors)
        pairs = list(combinations(range(len(vectors)), 2))
        alike = [similarity[p] for p in pairs if word.senses[p[0]] == word.senses[p[1]]]
        different = [similarity[p] for p in pairs if word.senses[p[0]] != word.senses[p[1]]]
        assert np.mean(alike) > np.mean(different) + 0.15
        assert min(alike) > max(different)
    for sense, text in enumerate(example.fresh):
        new = word_vectors(shipped, [SenseSentence(text, -1)], example.word, known)
        near, far = nearest_senses(word.z_scored(new.vectors)[0], scored, word.senses)
        assert near.sense == sense
        assert near.cosine > far.cosine + 0.1


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_any_tokenizer_and_architecture(tiny_models, family):
    """Byte-level, Unigram and WordPiece; running text is longer than these models read."""
    model = load_model(tiny_models.folder(family))
    with open_texts(TextSource(samples=2)) as texts:
        known = background(model, (use.text for use in texts))
    assert known.vectors.shape[1] == 32
    vectors = word_vectors(model, read_sentences("The café is cold.\n\nA café!"), "Café", known)
    assert [use.encoding.text[use.start : use.end] for use in vectors.uses] == ["café"] * 2
    similarity = cosines(*[vectors.z_scored(vectors.vectors)] * 2)
    assert -1 <= similarity[0, 1] < 0.999


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_layers_are_the_hidden_states_of_transformers(runtime, loaded, tiny_models):
    """The mean of the last four among them; the tiny model has fewer than four."""
    model = loaded("bert", runtime)
    encoding = model.vocabulary.encode("The café is cold.")
    with torch.no_grad():
        ids = torch.tensor([encoding.ids])
        output = reference_model(tiny_models.folder("bert"))(ids, output_hidden_states=True)
    embeddings, *layers = (state[0].numpy() for state in output.hidden_states)
    expected = {
        "last": layers[-1],
        "four": np.mean(layers[-4:], axis=0),
        "middle": layers[(len(layers) - 1) // 2],
        "embeddings": embeddings,
    }
    assert expected.keys() == LAYERS.keys()
    for layer, states in expected.items():
        (found,) = token_states(model, [encoding], special=True, layer=layer)
        np.testing.assert_allclose(found, states, atol=1e-4)


def test_the_embeddings_hardly_know_the_sentence(shipped):
    """What the chapter says of static vectors: context comes in above them."""
    sentences = read_sentences(TWO_SENSES[0].lines)
    means = {}
    for layer in ("embeddings", "last"):
        vectors = word_vectors(shipped, sentences, TWO_SENSES[0].word, layer=layer).vectors
        means[layer] = cosines(vectors, vectors)[np.triu_indices(len(vectors), 1)].mean()
    assert means["embeddings"] > means["last"] + 0.2
