"""Tokens per second and the time left, against sums by hand on a clock of the test's own."""

import time

import pytest

from fillmask_ui.runs.perform import Pace, Progress


@pytest.mark.parametrize(
    ("expected", "begun", "steps", "speed", "left"),
    [
        (1000, 0, [(5, 0, 0)], None, None),
        (1000, 0, [(1, 20, 300), (10, 200, 3000)], 300, (1000 - 200) / 20),
        # What a resumed run had is gone through once more and not counted.
        (1000, 500, [(1, 300, 0), (4, 600, 800)], 200, 400 / 25),
        (None, 0, [(2, 50, 100)], 50, None),
        # Signs of life that say nothing new, and an end that brings no tokens, change nothing.
        (1000, 0, [(120, 100, 6000), (150, 100, 6000)], 50, 900 * 1.2),
        (1000, 0, [(10, 1000, 500), (20, 1000, 0)], 50, 0),
    ],
)
def test_what_is_done_by_the_time_it_took(monkeypatch, expected, begun, steps, speed, left):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pace = Pace(Progress(None, None, expected, through=begun))
    for seconds, through, tokens in steps:
        now = 100.0 + seconds
        pace.add(Progress(None, None, expected, through=through, tokens=tokens))
    assert pace.tokens_per_second == (speed and pytest.approx(speed))
    assert pace.seconds_left == (left and pytest.approx(left))
