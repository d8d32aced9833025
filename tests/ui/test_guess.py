"""Guess first: the class beside the model."""

import json
import math

import pytest
import torch

from fillmask_ui.filling.guesses import parse_guesses
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore import guess_view
from tests.table_model import TableModel

TEXT = "the [MASK] sat on the mat."


def compare(session, typed, truth="cat"):
    return guess_view.compare(session, TableModel(), TEXT, parse_guesses(typed), truth)


@pytest.fixture
def probabilities():
    """What the table model gives at the mask, by torch's softmax."""
    model = TableModel()
    encoding = model.vocabulary.encode(TEXT)
    left, right = encoding.ids[1], encoding.ids[3]
    own = model.vocabulary.mask_id
    logits = torch.tensor(model.left[left] + model.right[right] + model.own[own]).double()
    values = torch.softmax(logits, 0)
    return {token: values[index].item() for token, index in model.vocabulary.ids.items()}


def test_both_losses_on_the_true_word(session, probabilities):
    found = compare(session, "cat 12, dog 5, river").losses
    assert found.people == pytest.approx(math.log(1.5))
    assert found.model == pytest.approx(-math.log(probabilities["cat"]))


def test_the_true_word_comes_first_then_guesses_then_what_nobody_guessed(session, probabilities):
    words = compare(session, "river, dog 5, CAT 2").words
    assert [(own.word, own.asked) for own in words[:3]] == [
        ("cat", True),
        ("dog", False),
        ("river", False),
    ]
    assert [own.probability for own in words[:3]] == pytest.approx([2 / 8, 5 / 8, 1 / 8])
    assert [own.listed for own in words] == [True] * 3 + [False] * 6
    assert [own.other_listed for own in words[3:]] == [True] * 5 + [False]
    assert words[8].word == ""
    best = sorted(probabilities.values(), reverse=True)
    assert words[3].other_probability == pytest.approx(best[0])
    # One distribution: the bars and the rest add up to all of it.
    assert sum(own.other_probability for own in words) == pytest.approx(1)


def test_nobody_guessed_it_is_infinite_and_says_so(session):
    found = compare(session, "dog 20, river 3")
    assert found.losses.people == math.inf
    html, bits = (guess_view.comparison_html(found, unit) for unit in ("nats", "bits"))
    assert "Nobody guessed “cat”: the loss of the class is infinite" in html
    assert "3.178 nats: −ln((0 + 1) / (23 + 1))" in html  # ln 24
    assert "4.585 bits: −log₂((0 + 1) / (23 + 1))" in bits


@pytest.mark.parametrize(
    ("people", "model", "wanted"),
    [
        (0.6931, 1.2, "Less surprised: the class (0.693 nats against 1.200)."),
        (math.inf, 1.2, "Less surprised: the model (1.200 nats against infinite)."),
        (1.2, 1.2, "Equally surprised: 1.200 nats each."),
    ],
)
def test_who_was_less_surprised(people, model, wanted):
    losses = guess_view.Losses("cat", people, 3.0, model, parse_guesses("dog"))
    assert guess_view.verdict(losses, "nats") == wanted


def test_a_word_of_several_sub_tokens_has_the_chain_rule(session):
    found = compare(session, "walking 3")
    own = found.words[1]
    wanted = session.score(TableModel(), TEXT, ["walking"])[0][0]
    assert (own.word, found.parts[own.word]) == ("walking", 2)
    assert own.other_probability == pytest.approx(wanted.probability)


def test_what_the_model_cannot_spell_is_named(session):
    found = compare(session, "dog 2, xyz")
    assert found.left_out == ("xyz",)
    assert [own.other_probability for own in found.words if own.word == "xyz"] == [None]
    assert "The model cannot spell xyz" in guess_view.comparison_html(found, "nats")


def test_without_a_true_word_there_are_only_distributions(session):
    found = compare(session, "dog 2, river", truth="")
    assert found.losses is None and not found.words[0].asked
    assert "true word is not known" in guess_view.comparison_html(found, "nats")


def test_the_page_asks_with_plain_values(session):
    values = {
        "text": TEXT,
        "draft": {"text": TEXT, "hidden": ["cat"]},
        "guesses": "cat 1\n<b>dog</b> 1",
        "truth": "ignored",
    }
    found = json.loads(json.dumps(guess_view.guess(session, values)))
    assert "ignored" not in found["html"]
    assert "&lt;b&gt;dog" in found["html"] and "<b>dog" not in found["html"]
    read = json.loads(json.dumps(guess_view.guesses(session, values)))
    assert [one["amount"] for one in read["guesses"]] == [1, 1]


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"text": TEXT, "guesses": ""}, "Nobody has guessed yet"),
        ({"text": TEXT, "guesses": "7"}, "'7' is no guess"),
        ({"text": "the cat", "guesses": "dog"}, "has no mask"),
        ({"guesses": "dog"}, "The text is empty"),
    ],
)
def test_what_is_wrong_is_said(session, values, part):
    assert part in answered(guess_view.guess, session, values)["error"]
