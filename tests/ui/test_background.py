"""Work done aside: told about while it runs, its answers in the order of the questions."""

import threading

import pytest

from fillmask_ui.models import LoadProgress
from fillmask_ui.ui.background import Done, Turns, Waiting, run_in_background


def test_quick_work_gives_its_result_at_once():
    assert list(run_in_background(lambda tell: 7)) == [Done(7)]


def test_slow_work_says_what_it_does():
    gate = threading.Event()

    def work(tell):
        tell(LoadProgress("download", "fetching", 1, 4))
        assert gate.wait(30)
        return "done"

    states = run_in_background(work)
    assert next(states) == Waiting("fetching", 0.25)
    gate.set()
    *waiting, last = states
    assert last == Done("done")
    assert set(waiting) <= {Waiting("fetching", 0.25)}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_breaks_is_an_error_and_not_an_answer():
    def work(tell):
        raise ZeroDivisionError

    with pytest.raises(RuntimeError, match="log of the server"):
        list(run_in_background(work))


def test_an_answer_after_a_later_one_is_dropped():
    turns = Turns()
    for number in (1, 2):
        turns.ask(number)
    assert turns.answer(2)
    assert not turns.answer(1)
    assert not turns.wants(1)
    assert turns.answer(2)  # asked again, since it may have got lost on the way


def test_what_is_given_up_is_answered_no_more_but_what_comes_after_is():
    turns = Turns()
    turns.ask(1)
    turns.give_up()
    assert not turns.wants(1)
    assert not turns.answer(1)
    turns.ask(2)
    assert turns.answer(2)
