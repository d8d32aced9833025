"""The softmax and two distributions of the lessons against torch and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from fillmask_ui.lessons.distributions import compare

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
