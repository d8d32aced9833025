"""batching against its definitions, its threads against the plain map."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import TableModel

from fillmask_ui import batching
from fillmask_ui.batching import in_order, sharing
from fillmask_ui.errors import ModelOutputError
from fillmask_ui.evaluation import EvaluationConfig, evaluate
from fillmask_ui.filling import fill

LENGTHS = st.lists(st.integers(1, 60), max_size=60)


@given(LENGTHS, st.integers(1, 200), st.integers(1, 40))
def test_every_sequence_is_in_one_batch_within_the_bounds(lengths, max_tokens, max_targets):
    targets = [length // 3 for length in lengths]
    batches = batching.plan_batches(
        lengths, max_tokens=max_tokens, targets=targets, max_targets=max_targets
    )
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        cost = len(batch) * max(lengths[index] for index in batch)
        assert cost <= max_tokens or len(batch) == 1
        assert sum(targets[index] for index in batch) <= max_targets or len(batch) == 1


@given(LENGTHS, st.integers(1, 100), st.integers(1, 9))
def test_windows_keep_order_and_bounds_and_read_one_item_ahead(sizes, max_size, max_items):
    unread = iter(sizes)
    parts = []
    for part in batching.windows(unread, int, max_size=max_size, max_items=max_items):
        parts += part
        assert len(part) <= max_items
        assert sum(part) <= max_size or len(part) == 1
        assert len(sizes) - unread.__length_hint__() <= len(parts) + 1
    assert parts == sizes


@pytest.mark.parametrize(
    "cut",
    [
        lambda logits: logits[:-1],
        lambda logits: logits[0],
        lambda logits: logits[None],
        lambda logits: logits[:, :9],
    ],
)
def test_a_model_that_answers_other_positions_or_words_than_asked_is_told(cut):
    class Careless(TableModel):
        def logits_at(self, *arguments):
            return cut(super().logits_at(*arguments))

    model = Careless()
    for measure in (
        lambda: fill(model, "the [MASK] sat on the [MASK]."),
        lambda: list(evaluate(model, ["the cat sat on the mat."], EvaluationConfig())),
    ):
        with pytest.raises(ModelOutputError, match=r"table-0-0 gave logits \[.*one row per"):
            measure()


def alive():
    return [thread for thread in threading.enumerate() if thread.name.startswith("fillmask")]


@settings(deadline=None)
@given(st.lists(st.integers(0, 3)), st.integers(1, 5))
def test_in_order_is_map(items, workers):
    def slow(item):
        time.sleep(item / 1e4)
        return item, sharing()

    assert list(in_order(slow, items, workers)) == [(item, workers) for item in items]
    assert sharing() == 1
    meeting = threading.Barrier(workers)  # nobody gets past it alone
    list(in_order(lambda _: meeting.wait(300), range(2 * workers), workers))


@pytest.mark.parametrize("pulled", [0, 1, 5])
def test_a_closed_stream_leaves_no_thread_and_no_work(pulled):
    begun, unread = [], iter(range(1000))

    def slow(item):
        begun.append(item)
        time.sleep(0.01)
        return item

    results = in_order(slow, unread, 3)
    for _ in range(pulled):
        next(results)
    results.close()
    assert not alive()
    after = len(begun)
    time.sleep(0.05)
    assert len(begun) == after <= pulled + 7
    assert next(unread) <= pulled + 7


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("of_the_items", [True, False])
def test_an_error_comes_after_the_results_before_it(workers, of_the_items):
    def stream():
        for item in range(100):
            if of_the_items and item == 5:
                raise ValueError("five")
            yield item

    results, received = in_order(lambda item: 5 // (5 - item) and item, stream(), workers), []
    with pytest.raises((ValueError, ZeroDivisionError)):
        received.extend(results)
    assert received == [0, 1, 2, 3, 4]
    assert not alive()
