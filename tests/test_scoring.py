"""scoring against torch, scipy and hand calculations."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from fillmask_ui import scoring
from fillmask_ui.errors import ModelOutputError, OptionError

LOGITS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 30)),
    elements=st.floats(-60, 60, width=32),
)


@given(LOGITS, st.integers(0, 10**6))
def test_nll_equals_torch_cross_entropy(logits, seed):
    targets = np.random.default_rng(seed).integers(0, logits.shape[1], len(logits))
    expected = torch.nn.functional.cross_entropy(
        torch.from_numpy(logits).double(), torch.from_numpy(targets), reduction="none"
    )
    np.testing.assert_allclose(scoring.nll_nats(logits, targets), expected, rtol=1e-12, atol=1e-12)


@given(LOGITS)
def test_entropy_equals_scipy(logits):
    log_probs = scoring.exponentials(logits).log_probabilities
    expected = stats.entropy(np.exp(log_probs), axis=1)
    np.testing.assert_allclose(scoring.entropy_nats(log_probs), expected, atol=1e-12)


@given(LOGITS, st.integers(1, 40))
def test_top_k_and_ranks_agree_with_a_stable_sort(logits, k):
    log_probs = scoring.exponentials(logits).log_probabilities
    top = scoring.top_k(log_probs, k)
    expected = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(top.token_ids, expected)
    for column in range(expected.shape[1]):
        np.testing.assert_array_equal(scoring.ranks(log_probs, expected[:, column]), column + 1)


@pytest.mark.parametrize(
    ("probability", "nats"),
    [(0.7, 0.357), (0.3, 1.204), (0.01, 4.605)],  # course notes on the masked-LM loss
)
def test_values_of_the_lesson(probability, nats):
    logits = np.log(np.array([[probability, 1 - probability]]))
    assert scoring.nll_nats(logits, np.array([0]))[0] == pytest.approx(nats, abs=5e-4)


def test_all_of_the_vocabulary_sums_to_one():
    logits = np.random.default_rng(0).normal(size=(2, 50_000)).astype(np.float32) * 5
    top = scoring.top_k(scoring.exponentials(logits).log_probabilities, None)
    assert top.token_ids.shape == (2, 50_000)
    np.testing.assert_allclose(np.exp(-top.nll_nats).sum(axis=1), 1.0, rtol=1e-12)


def test_an_impossible_token_has_infinite_nll_and_adds_no_entropy():
    logits = np.array([[0.0, 0.0, -np.inf]])
    log_probs = scoring.exponentials(logits).log_probabilities
    assert scoring.target_nll_nats(log_probs, np.array([2]))[0] == math.inf
    assert scoring.entropy_nats(log_probs)[0] == pytest.approx(math.log(2))


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_broken_logits_are_said(broken):
    logits = np.zeros((3, 5), np.float32)
    logits[1, 2] = broken
    with pytest.raises(ModelOutputError, match="1 of 3 hidden positions"):
        scoring.exponentials(logits)


def test_a_position_without_any_possible_token_is_said():
    with pytest.raises(ModelOutputError):
        scoring.exponentials(np.full((1, 4), -np.inf))


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one(k):
    with pytest.raises(OptionError, match=f"it was {k}"):
        scoring.top_k(np.log([[0.5, 0.5]]), k)


def test_k_beyond_the_vocabulary_gives_the_vocabulary():
    assert scoring.top_k(np.log([[0.5, 0.5]]), 10**9).token_ids.shape == (1, 2)


def test_shapes_that_disagree():
    with pytest.raises(ValueError, match=r"\[2\] do not fit logits \[1, 4\]"):
        scoring.nll_nats(np.zeros((1, 4)), np.array([0, 1]))


IMPOSSIBLE = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(2, 150)),
    elements=st.one_of(st.floats(-60, 60, width=32), st.just(-np.inf), st.sampled_from([0.0, 1.0])),
)


@given(IMPOSSIBLE, st.integers(0, 10**6))
def test_scores_of_targets_equal_torch_and_scipy(logits, seed):
    """Ties and impossible tokens included."""
    logits[:, -1] = 2.0  # a position where nothing is possible is an error
    targets = np.random.default_rng(seed).integers(0, logits.shape[1], len(logits))
    rows = np.arange(len(logits))
    expected = torch.from_numpy(logits).double().log_softmax(dim=1).numpy()
    order = np.argsort(-logits, axis=1, kind="stable")
    for room in (None, np.full((2, 6, logits.shape[1]), np.nan)):
        values = scoring.exponentials(logits, room)
        scores = scoring.score_targets(values, logits, targets)
        np.testing.assert_allclose(values.log_probabilities, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            scores.nll_nats, -expected[rows, targets], rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(
            scores.entropy_nats, stats.entropy(np.exp(expected), axis=1), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_array_equal(scores.top_ids, order[:, 0])
        np.testing.assert_allclose(
            scores.top_probabilities, np.exp(expected.max(axis=1)), rtol=1e-12
        )
        places = (order == targets[:, None]).argmax(axis=1) + 1
        np.testing.assert_array_equal(scores.ranks, places)


@given(LOGITS)
def test_scores_of_targets_equal_what_is_made_of_log_probabilities(logits):
    targets = np.zeros(len(logits), np.int64)
    log_probs = scoring.exponentials(logits).log_probabilities
    scores = scoring.score_targets(scoring.exponentials(logits), logits, targets)
    expected = scoring.target_nll_nats(log_probs, targets)
    np.testing.assert_allclose(scores.nll_nats, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        scores.entropy_nats, scoring.entropy_nats(log_probs), rtol=1e-12, atol=1e-12
    )
    # Of logits that are apart by less than a float64 can hold once they are shifted, too.
    np.testing.assert_array_equal(scores.ranks, scoring.ranks(logits, targets))


@pytest.mark.parametrize("count", [0, 1, 3, 16, 17, 100])
def test_chunks_cover_all_positions_and_fit_their_room(count):
    logits = np.zeros((count, 22_400), np.float32)
    parts = [np.arange(count)[part] for part in scoring.chunks(logits)]
    assert np.concatenate(parts).tolist() == [*range(count)]
    assert max(map(len, parts)) <= scoring.scratch(logits).shape[1] <= 16
    assert len([*scoring.chunks(np.zeros((3, 10**6), np.float32))]) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_broken_is_broken_for_scores_too(value):
    logits = np.zeros((3, 5), np.float32)
    logits[1, 2] = value
    with pytest.raises(ModelOutputError, match="at 1 of 3 hidden positions"):
        scoring.exponentials(logits)
    with pytest.raises(ModelOutputError, match="infinite logits at 1 of 1"):
        scoring.exponentials(np.full((1, 4), -np.inf, np.float32))


@given(st.integers(1, 700), st.integers(1, 30), st.integers(0, 10**6), st.integers(1, 9))
def test_top_k_of_many_tokens_agrees_with_a_stable_sort(size, k, seed, distinct):
    """Sizes where whole blocks are looked through first, with many ties."""
    rng = np.random.default_rng(seed)
    log_probs = np.log(rng.integers(1, distinct + 1, (3, size)) / (distinct + 1))
    log_probs[:, rng.integers(0, size, size // 3)] = -np.inf
    expected = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(scoring.top_k(log_probs, k).token_ids, expected)
