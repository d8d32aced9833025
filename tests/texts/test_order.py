"""The seeded order, checked against the datasets library, and picking texts in that order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fillmask_ui.texts.rows import pick, shuffled_positions


@pytest.mark.parametrize("rows", [1, 2, 37, 300, 4358])
@pytest.mark.parametrize("seed", [42, 0, 2**40])
def test_the_order_is_that_of_dataset_shuffle(rows, seed):
    import datasets

    theirs = datasets.Dataset.from_dict({"row": np.arange(rows)}).shuffle(seed=seed)["row"]
    assert np.array_equal(shuffled_positions(rows, seed), theirs)
    assert np.array_equal(shuffled_positions(rows, seed, 30), theirs[:30])


@given(st.lists(st.text(), min_size=1), st.data())
@settings(deadline=None, max_examples=50)
def test_picking_equals_indexing(texts, data):
    positions = data.draw(st.lists(st.integers(0, len(texts) - 1), unique=True))
    picked = list(pick(zip(texts, strict=True), np.array(positions, dtype=np.int64)))
    assert [example.id for example in picked] == positions
    assert [example.text for example in picked] == [texts[position] for position in positions]
