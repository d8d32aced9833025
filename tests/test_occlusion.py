"""occlusion and pairs against torch, by hand, over a small exact model and a real one."""

import math

import numpy as np
import pytest
import torch
from table_model import TableModel

from fillmask_ui import filling, pair_masks
from fillmask_ui.errors import OptionError, TextError

MODEL = TableModel(seed=3)
WORDS = MODEL.vocabulary
TEXT = "the walking [MASK] ran, and the [MASK] sat"


def log_softmax(ids, position, model=MODEL):
    """torch's, over the logits at one position of one text, in float64."""
    logits = model.logits_at(
        np.array([ids]), np.ones((1, len(ids)), int), np.array([0]), np.array([position])
    )
    return torch.log_softmax(torch.from_numpy(logits).double(), dim=-1)[0]


@pytest.mark.parametrize(("mask", "position"), [(0, 4), (1, 9)])
def test_every_other_word_by_hand(mask, position):
    """KL from torch; a word of two sub-tokens gives way to two masks."""
    found = filling.occlude(MODEL, TEXT, mask)
    ids = list(WORDS.encode(TEXT).ids)
    whole = log_softmax(ids, position)
    assert found.position == position
    assert found.target.token_id == int(whole.argmax())
    assert found.target.probability == pytest.approx(whole.max().exp().item())
    assert [own.word.text for own in found.words] == [
        *("the", "walking", "ran", ",", "and", "the", "sat"),
    ]
    for own in found.words:
        seen = [WORDS.mask_id if i in own.word.tokens else token for i, token in enumerate(ids)]
        without = log_softmax(seen, position)
        expected = torch.nn.functional.kl_div(without, whole, log_target=True, reduction="sum")
        assert own.kl_nats == pytest.approx(expected.item(), abs=1e-9)
        change = (without - whole)[found.target.token_id].item()
        assert own.change_nats == pytest.approx(change, abs=1e-9)
        expected = without[found.target.token_id].exp().item()
        assert own.probability == pytest.approx(expected, rel=1e-9)


def test_what_the_model_does_not_see_does_not_matter():
    """The table model sees the neighbours alone."""
    found = filling.occlude(MODEL, "the old cat sat on the [MASK] mat")
    matters = {own.word.text for own in found.words if own.kl_nats > 1e-9}
    assert matters == {"the", "mat"}
    assert found.words[0].kl_nats == 0


def test_the_true_word_is_followed_where_it_is_one_token():
    found = filling.occlude(MODEL, TEXT, word="dog")
    assert found.target.word == "dog"
    assert found.is_true
    (scored,) = filling.score_candidates(MODEL, TEXT, ["dog"])[0]
    assert (found.target.rank, found.target.nll_nats) == (scored.rank, scored.nll_nats)
    best = filling.occlude(MODEL, TEXT).target
    for other in ("walking", "☃", "quick" + "s" * 80):
        found = filling.occlude(MODEL, TEXT, word=other)
        assert (found.target, found.is_true) == (best, False)


def test_windows_of_occlusion():
    model = TableModel(seed=3)
    whole = filling.occlude(model, TEXT)
    model.calls.clear()
    windows = [*filling.occlusion_windows(model, TEXT, window_tokens=30)]
    assert len(windows) == len(model.calls) - 1 > 2
    assert [own for window in windows for own in window.words] == [*whole.words]
    (last,) = filling.occlusion_windows(model, TEXT, start=6)
    assert last.words == whole.words[6:]


def test_a_mask_alone_has_no_words_to_hide():
    assert filling.occlude(MODEL, "[MASK]").words == ()


def test_impossible_tokens_add_nothing():
    model = TableModel(seed=3)
    model.own[WORDS.mask_id, WORDS.ids["cat"]] = -np.inf
    found = filling.occlude(model, "the [MASK] ran")
    assert all(math.isfinite(own.kl_nats) for own in found.words)
    # And where only the other word makes it impossible, no number can hold the distance.
    model.left[WORDS.mask_id, WORDS.ids["dog"]] = -np.inf
    assert filling.occlude(model, "the [MASK] ran").words[0].kl_nats == math.inf


@pytest.mark.parametrize("mask", [-1, 2])
def test_a_mask_that_is_not_there(mask):
    with pytest.raises(OptionError, match=f"mask {mask} was asked for and the text has 2"):
        filling.occlude(MODEL, TEXT, mask)


def test_paired_candidates_are_those_of_either_sentence():
    first, second = "the cat [MASK] on the mat", "the dog [MASK] in it"
    pair = pair_masks(MODEL, first, second, top_k=3, words=["walking", "ran"])
    sides = [
        log_softmax(WORDS.encode(text).ids, 3).exp().numpy() for text in (first, second)
    ]  # each [V]
    wanted = {int(i) for side in sides for i in np.argsort(-side, kind="stable")[:3]}
    wanted.add(WORDS.ids["ran"])
    assert {own.token_id for own in pair.candidates if own.token_id is not None} == wanted
    for own in pair.candidates:
        if own.token_id is not None:
            expected = [side[own.token_id] for side in sides]
            np.testing.assert_allclose(own.probabilities, expected, rtol=1e-9)
            assert own.difference == pytest.approx(expected[1] - expected[0])
            assert own.log_ratio_nats == pytest.approx(math.log(expected[0] / expected[1]))
    gaps = [abs(own.difference) for own in pair.candidates]
    assert gaps == sorted(gaps, reverse=True)
    assert {own.word for own in pair.candidates if own.asked} == {"walking", "ran"}
    (walking,) = [own for own in pair.candidates if own.word == "walking"]
    for text, nll in ((first, walking.nll_nats), (second, walking.other_nll_nats)):
        assert nll == filling.score_candidates(MODEL, text, ["walking"])[0][0].nll_nats


def test_a_pair_is_that_of_two_predictions():
    """One side with itself: no difference; another mask: that of `fill`."""
    same = pair_masks(MODEL, TEXT, TEXT, top_k=4)
    assert {own.difference for own in same.candidates} == {0.0}
    other = pair_masks(MODEL, TEXT, TEXT, masks=(0, 1), top_k=4)
    masks = filling.fill(MODEL, TEXT, top_k=4, joint=0).masks
    found = [{own.token_id: own.probabilities[side] for own in other.candidates} for side in (0, 1)]
    for side, mask in zip(found, masks, strict=True):
        for candidate in mask.candidates:
            assert side[candidate.token_id] == pytest.approx(candidate.probability)


def test_pairs_that_cannot_be_made():
    with pytest.raises(TextError, match="has no mask"):
        pair_masks(MODEL, "the [MASK]", "the cat")
    with pytest.raises(TextError, match="empty"):
        pair_masks(MODEL, "the [MASK]", " ")
    with pytest.raises(OptionError, match="mask 1 was asked for"):
        pair_masks(MODEL, "the [MASK]", "a [MASK]", masks=(0, 1))
    with pytest.raises(OptionError, match="top-k"):
        pair_masks(MODEL, "the [MASK]", "a [MASK]", top_k=0)
    with pytest.raises(OptionError, match="allowed"):
        pair_masks(MODEL, "the [MASK]", "a [MASK]", words=["walking"], most_work=3)
