"""filling against enumeration by hand over a small exact model."""

import math

import numpy as np
import pytest
from table_model import TableModel, log_softmax_at

from fillmask_ui import filling
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling.prompt import filled_text, mask_positions, normalise_masks

MODEL = TableModel(seed=3)
WORDS = MODEL.vocabulary
LONG = TableModel(seed=3, max_tokens=512)


def probabilities(ids, position):
    return log_softmax_at(MODEL, ids, position).exp().numpy()


def test_candidates_are_the_softmax_over_the_whole_vocabulary():
    filled = filling.fill(MODEL, "the [MASK] sat on the mat .", top_k=None).masks[0]
    expected = probabilities(WORDS.encode("the [MASK] sat on the mat .").ids, filled.position)
    assert filled.position == 2
    assert [c.token_id for c in filled.candidates] == list(np.argsort(-expected, kind="stable"))
    np.testing.assert_allclose(
        [c.probability for c in filled.candidates], np.sort(expected)[::-1], rtol=1e-12
    )
    assert filled.entropy_nats == pytest.approx(-(expected * np.log(expected)).sum())
    assert filled.perplexity == pytest.approx(math.exp(filled.entropy_nats))
    table = filling.fill(MODEL, "<script>alert(1)</script> [MASK]")._repr_html_()
    assert "<script>" not in table and "&lt;script&gt;" in table


@pytest.mark.parametrize("mask", ["<mask>", "[mask]", "___", "______"])
def test_every_spelling_of_a_mask(mask):
    filled = filling.fill(MODEL, f"the {mask} sat")
    assert filled == filling.fill(MODEL, "the [MASK] sat")
    assert normalise_masks("a __ b", "[MASK]") == "a __ b"


@pytest.mark.parametrize("count", [2, 150])
def test_masks_are_independent_and_share_passes(count):
    """Of 150 masks 64 go into one call."""
    LONG.calls.clear()
    filled = filling.fill(LONG, "the [MASK] and " * count, joint=0)
    assert LONG.calls == [
        ((1, 3 * count + 2), rows) for rows in ([2] if count == 2 else [64, 64, 22])
    ]
    for mask in filled.masks[:: count - 1]:
        expected = probabilities(filled.encoding.ids, mask.position)
        assert mask.candidates[0].probability == pytest.approx(expected.max())
    assert len(filled.masks) == count


def test_a_word_of_several_sub_tokens_by_the_chain_rule():
    """walk ##ing: P(walk | [MASK] [MASK]) P(##ing | walk [MASK]), written out by hand."""
    ((scored,),) = filling.score_candidates(MODEL, "the cat was [MASK] .", ["walking"])
    ids = list(WORDS.encode("the cat was [MASK] [MASK] .").ids)
    walk, ing = WORDS.ids["walk"], WORDS.ids["##ing"]
    first = probabilities(ids, 4)[walk]
    ids[4] = walk
    second = probabilities(ids, 5)[ing]
    assert [part.token for part in scored.parts] == ["walk", "##ing"]
    np.testing.assert_allclose(
        [part.nll_nats for part in scored.parts], [-math.log(first), -math.log(second)]
    )
    assert scored.probability == pytest.approx(first * second)
    assert scored.rank is None


def test_a_word_of_one_token_is_its_candidate():
    (mask,) = filling.fill(MODEL, "the [MASK] sat", top_k=None, candidates=["dog", "cat"]).masks
    for scored in mask.scored:
        (same,) = [c for c in mask.candidates if c.word == scored.word and "##" not in c.token]
        assert (scored.rank, scored.probability) == (same.rank, same.probability)
        assert scored.nll_bits == pytest.approx(scored.nll_nats / math.log(2))
    assert [scored.word for scored in mask.scored] == ["dog", "cat"]


def test_joint_fillings_equal_exhaustive_enumeration():
    """With a beam as wide as the vocabulary the search visits every pair of adjacent masks."""
    text = "the [MASK] [MASK] ran"
    filled = filling.fill(MODEL, text, joint=10, beam_width=MODEL.vocabulary.size)
    ids = list(WORDS.encode(text).ids)
    first = probabilities(ids, 2)
    pairs = {}
    for a in range(len(first)):
        for b, second in enumerate(probabilities([*ids[:2], a, *ids[3:]], 3)):
            pairs[a, b] = first[a] * second
    assert [len(filling.fill(MODEL, "[MASK] " * n, beam_width=2).joint) for n in (1, 17)] == [0, 0]
    best = sorted(pairs, key=pairs.get, reverse=True)[:10]
    assert [tuple(p.token_id for p in joint.parts) for joint in filled.joint] == best
    for joint, pair in zip(filled.joint, best, strict=True):
        assert joint.probability == pytest.approx(pairs[pair])
        assert joint.log_probability_nats == pytest.approx(-sum(p.nll_nats for p in joint.parts))


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("The  quick [MASK] [MASK],\tok", ("##ly", "ran"), "The  quickly ran,\tok"),
        ("the quick [MASK] [MASK]", ("[MASK]", "ran"), "the quick [MASK] ran"),
        ("the [MASK][MASK].", ("cat", "ran"), "the cat ran."),
        ("the [MASK][MASK].", ("quick", "##ly"), "the quickly."),
        ("it was[MASK].", ("old",), "it was old."),
        ("un[MASK] cat", ("kind",), "un kind cat"),
        ("un[MASK] cat", ("##able",), "unable cat"),
    ],
)
def test_filled_text_keeps_all_else_and_is_what_the_model_reads(text, tokens, expected):
    encoding = WORDS.encode(text)
    masks = zip(mask_positions(encoding, WORDS), tokens, strict=True)
    filled = {position: WORDS.ids[token] for position, token in masks}
    assert filled_text(encoding, WORDS, filled) == expected
    wanted = [filled.get(place, token) for place, token in enumerate(encoding.ids)]
    assert list(WORDS.encode(expected).ids) == wanted


def test_more_work_than_allowed_is_refused_before_the_model_runs():
    model, words = TableModel(seed=3), ["quickly", "slowness", "cat"]
    # Two masks, two words of two sub-tokens each: 2 x 2 texts of 7 - 1 + 2 tokens a mask.
    text, cost = "the [MASK] and [MASK] ran", 2 * 2 * 2 * (7 - 1 + 2)
    with pytest.raises(OptionError, match=f"read {cost} tokens, and here {cost - 1} are allowed"):
        filling.score_candidates(model, text, words, most_work=cost - 1)
    with pytest.raises(OptionError, match="allowed"):
        filling.score_candidate_at(model, text, "quickly", 0, most_work=1)
    assert model.calls == []
    allowed = filling.score_candidates(model, text, words, most_work=cost)
    for mask, scored in enumerate(allowed):
        alone = [filling.score_candidate_at(model, text, word, mask) for word in words]
        assert alone == [*scored]


def test_texts_together_are_each_as_alone():
    texts = ["the [MASK] sat", "the [MASK] sat on the [MASK] .", "[MASK] ran", "the [MASK] sat"]
    LONG.calls.clear()
    filled = filling.fill(LONG, (text for text in texts), candidates=["walking"], joint=2)
    assert LONG.calls[0] == ((3, 9), 5)  # equal texts are read once
    assert filled == [filling.fill(LONG, t, candidates=["walking"], joint=2) for t in texts]
    assert filling.fill(LONG, []) == []
    for given, said in ((["a [MASK]", "a"], "text 1: the text has no"), ([None], "text 0 is None")):
        with pytest.raises(TextError, match=said):
            filling.fill(MODEL, given)
    with pytest.raises(TextError, match=r"these are bytes: b'the \[MASK\]'; decode them first"):
        filling.fill(MODEL, b"the [MASK]")
    with pytest.raises(TextError, match="these are bytes"):
        filling.surprisal(MODEL, b"the cat")
    with pytest.raises(TextError, match="the type was int"):
        filling.fill(MODEL, 5)
