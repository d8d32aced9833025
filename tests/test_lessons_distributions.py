"""Two distributions: entropy, cross-entropy and divergence, and what is wrong with typed ones."""

import math

import numpy as np
import pytest

from fillmask_ui.errors import OptionError
from fillmask_ui.lessons.distributions import adds_up, compare, read_numbers, scaled


def random_pair(classes, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(classes)), rng.dirichlet(np.ones(classes))


@pytest.mark.parametrize("classes", [2, 3, 12])
@pytest.mark.parametrize("seed", range(5))
def test_the_three_numbers_are_those_of_scipy(classes, seed):
    """The outside reference: `scipy.stats.entropy`, of one distribution and of two."""
    from scipy.stats import entropy

    p, q = random_pair(classes, seed)
    found = compare(p, q)
    assert found.entropy_nats == pytest.approx(entropy(p), rel=1e-12)
    assert found.kl_nats == pytest.approx(entropy(p, q), rel=1e-12)
    assert found.cross_entropy_nats == pytest.approx(entropy(p) + entropy(p, q), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_cross_entropy_is_that_of_torch(seed):
    """The outside reference: `cross_entropy` with a class and with a distribution as its target."""
    import torch

    p, q = random_pair(4, seed)
    logits = torch.tensor(np.log(q)[None] + 3.0)  # a softmax of these is q
    soft = torch.nn.functional.cross_entropy(logits, torch.tensor(p[None]))
    assert compare(p, q).cross_entropy_nats == pytest.approx(soft.item(), rel=1e-12)
    for true in range(4):
        hard = torch.nn.functional.cross_entropy(logits, torch.tensor([true]))
        found = compare(np.eye(4)[true], q)
        assert found.cross_entropy_nats == pytest.approx(hard.item(), rel=1e-12)


@pytest.mark.parametrize(
    ("p", "q", "loss"),
    [
        ([0, 1, 0, 0], [0.1, 0.7, 0.1, 0.1], 0.357),
        ([0, 1, 0], [0.2, 0.5, 0.3], 0.693),
        ([1, 0, 0], [0.7, 0.2, 0.1], 0.357),
    ],
)
def test_a_one_hot_truth_leaves_the_loss_of_the_true_class(p, q, loss):
    """The examples of the course; by hand -ln 0.7 and -ln 0.5."""
    found = compare(p, q)
    assert found.cross_entropy_nats == found.kl_nats == -math.log(q[p.index(1)])
    assert round(found.cross_entropy_nats, 3) == loss
    assert str(found.entropy_nats) == "0.0"
    assert [term.nats > 0 for term in found.terms] == [own == 1 for own in p]


@pytest.mark.parametrize("seed", range(20))
def test_no_prediction_does_better_than_the_truth(seed):
    p, q = random_pair(3, seed)
    assert compare(p, q).cross_entropy_nats > compare(p, p).cross_entropy_nats
    assert compare(p, p).cross_entropy_nats == pytest.approx(compare(p, p).entropy_nats, rel=1e-12)
    assert compare(p, p).kl_nats == pytest.approx(0, abs=1e-12)


def test_a_zero_in_q_is_infinite_where_the_class_can_be_true():
    found = compare([0.5, 0.5, 0], [1, 0, 0], ["a", "b"])
    assert found.cross_entropy_nats == found.kl_nats == math.inf
    assert found.impossible == ("b",)
    assert found.entropy_nats == pytest.approx(math.log(2))
    assert [term.name for term in found.terms] == ["a", "b", "class 3"]
    # 0 ln 0 adds nothing.
    assert compare([1, 0], [1, 0]).cross_entropy_nats == 0


@pytest.mark.parametrize(
    ("typed", "numbers"),
    [
        ("0.1, 0.7, 0.1, 0.1", (0.1, 0.7, 0.1, 0.1)),
        ("1/3 2/3", (1 / 3, 2 / 3)),
        (" 10%; 70 % ;20%,", (0.1, 0.7, 0.2)),
        (".5 5e-1 0", (0.5, 0.5, 0.0)),
        ("3 4", (3.0, 4.0)),
    ],
)
def test_numbers_are_read_as_people_write_them(typed, numbers):
    assert read_numbers(typed, "q") == pytest.approx(numbers, rel=1e-15)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("", "q has 0 numbers"),
        (" , ", "q has 0 numbers"),
        ("0.1 " * 13, "q has 13 numbers"),
        ("0.5, half", "'half' in q is no number"),
        ("0.5, nan", "'nan' in q is no number"),
        ("0.5, inf", "'inf' in q is no number"),
        ("0.5, 1_0", "'1_0' in q is no number"),
        ("-0.5, 1.5", "'-0.5' in q is no probability"),
        ("1e999, 0", "'1e999' in q is no probability"),
        ("1/0", "divides by zero"),
        ("1/1e-999", "divides by zero"),
    ],
)
def test_what_is_no_probability_is_named(typed, message):
    with pytest.raises(OptionError, match=message):
        read_numbers(typed, "q")


def test_sums_and_lengths_are_checked():
    with pytest.raises(OptionError, match=r"q adds up to 0\.9, .*Scale to a sum of 1"):
        compare([0.5, 0.5], [0.5, 0.4])
    with pytest.raises(OptionError, match=r"p adds up to 2 and q adds up to 0\.9"):
        compare([1, 1], [0.5, 0.4])
    with pytest.raises(OptionError, match="p has 2 classes and q has 3"):
        compare([0.5, 0.5], [0.2, 0.3, 0.5])
    assert adds_up([0.33333, 0.33333, 0.33333])
    assert not adds_up([0.333, 0.333, 0.333])


def test_any_numbers_are_scaled_to_a_sum_of_one():
    assert scaled([3, 1], "q") == (0.75, 0.25)
    with pytest.raises(OptionError, match="all numbers of q are 0"):
        scaled([0, 0], "q")
