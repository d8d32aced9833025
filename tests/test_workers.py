"""workers against the plain map, and against its promises to whoever stops."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fillmask_ui.batching import Budget, in_order, sharing


def alive():
    return [thread for thread in threading.enumerate() if thread.name.startswith("fillmask")]


@settings(deadline=None)
@given(st.lists(st.integers(0, 3)), st.integers(1, 5))
def test_it_is_map(items, workers):
    def slow(item):
        time.sleep(item / 1e4)
        return item

    assert list(in_order(slow, items, workers)) == items


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_thread_knows_how_many_share(workers):
    assert set(in_order(lambda _: sharing(), range(20), workers)) == {workers}
    assert sharing() == 1


def test_threads_work_at_a_time():
    meeting = threading.Barrier(3)  # nobody gets past it alone
    list(in_order(lambda _: meeting.wait(10), range(6), 3))


def test_one_worker_works_in_the_thread_of_the_caller_and_not_ahead():
    seen = []

    def note(item):
        seen.append((item, threading.current_thread()))
        return item

    results = in_order(note, iter(range(9)), 1)
    next(results)
    assert seen == [(0, threading.current_thread())]


def test_it_reads_a_few_items_ahead_and_no_more():
    read = []

    def stream():
        for index in range(1000):
            read.append(index)
            yield index

    results = in_order(abs, stream(), 3)
    next(results)
    assert len(read) <= 7
    results.close()
    assert len(read) <= 7


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_a_closed_stream_leaves_no_thread_and_no_work(taken):
    begun = []

    def slow(item):
        begun.append(item)
        time.sleep(0.01)
        return item

    results = in_order(slow, range(1000), 3)
    for _ in range(taken):
        next(results)
    results.close()
    assert not alive()
    after = len(begun)
    time.sleep(0.05)
    assert len(begun) == after <= taken + 7


def test_an_error_comes_after_what_was_before_it():
    def fails(item):
        if item == 5:
            raise ValueError("five")
        return item

    for workers in (1, 2, 4):
        results, found = in_order(fails, range(100), workers), []
        with pytest.raises(ValueError, match="five"):
            found.extend(results)
        assert found == [0, 1, 2, 3, 4]
        assert not alive()


def test_an_error_of_the_items_comes_after_all_results():
    def stream():
        yield from range(4)
        raise ValueError("the texts end here")

    for workers in (1, 2):
        results, found = in_order(abs, stream(), workers), []
        with pytest.raises(ValueError, match="the texts end here"):
            found.extend(results)
        assert found == [0, 1, 2, 3]
    assert not alive()


def test_a_budget_is_never_exceeded_and_all_get_their_part():
    budget, lock = Budget(10), threading.Lock()
    held, most = 0, 0

    def take(amount):
        nonlocal held, most
        with budget.part(amount):
            with lock:
                held += amount
                most = max(most, held)
            time.sleep(0.001)
            with lock:
                held -= amount
        return amount

    amounts = [1, 10, 3, 7, 9, 2, 10, 5] * 5
    assert list(in_order(take, amounts, 4)) == amounts
    assert most <= 10
    with pytest.raises(ValueError, match="11 of 10"), budget.part(11):
        pass
