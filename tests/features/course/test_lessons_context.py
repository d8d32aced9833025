"""A mask from the left, the right and both sides; attention; the losses of every word."""

import math

import numpy as np
import pytest
from table_model import TableModel
from tiny_models import reference_model, reference_tokenizer

from fillmask_ui import load_model
from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.features.course.context_figures import ALL_WORDS, EXAMPLES
from fillmask_ui.features.course.context_sides import (
    MOST_GRID_TOKENS,
    MOST_GRID_WORDS,
    Sides,
    attention,
    head_map,
    side_losses,
)
from fillmask_ui.files import asset
from fillmask_ui.filling import score_candidate_at, surprisal

TEXT = "The [MASK] barked, at the old postman."


def probability(model, view, word):
    return score_candidate_at(model, view.text, word, view.mask).probability


@pytest.mark.parametrize(
    ("key", "left", "right"),
    # At most so much of the probability with both sides is left with one of them.
    [("lock", 0.1, 0.2), ("postman", 0.01, 0.01), ("tree", 0.8, 0.01), ("cup", 2, 0.01)],
)
def test_the_examples_make_their_points(shipped, key, left, right):
    example = next(example for example in EXAMPLES if example.key == key)
    sentence = Sides.of(shipped, example.text)
    full = probability(shipped, sentence.both(), example.word)
    assert full > 0.3
    assert probability(shipped, sentence.left(), example.word) < left * full
    assert probability(shipped, sentence.right(), example.word) < right * full
    # Of a cup, the left side alone says it all.
    assert (probability(shipped, sentence.left(), example.word) > 0.8 * full) == (key == "cup")


def test_a_cut_text_ends_and_a_hidden_one_goes_on(shipped):
    sentence = Sides.of(shipped, EXAMPLES[1].text)
    assert probability(shipped, sentence.bare(), ".") > 0.9
    assert probability(shipped, sentence.bare(), "dog") < 0.001
    cut = probability(shipped, sentence.right(), "dog")
    assert probability(shipped, sentence.hidden("left"), "dog") > 100 * cut


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_masks_hide_one_token_each_in_any_vocabulary(family, tiny_models):
    tiny = load_model(str(tiny_models.folder(family)))
    sentence = Sides.of(tiny, TEXT)
    mask, token = tiny.vocabulary.mask_id, tiny.vocabulary.mask_token
    encoding = sentence.masked.encoding
    position = encoding.ids.index(mask)
    for direction, hidden in (("left", position - 1), ("right", len(encoding) - position - 3)):
        ids = tiny.vocabulary.encode(sentence.hidden(direction).text.replace("[MASK]", token)).ids
        start = 1 if direction == "left" else position
        assert ids.count(mask) == hidden + 1
        assert ids[start : start + hidden + 1] == (mask,) * (hidden + 1)
        if direction == "left":  # what stays keeps its positions
            assert ids[position:] == encoding.ids[position:]


def test_a_causal_model_looks_back_and_a_masked_one_all_around():
    embedded = load_model("embedded")
    causal, masked = attention(embedded, "The water, [MASK] is blue.")
    assert causal.words == masked.words == ("The", "water", "[MASK]", "is", "blue")
    size = range(5)
    assert [sum(causal.sees(row, read) for read in size) for row in size] == [1, 2, 3, 4, 5]
    assert all(masked.sees(row, read) for row in size for read in size)
    assert (causal.words[causal.guesser], causal.clues) == ("water", 2)
    assert (masked.words[masked.guesser], masked.clues) == ("[MASK]", 4)
    start, _ = attention(embedded, "[MASK] is blue.")
    assert (start.guesser, start.clues) == (None, 0)
    with pytest.raises(TextError, match=f"{MOST_GRID_WORDS} at most"):
        attention(embedded, "very " * MOST_GRID_WORDS + "[MASK]")


def test_a_head_map_holds_the_weights_of_transformers():
    import torch

    text = "The water of Walden Pond is [MASK] blue."
    seen = head_map(load_model("embedded"), text, 3, 2)
    assert seen.shape == (6, 12)
    ids = reference_tokenizer(asset("model"))(text)["input_ids"]
    model = reference_model(asset("model"), attn_implementation="eager", dtype=torch.float32)
    with torch.no_grad():
        attentions = model(torch.tensor([ids]), output_attentions=True).attentions
    np.testing.assert_allclose(seen.weights, attentions[2][0, 1].numpy(), atol=1e-3)  # float16
    assert seen.tokens[seen.mask] == "[MASK]"
    beyond = head_map(load_model("embedded"), text, 99, 99)
    assert (beyond.layer, beyond.head) == seen.shape
    np.testing.assert_allclose(beyond.weights, attentions[5][0, 11].numpy(), atol=1e-3)
    with pytest.raises(TextError, match=f"{MOST_GRID_TOKENS} at most"):
        head_map(load_model("embedded"), "very " * MOST_GRID_TOKENS + "[MASK]", 1, 1)
    with pytest.raises(ModelError, match="does not show its attention"):
        head_map(TableModel(), "the [MASK] sat", 1, 1)


def test_both_sides_are_worth_more_than_twice_either(shipped):
    losses = side_losses(shipped, ALL_WORDS, lambda *_: None)
    assert 2 * losses.mean("both") < min(losses.mean("left"), losses.mean("right"))
    # Explore measures the same losses of words that are hidden one by one.
    words = [word.nll_nats for word in surprisal(shipped, ALL_WORDS).words][: len(losses.words)]
    assert [word.both for word in losses.words] == pytest.approx(words, abs=1e-4)
    assert losses.mean("both") == pytest.approx(math.fsum(words) / len(words), abs=1e-4)
