"""Work done aside: told about while it runs, its answers in the order of the questions."""

import threading

import pytest

from fillmask_ui.models import LoadProgress
from fillmask_ui.ui.background import Done, Tasks, Waiting, run_in_background


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


def test_work_that_breaks_is_an_error_and_not_an_answer():
    def work(tell):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(run_in_background(work))


def test_who_asks_again_hears_of_the_same_task_until_it_has_ended():
    gate, begun = threading.Event(), []

    def work(tell):
        begun.append(1)
        tell(LoadProgress("download", "fetching", 1, 2))
        assert gate.wait(30)
        return len(begun)

    tasks = Tasks()
    assert tasks.wait("a", work) == Waiting("fetching", 0.5)
    assert tasks.wait("a", work) == Waiting("fetching", 0.5)
    gate.set()
    while isinstance(state := tasks.wait("a", work), Waiting):
        pass
    assert state == Done(1)
    assert tasks.wait("a", work) == Done(2)


def test_a_task_that_failed_is_begun_anew():
    def refuse(tell):
        raise KeyError("x")

    tasks = Tasks()
    with pytest.raises(KeyError):
        tasks.wait("a", refuse)
    assert tasks.wait("a", lambda tell: 7) == Done(7)
