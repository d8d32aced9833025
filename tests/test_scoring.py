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

# Ties and impossible tokens included.
LOGITS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(2, 150)),
    elements=st.one_of(st.floats(-60, 60, width=32), st.just(-np.inf), st.sampled_from([0.0, 1.0])),
)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@given(LOGITS, st.integers(0, 10**6))
def test_scores_of_targets_equal_torch_and_scipy(logits, seed):
    logits[:, -1] = 2.0  # a position where nothing is possible is an error
    targets = np.random.default_rng(seed).integers(0, logits.shape[1], len(logits))
    rows = np.arange(len(logits))
    expected = torch.from_numpy(logits).double().log_softmax(dim=1).numpy()
    entropy = stats.entropy(np.exp(expected), axis=1)
    order = np.argsort(-logits, axis=1, kind="stable")
    for room in (None, np.full((2, 6, logits.shape[1]), np.nan)):
        values = scoring.exponentials(logits, room)
        scores = scoring.score_targets(values, logits, targets)
        np.testing.assert_allclose(values.log_probabilities, expected, **CLOSE)
        np.testing.assert_allclose(scores.nll_nats, -expected[rows, targets], **CLOSE)
        np.testing.assert_allclose(scores.entropy_nats, entropy, **CLOSE)
        np.testing.assert_array_equal(scores.top_ids, order[:, 0])
        np.testing.assert_allclose(
            scores.top_probabilities, np.exp(expected.max(axis=1)), rtol=1e-12
        )
        places = (order == targets[:, None]).argmax(axis=1) + 1
        np.testing.assert_array_equal(scores.ranks, places)
    np.testing.assert_allclose(scoring.nll_nats(logits, targets), scores.nll_nats, **CLOSE)


@given(LOGITS, LOGITS)
def test_divergences_equal_scipy(first, second):
    width = min(first.shape[1], second.shape[1])
    logits = [model_logits[:1, :width] for model_logits in (first, second)]
    for model_logits in logits:
        model_logits[:, -1] = 2.0
    p, q = (
        torch.from_numpy(model_logits).double().softmax(dim=1).numpy()[0] for model_logits in logits
    )
    kl_nats, js_nats = scoring.divergences(*logits)
    assert kl_nats == pytest.approx(stats.entropy(p, q), rel=1e-9, abs=1e-9)
    middle = (p + q) / 2
    expected = (stats.entropy(p, middle) + stats.entropy(q, middle)) / 2
    assert js_nats == pytest.approx(expected, rel=1e-9, abs=1e-9)
    with np.errstate(divide="ignore"):
        assert scoring.kl_nats(np.log([p]), np.log([q]))[0] == pytest.approx(kl_nats, abs=1e-9)


@given(st.integers(1, 700), st.integers(1, 30), st.integers(0, 10**6), st.integers(1, 9))
def test_top_k_and_ranks_agree_with_a_stable_sort(size, k, seed, distinct):
    """Of many tokens with many ties."""
    rng = np.random.default_rng(seed)
    log_probs = np.log(rng.integers(1, distinct + 1, (3, size)) / (distinct + 1))
    log_probs[:, rng.integers(0, size, size // 3)] = -np.inf
    expected = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(scoring.top_k(log_probs, k).token_ids, expected)
    for column in range(expected.shape[1]):
        np.testing.assert_array_equal(scoring.ranks(log_probs, expected[:, column]), column + 1)


def test_values_by_hand_and_sums():
    """Losses of the course's notes on the masked-LM loss; all of a vocabulary sums to one."""
    for probability, nats in ((0.7, 0.357), (0.3, 1.204), (0.01, 4.605)):
        logits = np.log(np.array([[probability, 1 - probability]]))
        assert scoring.nll_nats(logits, np.array([0]))[0] == pytest.approx(nats, abs=5e-4)
    logits = np.random.default_rng(0).normal(size=(2, 50_000)).astype(np.float32) * 5
    top = scoring.top_k(scoring.exponentials(logits).log_probabilities, None)
    assert top.token_ids.shape == (2, 50_000)
    np.testing.assert_allclose(np.exp(-top.nll_nats).sum(axis=1), 1.0, rtol=1e-12)


def test_broken_logits_and_arguments_that_do_not_fit():
    for broken, message in (
        ([[0.0, 0.0], [0.0, np.nan], [0.0, 0.0]], "NaN at 1 of 3 hidden positions"),
        ([[0.0, 0.0], [0.0, np.inf], [0.0, 0.0]], "infinite logits at 1 of 3"),
        ([[-np.inf, -np.inf]], "infinite logits at 1 of 1"),
    ):
        with pytest.raises(ModelOutputError, match=message):
            scoring.exponentials(np.array(broken, np.float32))
    with pytest.raises(OptionError, match="it was 0"):
        scoring.top_k(np.log([[0.5, 0.5]]), 0)
    with pytest.raises(ValueError, match=r"\[2\] do not fit logits \[1, 4\]"):
        scoring.nll_nats(np.zeros((1, 4)), np.array([0, 1]))
    with pytest.raises(ValueError, match="token ids below 4"):
        scoring.nll_nats(np.zeros((1, 4)), np.array([4]))
    assert scoring.nll_nats(np.array([[0.0, -math.inf]]), np.array([1]))[0] == math.inf


@pytest.mark.parametrize("count", [0, 1, 3, 16, 17, 100])
def test_chunks_cover_all_positions_and_fit_their_room(count):
    logits = np.zeros((count, 22_400), np.float32)
    parts = [np.arange(count)[part] for part in scoring.chunks(logits)]
    assert np.concatenate(parts).tolist() == [*range(count)]
    assert max(map(len, parts)) <= scoring.scratch(logits).shape[1] <= 16
    assert len([*scoring.chunks(np.zeros((3, 10**6), np.float32))]) == 3
