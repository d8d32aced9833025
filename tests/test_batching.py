"""batching against its definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_model import TableModel

from fillmask_ui import batching
from fillmask_ui.errors import ModelOutputError
from fillmask_ui.evaluation import EvaluationConfig, evaluate
from fillmask_ui.filling import fill
from fillmask_ui.unmasking import unmask

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


def test_sorting_leaves_little_padding():
    lengths = np.random.default_rng(0).integers(5, 120, 400).tolist()
    batches = batching.plan_batches(lengths, max_tokens=2048)
    padded = sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)
    assert padded < 1.1 * sum(lengths)


@given(LENGTHS, st.integers(1, 100), st.integers(1, 9))
def test_windows_keep_order_and_bounds(sizes, max_size, max_items):
    parts = list(batching.windows(sizes, lambda size: size, max_size=max_size, max_items=max_items))
    assert [size for part in parts for size in part] == sizes
    for part in parts:
        assert len(part) <= max_items
        assert sum(part) <= max_size or len(part) == 1


def test_windows_read_one_item_ahead_at_most():
    read = []

    def stream():
        for number in range(100):
            read.append(number)
            yield number

    next(batching.windows(stream(), lambda _: 1, max_size=10, max_items=10))
    assert len(read) == 11


def test_pad():
    batch = batching.pad([np.array([5, 6]), np.array([7, 8, 9])], pad_id=1)
    assert batch.input_ids.tolist() == [[5, 6, 1], [7, 8, 9]]
    assert batch.attention_mask.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert batch.input_ids.dtype == batch.attention_mask.dtype == np.int64


def test_an_empty_batch():
    with pytest.raises(ValueError):
        batching.pad([], pad_id=0)


def test_a_model_without_logits_for_all_words_is_told():
    class Narrow(TableModel):
        def logits_at(self, *asked):
            return super().logits_at(*asked)[:, :10]

    with pytest.raises(ModelOutputError, match=r"logits \[1, 10\] .*its tokenizer knows"):
        fill(Narrow(), "the [MASK] sat.")


@pytest.mark.parametrize("cut", [lambda own: own[:-1], lambda own: own[0], lambda own: own[None]])
def test_a_model_that_answers_other_positions_than_asked_is_told(cut):
    class Careless(TableModel):
        def logits_at(self, *asked):
            return cut(super().logits_at(*asked))

    model = Careless()
    for measure in (
        lambda: fill(model, "the [MASK] sat on the [MASK]."),
        lambda: list(evaluate(model, ["the cat sat on the mat."], EvaluationConfig())),
        lambda: next(unmask(model, "the [MASK] sat on the [MASK].")),
    ):
        with pytest.raises(ModelOutputError, match=r"table-0-0 gave logits \[.*one row per"):
            measure()
