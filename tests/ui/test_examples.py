"""The example sentences make their points with the embedded model as it ships."""

import pytest

from fillmask_ui import fill
from fillmask_ui.filling import score_candidates
from fillmask_ui.text_words import text_words
from fillmask_ui.ui.explore.examples import EXAMPLE_SETS, EXAMPLES, MASK


def first_words(model, text, k, mask=0):
    candidates = fill(model, text, top_k=k, joint=0).masks[mask].candidates
    return [candidate.word for candidate in candidates]


def scored(model, text, word):
    """A word at the first mask."""
    return score_candidates(model, text, [word])[0][0]


def losses(model, text):
    """Of every word, hidden alone."""
    words = text_words(model.vocabulary.encode(text))
    hidden = {word.text: text[: word.start] + MASK + text[word.end :] for word in words}
    return {word: scored(model, masked, word).nll_nats for word, masked in hidden.items()}


def holds(claim, example, model):
    """A claim of the file: its kind, with its fields; `sentence` 1 is the second one."""
    ((kind, terms),) = claim.items()
    texts, word = (example.text, example.other), terms.get("word")
    text, second_text = texts if terms.get("sentence", 0) == 0 else texts[::-1]
    match kind:
        case "First":  # the model's first word for a mask
            return first_words(model, text, 1, terms.get("mask", 0)) == [word]
        case "Among":  # all these words are among the first `k`
            return set(terms["words"]) <= set(first_words(model, text, terms["k"]))
        case "Above":  # at least `times` the probability of another word
            more, less = (scored(model, text, w).probability for w in (word, terms["lesser"]))
            return more >= terms.get("times", 1.5) * less
        case "Likelier":  # at least `times` the probability that it has in the other sentence
            first_probability, second_probability = (
                scored(model, each, word).probability for each in (text, second_text)
            )
            return first_probability >= terms["times"] * second_probability
        case "SubTokens":  # so many, and at least this probability as a whole
            result = scored(model, text, word)
            return (
                len(result.parts) == terms["count"] and result.probability >= terms["probability"]
            )
        case "MostSurprising":  # the largest loss in a sentence without masks
            result = losses(model, text)
            return max(result, key=result.get) == word
    raise AssertionError(claim)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_model_makes_the_point_of_every_example(example, shipped):
    assert example.claims
    assert [claim for claim in example.claims if not holds(claim, example, shipped)] == []


def test_an_example_is_complete_and_stands_once():
    for example in EXAMPLES:
        assert example.question.endswith("?") or "." in example.question, example
        assert len(example.question) <= 80, example
        assert not example.hidden or len(example.hidden) == example.text.count(MASK), example
        assert not example.other or example.other.count(MASK) == 1, example
    assert len({example.text for example in EXAMPLES}) == len(EXAMPLES)
    assert len({group.name for group in EXAMPLE_SETS}) == len(EXAMPLE_SETS)
    assert all(4 <= len(group.examples) <= 5 for group in EXAMPLE_SETS)
