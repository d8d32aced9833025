"""The softmax and two distributions of the lessons against torch and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from fillmask_ui.lessons.distributions import compare
from fillmask_ui.lessons.softmax import softmax_of

pytestmark = pytest.mark.quick

TEXT = "the [MASK] sat on the mat."


# ---- Two distributions


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_the_three_numbers_are_those_of_scipy_and_torch(classes):
    """The outside references: `scipy.stats.entropy`, and `cross_entropy` with either target."""
    p, q = np.random.default_rng(classes).dirichlet(np.ones(classes), 2)
    found = compare(p, q)
    assert found.entropy_nats == pytest.approx(entropy(p), rel=1e-12)
    assert found.kl_nats == pytest.approx(entropy(p, q), rel=1e-12)
    assert found.cross_entropy_nats > compare(p, p).cross_entropy_nats
    assert compare(p, p).kl_nats == pytest.approx(0, abs=1e-12)
    logits = torch.tensor(np.log(q)[None] + 3.0)  # a softmax of these is q
    soft = torch.nn.functional.cross_entropy(logits, torch.tensor(p[None]))
    assert found.cross_entropy_nats == pytest.approx(soft.item(), rel=1e-12)
    hard = torch.nn.functional.cross_entropy(logits, torch.tensor([1]))
    one_hot = compare(np.eye(classes)[1], q)
    assert one_hot.cross_entropy_nats == one_hot.kl_nats == pytest.approx(hard.item(), rel=1e-12)
    assert str(one_hot.entropy_nats) == "0.0"
    assert [term.nats > 0 for term in one_hot.terms] == [own == 1 for own in range(classes)]


def test_a_zero_in_q_is_infinite_where_the_class_can_be_true():
    found = compare([0.5, 0.5, 0], [1, 0, 0], ["a", "b"])
    assert found.cross_entropy_nats == found.kl_nats == math.inf
    assert found.impossible == ("b",)
    assert found.entropy_nats == pytest.approx(math.log(2))
    assert [term.name for term in found.terms] == ["a", "b", "class 3"]
    assert compare([1, 0], [1, 0]).cross_entropy_nats == 0  # 0 ln 0 adds nothing


@pytest.fixture
def logits():
    return np.random.default_rng(3).normal(size=500).astype(np.float32) * 4


@pytest.mark.parametrize("temperature", [0.05, 1, 100])
def test_probabilities_loss_and_entropy_are_those_of_torch(logits, temperature):
    made = softmax_of(logits, 7, [3, 7, 11], temperature=temperature)
    wanted = torch.from_numpy(logits).double() / temperature
    shares = torch.softmax(wanted, 0)[[3, 7, 11]]
    assert [row.probability for row in made.rows[:3]] == pytest.approx(shares.tolist())
    assert made.rows[-1].probability == pytest.approx(1 - shares.sum().item(), abs=1e-12)
    loss = torch.nn.functional.cross_entropy(wanted[None], torch.tensor([7])).item()
    assert made.nll_nats == pytest.approx(loss)
    of_torch = torch.distributions.Categorical(logits=wanted).entropy().item()
    assert made.entropy_nats == pytest.approx(of_torch, abs=1e-12)
