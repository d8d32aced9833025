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
    log_probs = scoring.log_probabilities(logits)
    expected = stats.entropy(np.exp(log_probs), axis=1)
    np.testing.assert_allclose(scoring.entropy_nats(log_probs), expected, atol=1e-12)


@given(LOGITS, st.integers(1, 40))
def test_top_k_and_ranks_agree_with_a_stable_sort(logits, k):
    log_probs = scoring.log_probabilities(logits)
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
    top = scoring.top_k(scoring.log_probabilities(logits), None)
    assert top.token_ids.shape == (2, 50_000)
    np.testing.assert_allclose(np.exp(-top.nll_nats).sum(axis=1), 1.0, rtol=1e-12)


def test_an_impossible_token_has_infinite_nll_and_adds_no_entropy():
    logits = np.array([[0.0, 0.0, -np.inf]])
    log_probs = scoring.log_probabilities(logits)
    assert scoring.target_nll_nats(log_probs, np.array([2]))[0] == math.inf
    assert scoring.entropy_nats(log_probs)[0] == pytest.approx(math.log(2))


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_broken_logits_are_said(broken):
    logits = np.zeros((3, 5), np.float32)
    logits[1, 2] = broken
    with pytest.raises(ModelOutputError, match="1 of 3 hidden positions"):
        scoring.log_probabilities(logits)


def test_a_position_without_any_possible_token_is_said():
    with pytest.raises(ModelOutputError):
        scoring.log_probabilities(np.full((1, 4), -np.inf))


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one(k):
    with pytest.raises(OptionError, match=f"it was {k}"):
        scoring.top_k(np.log([[0.5, 0.5]]), k)


def test_k_beyond_the_vocabulary_gives_the_vocabulary():
    assert scoring.top_k(np.log([[0.5, 0.5]]), 10**9).token_ids.shape == (1, 2)


def test_shapes_that_disagree():
    with pytest.raises(ValueError, match=r"\[2\] do not fit logits \[1, 4\]"):
        scoring.nll_nats(np.zeros((1, 4)), np.array([0, 1]))
