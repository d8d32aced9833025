"""Occlusion against torch, by hand, over a small exact model."""

import math

import numpy as np
import pytest
import torch
from table_model import TableModel, log_softmax_at

from fillmask_ui import filling
from fillmask_ui.errors import OptionError

MODEL = TableModel(seed=3)
WORDS = MODEL.vocabulary
TEXT = "the walking [MASK] ran, and the [MASK] sat"


@pytest.mark.parametrize(("mask", "position"), [(0, 4), (1, 9)])
def test_every_other_word_by_hand(mask, position):
    """KL from torch; a word of two sub-tokens is replaced by two masks."""
    found = filling.occlude(MODEL, TEXT, mask)
    ids = list(WORDS.encode(TEXT).ids)
    whole = log_softmax_at(MODEL, ids, position)
    assert (found.position, found.target.token_id) == (position, int(whole.argmax()))
    assert found.target.probability == pytest.approx(whole.max().exp().item())
    assert [own.word.text for own in found.words] == [
        *("the", "walking", "ran", ",", "and", "the", "sat"),
    ]
    for own in found.words:
        seen = [WORDS.mask_id if i in own.word.tokens else token for i, token in enumerate(ids)]
        without = log_softmax_at(MODEL, seen, position)
        expected = torch.nn.functional.kl_div(without, whole, log_target=True, reduction="sum")
        assert own.kl_nats == pytest.approx(expected.item(), abs=1e-9)
        change = (without - whole)[found.target.token_id].item()
        assert own.change_nats == pytest.approx(change, abs=1e-9)
        expected = without[found.target.token_id].exp().item()
        assert own.probability == pytest.approx(expected, rel=1e-9)


def test_the_true_word_is_followed_where_it_is_one_token():
    found = filling.occlude(MODEL, TEXT, word="dog")
    assert (found.target.word, found.is_true) == ("dog", True)
    (scored,) = filling.score_candidates(MODEL, TEXT, ["dog"])[0]
    assert (found.target.rank, found.target.nll_nats) == (scored.rank, scored.nll_nats)
    best = filling.occlude(MODEL, TEXT).target
    for other in ("walking", "☃", "quick" + "s" * 80):
        found = filling.occlude(MODEL, TEXT, word=other)
        assert (found.target, found.is_true) == (best, False)


def test_windows():
    model = TableModel(seed=3)
    whole = filling.occlude(model, TEXT)
    model.calls.clear()
    windows = [*filling.occlusion_windows(model, TEXT, window_tokens=30)]
    assert len(windows) == len(model.calls) - 1 > 2
    assert [own for window in windows for own in window.words] == [*whole.words]
    (last,) = filling.occlusion_windows(model, TEXT, start=6)
    assert last.words == whole.words[6:]
    assert filling.occlude(MODEL, "[MASK]").words == ()
    for mask in (-1, 2):
        with pytest.raises(OptionError, match=f"mask {mask} was asked for and the text has 2"):
            filling.occlude(MODEL, TEXT, mask)


def test_impossible_tokens_add_nothing():
    model = TableModel(seed=3)
    model.own[WORDS.mask_id, WORDS.ids["cat"]] = -np.inf
    found = filling.occlude(model, "the [MASK] ran")
    assert all(math.isfinite(own.kl_nats) for own in found.words)
    # And where only the other word makes it impossible, no number can hold the distance.
    model.left[WORDS.mask_id, WORDS.ids["dog"]] = -np.inf
    assert filling.occlude(model, "the [MASK] ran").words[0].kl_nats == math.inf
