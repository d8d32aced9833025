"""The softmax of the lessons against that of torch."""

import numpy as np
import pytest
import torch
from table_model import TableModel

from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling import fill
from fillmask_ui.filling.words import raw_logits_at
from fillmask_ui.lessons.masked_position import find_masked_position, true_token
from fillmask_ui.lessons.softmax import softmax_of, top_tokens

pytestmark = pytest.mark.quick

TEXT = "the [MASK] sat on the mat."


@pytest.fixture
def logits():
    return np.random.default_rng(3).normal(size=500).astype(np.float32) * 4


@pytest.mark.parametrize("temperature", [0.05, 0.5, 1, 4, 100])
def test_probabilities_loss_and_entropy_are_those_of_torch(logits, temperature):
    made = softmax_of(logits, 7, [3, 7, 11], temperature=temperature)
    wanted = torch.from_numpy(logits).double() / temperature
    shares = torch.softmax(wanted, 0)
    assert [row.probability for row in made.rows[:3]] == pytest.approx(shares[[3, 7, 11]].tolist())
    assert made.rows[-1].probability == pytest.approx(
        1 - shares[[3, 7, 11]].sum().item(), abs=1e-12
    )
    loss = torch.nn.functional.cross_entropy(wanted[None], torch.tensor([7])).item()
    assert made.nll_nats == pytest.approx(loss)
    entropy = torch.distributions.Categorical(logits=wanted).entropy().item()
    assert made.entropy_nats == pytest.approx(entropy, abs=1e-12)


@pytest.mark.parametrize("added", [0.0, 5.0, -12.5])
def test_the_columns_add_up_and_only_differences_matter(logits, added):
    made, plain = (softmax_of(logits, 7, [3, 7], added=c) for c in (added, 0.0))
    wanted = torch.exp(torch.from_numpy(logits).double() + added)
    assert made.total == pytest.approx(wanted.sum().item())
    assert sum(row.exponential for row in made.rows) == pytest.approx(made.total)
    assert sum(row.probability for row in made.rows) == pytest.approx(1)
    assert sum(row.tokens for row in made.rows) == len(logits)
    for row in made.rows:
        assert row.exponential / made.total == pytest.approx(row.probability)
    assert [row.logit for row in made.rows[:2]] == pytest.approx(
        [float(logits[3]) + added, float(logits[7]) + added]
    )
    rest = np.delete(logits, [3, 7])
    assert made.rows[-1].logit == pytest.approx(float(rest.max()) + added)
    assert made.nll_nats == pytest.approx(plain.nll_nats)


def test_an_exponential_may_be_too_large_and_the_probability_is_right_all_the_same(logits):
    made = softmax_of(logits, 7, [7], added=800.0)
    assert made.total == np.inf
    assert made.nll_nats == pytest.approx(softmax_of(logits, 7, [7]).nll_nats)


def test_without_other_tokens_there_is_no_row_for_them():
    made = softmax_of(np.array([1.0, 2.0]), 1, [0, 1])
    assert [row.token_id for row in made.rows] == [0, 1]


def test_the_true_token_is_shown_wherever_it_ranks():
    logits = np.array([0.0, 3.0, 1.0, 2.0])
    assert top_tokens(logits, 3, 2) == (1, 3)
    assert top_tokens(logits, 0, 2) == (1, 3, 0)


def test_the_logits_of_a_gap_are_what_explore_is_made_of():
    model = TableModel()
    gap = find_masked_position(model, TEXT)
    logits = raw_logits_at(model, [gap.encoding.ids], [gap.position])[0]
    left, right = gap.encoding.ids[1], gap.encoding.ids[3]
    assert logits == pytest.approx(
        model.left[left] + model.right[right] + model.own[model.vocabulary.mask_id]
    )
    cat = true_token(model, gap, "cat")
    made = softmax_of(logits, cat, [cat])
    known = fill(model, TEXT, candidates=["cat"]).masks[0]
    assert made.nll_nats == pytest.approx(known.scored[0].nll_nats)
    assert made.entropy_nats == pytest.approx(known.entropy_nats)
    assert (gap.before, gap.after) == ("the ", " sat on the mat.")


@pytest.mark.parametrize(
    ("text", "word", "kind", "part"),
    [
        ("", "cat", TextError, "the text is empty"),
        ("the cat sat", "cat", TextError, "has no mask"),
        ("the ___ sat on the [MASK]", "cat", TextError, "has 2 masks"),
        (TEXT, " ", OptionError, "hidden word is missing"),
        (TEXT, "walking", OptionError, "'walking' is 2 tokens (walk, ##ing)"),
        (TEXT, "xyz", OptionError, "cannot be spelled"),
    ],
)
def test_what_is_wrong_with_a_gap_is_said(text, word, kind, part):
    model = TableModel()
    with pytest.raises(kind) as wrong:
        true_token(model, find_masked_position(model, text), word)
    assert part in str(wrong.value)
