"""Two models at a mask or along a sentence, two sentences: against scipy and each model alone."""

import json
import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from table_model import TableModel, letter_vocabulary

from fillmask_ui import compare, compare_sentence, fill, pair_masks, score_candidates, surprisal
from fillmask_ui.comparing.word_contrast import align_words, compared_words, summarize_comparison
from fillmask_ui.text_words import TextWord

FIRST, SECOND = TableModel(seed=3), TableModel(seed=3, noise=0.8)
OTHER = TableModel(seed=5, vocabulary=letter_vocabulary())
TEXT = "the [MASK] and the [MASK] ran ."


class Impossible(TableModel):
    """Gives no probability to some tokens."""

    def __init__(self, *token_ids):
        super().__init__(seed=3)
        self.own[:, list(token_ids)] = -np.inf


def whole(model, text=TEXT):
    """Per mask: token id to its candidate, of the whole vocabulary."""
    return [
        {candidate.token_id: candidate for candidate in mask.candidates}
        for mask in fill(model, text, top_k=None, joint=0).masks
    ]


def distribution(candidates):
    return np.array([candidates[token_id].probability for token_id in sorted(candidates)])


def numbers(row, role=""):
    """What a record, or the `role` of a row, has of a word."""
    names = ("probability", "nll_nats", "rank")
    return tuple(getattr(row, role + name) for name in names)


def test_every_number_is_that_of_either_model_alone():
    options = {"top_k": 4, "candidates": ["mat", "walking"]}
    comparison = compare(FIRST, SECOND, TEXT, **options)
    alone = fill(FIRST, TEXT, **options), fill(SECOND, TEXT, **options)
    assert (comparison.reference, comparison.candidate) == alone
    for number, mask in enumerate(comparison.masks):
        reference_tokens, candidate_tokens = (whole(model)[number] for model in (FIRST, SECOND))
        first, second = (side.masks[number] for side in alone)
        assert (mask.reference_position, mask.candidate_position) == (
            first.position,
            second.position,
        )
        assert (mask.reference_entropy_nats, mask.candidate_entropy_nats) == (
            first.entropy_nats,
            second.entropy_nats,
        )
        for row in mask.candidates:
            if row.word == "walking":
                a, b = first.scored[1], second.scored[1]
                assert row.reference_token_id is None
                assert None in (row.reference_rank, row.candidate_rank)
            else:
                a, b = (
                    reference_tokens[row.reference_token_id],
                    candidate_tokens[row.reference_token_id],
                )
                listed = row.reference_listed, row.candidate_listed
                assert listed == (a.rank <= 4, b.rank <= 4)
                assert (row.reference_rank, row.candidate_rank) == (a.rank, b.rank)
            assert numbers(row, "reference_") == numbers(a)
            assert numbers(row, "candidate_") == numbers(b)
            assert row.difference == b.probability - a.probability
            assert row.log_ratio_nats == b.nll_nats - a.nll_nats
        best = [max(row.probabilities) for row in mask.candidates]
        assert best == sorted(best, reverse=True)
        listed = {
            i
            for side in (reference_tokens, candidate_tokens)
            for i, c in side.items()
            if c.rank <= 4
        }
        listed_ids = {row.reference_token_id for row in mask.candidates if not row.asked}
        assert listed - {FIRST.vocabulary.ids["mat"]} <= listed_ids <= listed
        assert {row.word for row in mask.candidates if row.asked} == {"mat", "walking"}


@pytest.mark.parametrize(
    ("second", "rel"),
    [
        (SECOND, 1e-12),
        # A vocabulary padded to a rounder width; scipy makes each sum to 1.
        (TableModel(seed=3, noise=0.8, width=FIRST.vocabulary.size + 7), 1e-10),
        (Impossible(7, 9), 1e-12),
    ],
)
def test_divergences_are_those_of_scipy(second, rel):
    comparison = compare(FIRST, second, TEXT)
    for mask, reference_tokens, candidate_tokens in zip(
        comparison.masks, whole(FIRST), whole(second), strict=True
    ):
        p, q = (
            distribution(side)[: FIRST.vocabulary.size]
            for side in (reference_tokens, candidate_tokens)
        )
        assert mask.kl_nats == pytest.approx(entropy(p, q), rel=rel)
        assert mask.js_nats == pytest.approx(jensenshannon(p, q) ** 2, rel=rel)
        assert 0 < mask.js_nats < math.log(2)
        assert mask.flipped == (p.argmax() != q.argmax())


def test_impossible_for_one_is_infinite_and_for_both_equal():
    comparison = compare(FIRST, Impossible(7), TEXT)
    assert comparison.masks[0].kl_nats == math.inf
    assert json.loads(comparison.to_json())["masks"][0]["kl_nats"] is None
    same = compare(Impossible(7, 9), Impossible(9, 7), TEXT, candidates=["walking"])
    assert same.reference.masks == same.candidate.masks
    for mask in same.masks:
        assert (mask.kl_nats, mask.js_nats, mask.flipped) == (0, 0, False)
        assert all(row.difference == 0 for row in mask.candidates)
    assert all(joint.reference_nll_nats == joint.candidate_nll_nats for joint in same.joint)


def test_joint_fillings_of_either_under_both():
    comparison = compare(FIRST, SECOND, TEXT, joint=3)
    alone = [
        {
            joint.text: joint.nll_nats
            for joint in fill(model, TEXT, joint=100, beam_width=2000).joint
        }
        for model in (FIRST, SECOND)
    ]
    for role in ("reference", "candidate"):
        texts = {joint.text for joint in comparison.joint if getattr(joint, f"{role}_listed")}
        assert texts == {joint.text for joint in getattr(comparison, role).joint}
    assert any(not joint.reference_listed for joint in comparison.joint)
    for joint_filling in comparison.joint:
        assert joint_filling.reference_nll_nats == alone[0].get(
            joint_filling.text, joint_filling.reference_nll_nats
        )
        assert joint_filling.candidate_nll_nats == alone[1].get(
            joint_filling.text, joint_filling.candidate_nll_nats
        )
    assert any(joint.text in alone[1] for joint in comparison.joint if not joint.candidate_listed)


def test_two_tokenizers_are_compared_by_word():
    comparison = compare(FIRST, OTHER, TEXT, top_k=6, candidates=["stone"], joint=3)
    assert comparison.by_word and "different tokenizers" in comparison.notes[0]
    for number, mask in enumerate(comparison.masks):
        assert mask.kl_nats is None and mask.js_nats is None
        reference_tokens = whole(FIRST)[number]
        for row in mask.candidates:
            token_id = row.reference_token_id
            if row.reference_listed:
                assert numbers(row, "reference_") == numbers(reference_tokens[token_id])
            if row.candidate_probability is None:  # an ending is no word
                special = token_id in FIRST.vocabulary.special_ids
                assert row.reference_token.startswith("##") or special
                assert row.difference is None
            elif row.reference_probability is not None:
                scored = score_candidates(OTHER, TEXT, [row.word])[number][0]
                assert numbers(row, "candidate_") == numbers(scored)
            if row.asked:
                assert row.reference_rank and row.candidate_rank is None
                assert row.candidate_token_id is None
        only_candidate = [row for row in mask.candidates if row.reference_probability is None]
        assert any(row.candidate_listed for row in only_candidate)
        fillings = comparison.reference, comparison.candidate
        words = [filling.masks[number].candidates[0].word for filling in fillings]
        assert mask.flipped == (words[0] != words[1])
    assert {joint.reference_listed for joint in comparison.joint} == {True, False}
    listed = [joint for joint in comparison.joint if joint.reference_listed]
    assert all(reference_tokens.reference_nll_nats is not None for reference_tokens in listed)


def test_two_sentences_have_the_words_of_either():
    texts = "the cat [MASK] on the mat", "the dog [MASK] in it"
    pair = pair_masks(FIRST, *texts, top_k=3, candidates=["walking", "ran"])
    probabilities = [distribution(whole(FIRST, text)[0]) for text in texts]  # each [V]
    expected_ids = {
        int(i)
        for model_probabilities in probabilities
        for i in np.argsort(-model_probabilities, kind="stable")[:3]
    }
    expected_ids.add(FIRST.vocabulary.ids["ran"])
    token_ids = {candidate.reference_token_id for candidate in pair.candidates}
    assert token_ids - {None} == expected_ids
    assert pair.kl_nats == pytest.approx(entropy(*probabilities))
    for row in pair.candidates:
        if row.reference_token_id is not None:
            expected = [
                model_probabilities[row.reference_token_id] for model_probabilities in probabilities
            ]
            np.testing.assert_allclose(row.probabilities, expected, rtol=1e-9)
            assert row.log_ratio_nats == pytest.approx(math.log(expected[0] / expected[1]))
    sizes = [abs(candidate.difference) for candidate in pair.candidates]
    assert sizes == sorted(sizes, reverse=True)
    assert {candidate.word for candidate in pair.candidates if candidate.asked} == {
        "walking",
        "ran",
    }
    (walking,) = [candidate for candidate in pair.candidates if candidate.word == "walking"]
    for text, role in zip(texts, ("reference_", "candidate_"), strict=True):
        assert numbers(walking, role) == numbers(score_candidates(FIRST, text, ["walking"])[0][0])


A, B = TableModel(seed=3), TableModel(seed=3, noise=0.5)
# Longer words are cut into letters, so that both see other tokens.
LETTERS = TableModel(seed=5, vocabulary=letter_vocabulary(), max_tokens=128)
SENTENCE = "the cat was walking, and it warmed the stone."


def check_sides(comparison, models, text):
    """Each side is what that model alone says, to the last digit."""
    first, second = (surprisal(model, text) for model in models)
    assert (comparison.reference, comparison.candidate) == (first, second)
    assert [part for word in comparison.words for part in word.reference] == [*first.words]
    assert [part for word in comparison.words for part in word.candidate] == [*second.words]


@pytest.mark.parametrize("candidate", [A, B, LETTERS])
def test_each_side_is_what_that_model_alone_says(candidate):
    comparison = compare_sentence(A, candidate, SENTENCE)
    check_sides(comparison, (A, candidate), SENTENCE)
    for word in comparison.words:
        assert word.difference_nats == word.candidate_nll_nats - word.reference_nll_nats
    some = compared_words(
        comparison.alignment, comparison.reference.words[:5], comparison.candidate.words[:3]
    )
    assert some == comparison.words[:3]
    assert summarize_comparison(some).word_count == 3


def test_the_summary_against_sums_by_hand():
    comparison = compare_sentence(A, B, SENTENCE)
    summary, words = comparison.summary, comparison.words
    assert (summary.word_count, summary.characters) == (11, len(SENTENCE.replace(" ", "")))
    differences = [word.difference_nats for word in words]
    assert summary.mean_difference_nats == pytest.approx(np.mean(differences))
    assert summary.largest == words[int(np.argmax(np.abs(differences)))]
    mean = np.mean([word.reference_nll_nats for word in words])
    assert summary.reference_mean_word_nll_nats == pytest.approx(mean)
    best = [
        (word.reference[0].expected[0].token, word.candidate[0].expected[0].token) for word in words
    ]
    assert [word.flipped for word in words] == [a != b for a, b in best]
    assert summary.flipped == sum(a != b for a, b in best) > 0
    assert summary.candidate == surprisal(B, SENTENCE).summary
    assert comparison.alignment.alike and comparison.note == ""


def word(text, start, number):
    return TextWord(text, start, start + len(text), (number,))


def test_words_that_the_tokenizers_cut_differently_are_joined():
    """`ab c` / `a bc` overlap in a chain; what only one of them sees is left out."""
    first = [word("ab", 0, 0), word("c", 2, 1), word("d", 4, 2), word("e", 6, 3)]
    second = [word("a", 0, 0), word("bc", 1, 1), word("e", 6, 2)]
    chain, last = align_words(first, second)
    assert (chain.start, chain.end) == (0, 3)
    assert (chain.reference, chain.candidate) == (range(2), range(2))
    assert (last.start, last.reference, last.candidate) == (6, range(3, 4), range(2, 3))


def test_impossible_words_are_null_in_json_and_unknown_ones_not_summed():
    model = TableModel(seed=3)
    model.own[model.vocabulary.mask_id, model.vocabulary.ids["cat"]] = -np.inf
    assert compare_sentence(A, B, "☃").summary is None
    spelled = compare_sentence(A, B, "the ☃ ran")
    assert [word.unknown for word in spelled.words] == [False, True, False]
    total = spelled.words[0].reference_nll_nats + spelled.words[2].reference_nll_nats
    assert spelled.summary.reference_total_nll_nats == pytest.approx(total)
    cat = compare_sentence(model, model, "the cat ran").words[1]
    assert math.isnan(cat.difference_nats)
    assert cat.to_dict()["difference_nats"] is None
    assert compare_sentence(model, A, "the cat ran").summary.largest.text == "cat"
