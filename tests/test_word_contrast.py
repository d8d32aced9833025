"""compare_sentence against each model alone and sums by hand."""

import math

import numpy as np
import pytest
from table_model import TableModel, letter_vocabulary

from fillmask_ui import compare_sentence, surprisal
from fillmask_ui.comparing.word_contrast import align_words, compared_words, summarize_comparison
from fillmask_ui.filling.words import TextWord

A, B = TableModel(seed=3), TableModel(seed=3, noise=0.5)
# Longer words are cut into letters, so that both see other tokens.
LETTERS = TableModel(seed=5, vocabulary=letter_vocabulary(), max_tokens=128)
SENTENCE = "the cat was walking, and it warmed the stone."


def check_sides(found, models, text):
    """Each side is what that model alone says, to the last digit."""
    first, second = (surprisal(model, text) for model in models)
    assert (found.first, found.second) == (first, second)
    assert [part for own in found.words for part in own.first] == [*first.words]
    assert [part for own in found.words for part in own.second] == [*second.words]


@pytest.mark.parametrize("other", [A, B, LETTERS])
def test_each_side_is_what_that_model_alone_says(other):
    found = compare_sentence(A, other, SENTENCE)
    check_sides(found, (A, other), SENTENCE)
    for own in found.words:
        assert own.difference_nats == own.other_nll_nats - own.nll_nats
    some = compared_words(found.alignment, found.first.words[:5], found.second.words[:3])
    assert some == found.words[:3]
    assert summarize_comparison(some).words == 3


def test_the_summary_against_sums_by_hand():
    found = compare_sentence(A, B, SENTENCE)
    summary, words = found.summary, found.words
    assert (summary.words, summary.characters) == (11, len(SENTENCE.replace(" ", "")))
    differences = [own.difference_nats for own in words]
    assert summary.mean_difference_nats == pytest.approx(np.mean(differences))
    assert summary.largest == words[int(np.argmax(np.abs(differences)))]
    assert summary.mean_word_nll_nats == pytest.approx(np.mean([own.nll_nats for own in words]))
    best = [(own.first[0].wanted[0].token, own.second[0].wanted[0].token) for own in words]
    assert [own.flipped for own in words] == [a != b for a, b in best]
    assert summary.flipped == sum(a != b for a, b in best) > 0
    assert summary.second == surprisal(B, SENTENCE).summary
    assert found.alignment.alike and found.note == ""


def word(text, start, number):
    return TextWord(text, start, start + len(text), (number,))


def test_words_that_the_tokenizers_cut_differently_are_joined():
    """`ab c` / `a bc` overlap in a chain; what only one of them sees is left out."""
    first = [word("ab", 0, 0), word("c", 2, 1), word("d", 4, 2), word("e", 6, 3)]
    second = [word("a", 0, 0), word("bc", 1, 1), word("e", 6, 2)]
    chain, last = align_words(first, second)
    assert (chain.start, chain.end, chain.first, chain.second) == (0, 3, range(2), range(2))
    assert (last.start, last.first, last.second) == (6, range(3, 4), range(2, 3))


def test_impossible_words_are_null_in_json_and_unknown_ones_not_summed():
    model = TableModel(seed=3)
    model.own[model.vocabulary.mask_id, model.vocabulary.ids["cat"]] = -np.inf
    assert compare_sentence(A, B, "☃").summary is None
    spelled = compare_sentence(A, B, "the ☃ ran")
    assert [own.unknown for own in spelled.words] == [False, True, False]
    total = spelled.words[0].nll_nats + spelled.words[2].nll_nats
    assert spelled.summary.total_nll_nats == pytest.approx(total)
    cat = compare_sentence(model, model, "the cat ran").words[1]
    assert math.isnan(cat.difference_nats)
    assert cat.to_dict()["difference_nats"] is None
    assert compare_sentence(model, A, "the cat ran").summary.largest.text == "cat"
