"""The example sentences make their points with the embedded model as it ships."""

import pytest

from fillmask_ui import fill, load_model
from fillmask_ui.filling import score_candidates
from fillmask_ui.filling.words import text_words
from fillmask_ui.ui.explore.examples import (
    EXAMPLE_SETS,
    EXAMPLES,
    MASK,
    Above,
    Among,
    First,
    Likelier,
    MostSurprising,
    SubTokens,
)


@pytest.fixture(scope="module", params=["embedded", "embedded:int8"])
def model(request):
    return load_model(request.param)


def first_words(model, text, k, mask=0):
    candidates = fill(model, text, top_k=k, joint=0).masks[mask].candidates
    return [candidate.word for candidate in candidates]


def scored(model, text, word):
    """A word at the first mask."""
    return score_candidates(model, text, [word])[0][0]


def losses(model, text):
    """Of every word, hidden alone."""
    words = text_words(model.vocabulary.encode(text), model.vocabulary)
    hidden = {word.text: text[: word.start] + MASK + text[word.end :] for word in words}
    return {word: scored(model, masked, word).nll_nats for word, masked in hidden.items()}


def holds(claim, example, model):
    texts = (example.text, example.other)
    match claim:
        case First(word, sentence, mask):
            return first_words(model, texts[sentence], 1, mask) == [word]
        case Among(words, k):
            return set(words) <= set(first_words(model, example.text, k))
        case Above(word, lesser, sentence, times):
            more, less = (scored(model, texts[sentence], w).probability for w in (word, lesser))
            return more >= times * less
        case Likelier(word, times, sentence):
            here, there = (scored(model, text, word).probability for text in texts)
            return (here >= times * there) if sentence == 0 else (there >= times * here)
        case SubTokens(word, count, probability):
            found = scored(model, example.text, word)
            return len(found.parts) == count and found.probability >= probability
        case MostSurprising(word):
            found = losses(model, example.text)
            return max(found, key=found.get) == word
    raise AssertionError(claim)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_model_makes_the_point_of_every_example(example, model):
    assert example.claims
    assert [claim for claim in example.claims if not holds(claim, example, model)] == []


def test_an_example_is_complete_and_stands_once():
    for example in EXAMPLES:
        assert example.question.endswith("?") or "." in example.question, example
        assert len(example.question) <= 80, example
        assert not example.hidden or len(example.hidden) == example.text.count(MASK), example
        assert not example.other or example.other.count(MASK) == 1, example
    assert len({example.text for example in EXAMPLES}) == len(EXAMPLES)
    assert len({group.name for group in EXAMPLE_SETS}) == len(EXAMPLE_SETS)
    assert all(4 <= len(group.examples) <= 5 for group in EXAMPLE_SETS)


def test_the_first_example_is_one_mask_without_anything_else():
    """It is the first screen of a first visit."""
    first = EXAMPLES[0]
    assert first.text.count(MASK) == 1
    state = {"text": first.text, "hidden": [None], "words": "", "other": "", "selected": 0}
    assert first.state() == state
