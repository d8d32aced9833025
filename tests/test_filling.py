"""filling against enumeration by hand over a small exact model."""

import json
import math

import numpy as np
import pytest
import torch
from table_model import TableModel

from fillmask_ui import filling
from fillmask_ui.errors import ModelOutputError, OptionError, TextError
from fillmask_ui.filling import prompt
from fillmask_ui.records import Candidate, Filling, MaskFilling

MODEL = TableModel(seed=3)
WORDS = MODEL.vocabulary


def probabilities(ids, position, model=MODEL):
    """softmax of torch over the logits at one position of one text."""
    logits = model.logits_at(
        np.array([ids]), np.ones((1, len(ids)), int), np.array([0]), np.array([position])
    )
    return torch.softmax(torch.from_numpy(logits).double(), dim=-1)[0].numpy()


def test_candidates_are_the_softmax_over_the_whole_vocabulary():
    found = filling.fill(MODEL, "the [MASK] sat on the mat .", top_k=None).masks[0]
    expected = probabilities(WORDS.encode("the [MASK] sat on the mat .").ids, found.position)
    assert found.position == 2
    assert [c.token_id for c in found.candidates] == list(np.argsort(-expected, kind="stable"))
    np.testing.assert_allclose(
        [c.probability for c in found.candidates], np.sort(expected)[::-1], rtol=1e-12
    )
    assert sum(c.probability for c in found.candidates) == pytest.approx(1, abs=1e-12)
    assert found.entropy_nats == pytest.approx(-(expected * np.log(expected)).sum())
    assert found.perplexity == pytest.approx(math.exp(found.entropy_nats))


@pytest.mark.parametrize(
    "text", ["the <mask> sat", "the [MASK] sat", "the [mask] sat", "the ___ sat", "the ______ sat"]
)
def test_every_spelling_of_a_mask(text):
    found = filling.fill(MODEL, text)
    assert found.encoding.text == "the [MASK] sat"
    assert found == filling.fill(MODEL, "the [MASK] sat")


def test_two_underscores_are_no_mask():
    assert prompt.normalise_masks("a __ b", "[MASK]") == "a __ b"


def test_masks_are_independent_and_share_one_pass():
    model = TableModel(seed=3)
    found = filling.fill(model, "the [MASK] and the [MASK] ran", joint=0)
    assert [mask.position for mask in found.masks] == [2, 5]
    assert model.calls == [((1, 8), 2)]
    for mask in found.masks:
        expected = probabilities(found.encoding.ids, mask.position)
        assert mask.candidates[0].probability == pytest.approx(expected.max())


def test_more_masks_than_one_call_takes():
    found = filling.fill(TableModel(seed=3, max_tokens=512), "the [MASK] " * 150, joint=0)
    assert len(found.masks) == 150
    expected = probabilities(found.encoding.ids, found.masks[-1].position)
    assert found.masks[-1].candidates[0].probability == pytest.approx(expected.max())


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
    assert scored.nll_nats == pytest.approx(-math.log(first * second))
    assert scored.probability == pytest.approx(first * second)
    assert scored.rank is None


def test_a_word_of_one_token_is_its_candidate():
    found = filling.fill(MODEL, "the [MASK] sat", top_k=None, candidates=["dog", "cat"])
    (mask,) = found.masks
    for scored in mask.scored:
        (same,) = [c for c in mask.candidates if c.word == scored.word and "##" not in c.token]
        assert (scored.rank, scored.probability) == (same.rank, same.probability)
        assert scored.nll_bits == pytest.approx(scored.nll_nats / math.log(2))
    assert [scored.word for scored in mask.scored] == ["dog", "cat"]


def test_joint_fillings_equal_exhaustive_enumeration():
    """With a beam as wide as the vocabulary the search visits every pair."""
    text = "the [MASK] sat on [MASK] mat"
    found = filling.fill(MODEL, text, joint=10, beam_width=MODEL.vocabulary.size)
    ids = list(WORDS.encode(text).ids)
    first = probabilities(ids, 2)
    pairs = {}
    for a in range(len(first)):
        filled = [*ids[:2], a, *ids[3:]]
        for b, second in enumerate(probabilities(filled, 5)):
            pairs[a, b] = first[a] * second
    best = sorted(pairs, key=pairs.get, reverse=True)[:10]
    assert [tuple(p.token_id for p in joint.parts) for joint in found.joint] == best
    for joint, pair in zip(found.joint, best, strict=True):
        assert joint.probability == pytest.approx(pairs[pair])
        assert joint.log_probability_nats == pytest.approx(-sum(p.nll_nats for p in joint.parts))


@pytest.mark.parametrize("choice", [{"joint": 101}, {"beam_width": 10**30}])
def test_joint_without_end_is_refused(choice):
    with pytest.raises(OptionError, match=r"joint must lie from 0 to 100, .* 1 to 10,000"):
        filling.fill(MODEL, "the [MASK] [MASK] ran", **choice)


def test_joint_is_conditional_and_differs_from_the_product():
    """Adjacent masks depend on each other, so the joint best is not the pair of the bests."""
    found = filling.fill(MODEL, "the [MASK] [MASK] ran", joint=1, beam_width=60)
    product = sum(mask.candidates[0].nll_nats for mask in found.masks)
    assert found.joint[0].nll_nats != pytest.approx(product, abs=1e-3)


def test_joint_only_where_there_are_2_to_16_masks():
    assert filling.fill(MODEL, "a [MASK] ran").joint == ()
    assert filling.fill(MODEL, "[MASK] " * 16, beam_width=2).joint
    assert filling.fill(MODEL, "[MASK] " * 17).joint == ()


def test_filled_text_keeps_everything_else_and_joins_continuations():
    encoding = WORDS.encode("The  quick [MASK] [MASK],\tok")
    first, second = prompt.mask_positions(encoding, WORDS)
    tokens = {first: WORDS.ids["##ly"], second: WORDS.ids["ran"]}
    assert prompt.filled_text(encoding, WORDS, tokens) == "The  quickly ran,\tok"
    assert prompt.filled_text(encoding, WORDS, {second: WORDS.ids["ran"]}) == (
        "The  quick [MASK] ran,\tok"
    )


def test_filled_words_stand_apart_where_the_model_sees_words():
    for text, tokens, expected in (
        ("the [MASK][MASK].", ("cat", "ran"), "the cat ran."),
        ("the [MASK][MASK].", ("quick", "##ly"), "the quickly."),
        ("it was[MASK].", ("old",), "it was old."),
        ("un[MASK] cat", ("kind",), "un kind cat"),
        ("un[MASK] cat", ("##able",), "unable cat"),
    ):
        encoding = WORDS.encode(text)
        ids = dict(
            zip(
                prompt.mask_positions(encoding, WORDS),
                (WORDS.ids[token] for token in tokens),
                strict=True,
            )
        )
        found = prompt.filled_text(encoding, WORDS, ids)
        assert found == expected
        wanted = [ids.get(place, token) for place, token in enumerate(encoding.ids)]
        assert list(WORDS.encode(found).ids) == wanted


def test_a_prediction_of_the_mask_itself_leaves_the_mask():
    encoding = WORDS.encode("the [MASK] and [MASK]")
    first, second = prompt.mask_positions(encoding, WORDS)
    tokens = {first: WORDS.mask_id, second: WORDS.ids["ran"]}
    assert prompt.filled_text(encoding, WORDS, tokens) == "the [MASK] and ran"


def test_candidates_given_as_one_text_are_refused():
    """Else its letters would be scored."""
    for ask in (
        lambda: filling.fill(MODEL, "the [MASK]", candidates="cold"),
        lambda: filling.score_candidates(MODEL, "the [MASK]", "cold"),
    ):
        with pytest.raises(OptionError, match="give a list of words"):
            ask()


def test_more_work_than_allowed_is_refused_before_the_model_runs():
    model = TableModel(seed=3)
    words = ["quickly", "slowness", "cat"]
    # Two masks, two words of two sub-tokens each: 2 x 2 texts of 7 - 1 + 2 tokens a mask.
    text, cost = "the [MASK] and [MASK] ran", 2 * 2 * 2 * (7 - 1 + 2)
    with pytest.raises(OptionError, match=f"read {cost} tokens, and here {cost - 1} are allowed"):
        filling.score_candidates(model, text, words, most_work=cost - 1)
    assert model.calls == []
    allowed = filling.score_candidates(model, text, words, most_work=cost)
    assert allowed == filling.score_candidates(model, text, words)


def test_one_word_at_one_mask_scores_as_among_all():
    model = TableModel(seed=3)
    text, words = "the [MASK] and [MASK] ran", ["quickly", "cat"]
    everywhere = filling.score_candidates(model, text, words)
    for mask in range(2):
        for place, word in enumerate(words):
            model.calls.clear()
            found = filling.score_candidate_at(model, text, word, mask)
            assert found == everywhere[mask][place]
            assert sum(rows for _, rows in model.calls) <= 3
    with pytest.raises(OptionError, match="allowed"):
        filling.score_candidate_at(model, text, "quickly", 0, most_work=1)


def test_a_word_of_very_many_tokens_is_scored_in_several_calls():
    """The limit of rows a call bounds memory: one number a row is kept."""
    model = TableModel(seed=3, max_tokens=400)
    word = "quick" + "s" * 70
    (score,) = filling.score_candidates(model, "the [MASK] ran", [word])[0]
    assert len(score.parts) == 71
    assert max(rows for _, rows in model.calls) <= 64
    by_hand = [
        *WORDS.encode("the").ids[:-1],
        *(WORDS.encode_word(word)),
        *WORDS.encode("ran").ids[1:],
    ]
    for part in (0, 63, 64, 70):
        seen = [
            WORDS.mask_id if 2 + part <= place < 2 + 71 else token
            for place, token in enumerate(by_hand)
        ]
        expected = probabilities(seen, 2 + part, TableModel(seed=3, max_tokens=400))
        assert score.parts[part].nll_nats == pytest.approx(-math.log(expected[by_hand[2 + part]]))


def test_nll_is_null_in_json_where_it_is_infinite():
    impossible = Candidate(1, 0, "a", "a", 0.0, math.inf)
    mask = MaskFilling(1, 0.0, (impossible,))
    found = Filling(WORDS.encode("[MASK]"), MODEL.signature, (mask,))
    assert json.loads(found.to_json())["masks"][0]["candidates"][0]["nll_nats"] is None


def test_notebook_table_escapes_what_the_user_typed():
    found = filling.fill(MODEL, "<script>alert(1)</script> [MASK]")
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


@pytest.mark.parametrize("text", ["", "  \n", "\t"])
def test_blank_text(text):
    with pytest.raises(TextError, match="the text is empty"):
        filling.fill(MODEL, text)


def test_no_mask():
    with pytest.raises(TextError, match=r"has no mask: put \[MASK\]"):
        filling.fill(MODEL, "the cat sat")


def test_too_long_text_names_both_lengths_and_cuts_nothing():
    with pytest.raises(TextError, match="103 tokens and this model takes at most 64") as error:
        filling.fill(MODEL, "the " * 100 + "[MASK]")
    assert "nothing was cut" in str(error.value)


def test_a_candidate_that_makes_the_text_too_long():
    with pytest.raises(TextError, match="'walking' the text has 65 tokens"):
        filling.fill(MODEL, "the " * 61 + "[MASK]", candidates=["walking"])


@pytest.mark.parametrize("k", [0, -1, 101, 10**9])
def test_k_out_of_range(k):
    with pytest.raises(OptionError, match="from 1 to 100, or 'all'"):
        filling.fill(MODEL, "the [MASK]", top_k=k)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["😀"], "cannot be spelled"),
        ([" "], "has no tokens"),
        (["[MASK]"], "is itself a mask"),
        ([], "no candidate words"),
    ],
)
def test_candidates_that_cannot_be_scored(words, message):
    with pytest.raises(OptionError, match=message):
        filling.score_candidates(MODEL, "the [MASK]", words)


def test_nan_is_said_and_not_shown_as_zero():
    model = TableModel(seed=3)
    model.own[WORDS.mask_id, 5] = np.nan
    with pytest.raises(ModelOutputError, match="NaN"):
        filling.fill(model, "the [MASK]")
