"""Guesses of a class as they are typed, and their loss."""

import math

import pytest

from fillmask_ui.filling.guesses import parse_guesses


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("mat 12, floor 5, sofa", {"mat": 12, "floor": 5, "sofa": 1}),
        ("mat\nfloor\n\nmat", {"mat": 2, "floor": 1}),
        ("Mat 3; mat 4", {"Mat": 7}),
        ("ice cream 3, ice  CREAM", {"ice cream": 4}),
        ("mat: 12, floor = 5", {"mat": 12, "floor": 5}),
        ("covid-19, 1945 2", {"covid-19": 1, "1945": 2}),
        ("  ,\n;", {}),
    ],
)
def test_counts(typed, wanted):
    found = parse_guesses(typed)
    assert {guess.word: guess.amount for guess in found.guesses} == wanted
    assert not found.percent


def test_percents_leave_a_rest_that_guessed_nothing():
    found = parse_guesses("mat 60%, floor 12.5 %")
    assert found.percent and found.share("MAT ") == 0.6
    assert found.no_guess == pytest.approx(0.275)
    # Percents that were rounded one by one may add up to a little more.
    rounded = parse_guesses("a 33.5%, b 33.5%, c 33.5%")
    assert sum(rounded.share(word) for word in "abc") == pytest.approx(1)
    assert rounded.no_guess == 0


def test_losses_by_hand():
    """12 of 18: ln 1.5. With one more guess for it 1 of 19; of percents, 1 of 100."""
    found = parse_guesses("mat 12, floor 5, sofa")
    assert found.nll_nats("Mat") == pytest.approx(math.log(1.5))
    assert found.nll_nats("rug") == math.inf
    assert found.nll_with_one_more("rug") == pytest.approx(math.log(19))
    assert parse_guesses("mat 60%").nll_with_one_more("rug") == pytest.approx(math.log(100))
