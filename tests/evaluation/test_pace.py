"""Tokens per second and the time left, against sums by hand on a clock of the test's own."""

import pytest

from fillmask_ui.runs.pace import Pace
from fillmask_ui.runs.perform import Progress


class Run:
    """A run of so many texts, told by a clock that is set."""

    def __init__(self, expected=1000, begun=0):
        self.now, self.expected = 100.0, expected
        self.pace = Pace(self.step(begun), lambda: self.now)

    def step(self, through, tokens=0):
        return Progress(None, None, self.expected, through=through, tokens=tokens)

    def at(self, seconds, through, tokens=0):
        self.now = 100.0 + seconds
        self.pace.add(self.step(through, tokens))


def test_nothing_is_said_before_anything_was_measured():
    run = Run()
    run.at(5, 0, 0)
    run.pace.add(Progress(None, None, 1000, tokens=9))  # a row alone
    assert (run.pace.tokens_per_second, run.pace.seconds_left) == (None, None)


def test_a_steady_run():
    run = Run()
    for second in range(1, 11):
        run.at(second, 20 * second, 300 * second)
    assert run.pace.tokens_per_second == pytest.approx(300)
    assert run.pace.seconds_left == pytest.approx((1000 - 200) / 20)


def test_what_a_resumed_run_had_is_not_counted():
    """Its first texts are gone through once more; they bring nothing."""
    run = Run(begun=500)
    run.at(1, 300, 0)
    run.at(4, 600, 800)
    assert run.pace.tokens_per_second == pytest.approx(200)
    assert run.pace.seconds_left == pytest.approx(400 / 25)


def test_of_late():
    """A minute at 10 tokens a second, then one at 1,000: the first is forgotten."""
    run = Run(expected=None)
    for half in range(1, 241):
        seconds = half / 2
        tokens = 10 * seconds if seconds <= 60 else 600 + 1000 * (seconds - 60)
        run.at(seconds, half, int(tokens))
    assert run.pace.tokens_per_second == pytest.approx(1000)
    assert run.pace.seconds_left is None  # nobody knows how many texts there are
    assert len(run.pace._samples) < 70


def test_blocks_that_come_minutes_apart():
    run = Run()
    for block in range(1, 5):
        run.at(120 * block, 100 * block, 6000 * block)
        run.at(120 * block + 30, 100 * block, 6000 * block)  # signs of life that say nothing new
    assert run.pace.tokens_per_second == pytest.approx(50)
    assert run.pace.seconds_left == pytest.approx(600 * 1.2)


def test_rows_in_quick_succession_count_to_the_last():
    run = Run()
    for millisecond in range(1, 401):
        run.at(2 + millisecond / 1000, millisecond / 10, millisecond)
    assert run.pace.tokens_per_second == pytest.approx(400 / 2.4)


def test_the_end_brings_no_tokens_and_changes_nothing():
    run = Run()
    run.at(10, 1000, 500)
    run.at(20, 1000, 0)
    assert run.pace.tokens_per_second == pytest.approx(50)
    assert run.pace.seconds_left == 0
