"""Two models at the masks of one text, against scipy and against each model alone."""

import json
import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from table_model import TableModel, TableVocabulary, letter_vocabulary

from fillmask_ui import fill, score_candidates
from fillmask_ui.comparing import compare
from fillmask_ui.errors import ModelOutputError, OptionError, TextError
from fillmask_ui.models import load_model

FIRST, SECOND = TableModel(seed=3), TableModel(seed=3, noise=0.8)
OTHER = TableModel(seed=5, vocabulary=letter_vocabulary())
TEXT = "the [MASK] and the [MASK] ran ."


def whole(model, text=TEXT):
    """Per mask: token id to its candidate, of the whole vocabulary."""
    return [
        {own.token_id: own for own in mask.candidates}
        for mask in fill(model, text, top_k=None, joint=0).masks
    ]


def distribution(candidates):
    return np.array([candidates[token_id].probability for token_id in sorted(candidates)])


def test_every_number_is_that_of_either_model_alone():
    found = compare(FIRST, SECOND, TEXT, top_k=4, candidates=["mat", "walking"])
    assert found.first == fill(FIRST, TEXT, top_k=4, candidates=["mat", "walking"])
    assert found.second == fill(SECOND, TEXT, top_k=4, candidates=["mat", "walking"])
    alone = zip(whole(FIRST), whole(SECOND), strict=True)
    for number, (mask, (own, other)) in enumerate(zip(found.masks, alone, strict=True)):
        assert mask.position == mask.other_position == found.first.masks[number].position
        assert mask.entropy_nats == found.first.masks[number].entropy_nats
        assert mask.other_entropy_nats == found.second.masks[number].entropy_nats
        for row in mask.candidates:
            if row.word == "walking":
                ((a,), (b,)) = (
                    score_candidates(model, TEXT, ["walking"])[number : number + 1][0]
                    for model in (FIRST, SECOND)
                )
                assert row.token_id is None and row.rank is None and row.rank_change is None
            else:
                a, b = own[row.token_id], other[row.token_id]
                assert (row.token, row.listed, row.other_listed) == (
                    a.token,
                    a.rank <= 4,
                    b.rank <= 4,
                )
                assert row.rank_change == a.rank - b.rank
            assert (row.probability, row.nll_nats, row.rank) == (a.probability, a.nll_nats, a.rank)
            assert (row.other_probability, row.other_nll_nats, row.other_rank) == (
                b.probability,
                b.nll_nats,
                b.rank,
            )
            assert row.difference == b.probability - a.probability
        best = [max(row.probability, row.other_probability) for row in mask.candidates]
        assert best == sorted(best, reverse=True)
        listed = {i for side in (own, other) for i, c in side.items() if c.rank <= 4}
        kept = {row.token_id for row in mask.candidates if not row.asked}
        assert listed - {FIRST.vocabulary.ids["mat"]} <= kept <= listed
        assert {row.word for row in mask.candidates if row.asked} == {"mat", "walking"}


def test_divergences_are_those_of_scipy():
    found = compare(FIRST, SECOND, TEXT)
    for mask, own, other in zip(found.masks, whole(FIRST), whole(SECOND), strict=True):
        p, q = distribution(own), distribution(other)
        assert mask.kl_nats == pytest.approx(entropy(p, q), rel=1e-12)
        assert mask.js_nats == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-12)
        assert 0 < mask.js_nats < math.log(2)
        assert mask.flipped == (p.argmax() != q.argmax())
    assert {mask.flipped for mask in found.masks} == {True, False}


def test_a_vocabulary_filled_up_to_a_rounder_width_is_compared_over_what_both_have():
    width = FIRST.vocabulary.size + 7
    padded = TableModel(seed=3, noise=0.8, width=width)
    (mask, _) = compare(FIRST, padded, TEXT, top_k=2).masks
    p, q = (distribution(whole(model)[0])[: FIRST.vocabulary.size] for model in (FIRST, padded))
    assert mask.kl_nats == pytest.approx(entropy(p, q), rel=1e-10)  # scipy makes each sum to 1
    assert mask.js_nats == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-10)


class Impossible(TableModel):
    """Gives no probability to some tokens."""

    def __init__(self, *token_ids):
        super().__init__(seed=3)
        self.own[:, list(token_ids)] = -np.inf


def test_impossible_tokens():
    """KL to a model that forbids a token is infinite, Jensen-Shannon is not."""
    (mask, _) = compare(FIRST, Impossible(7, 9), TEXT).masks
    p, q = distribution(whole(FIRST)[0]), distribution(whole(Impossible(7, 9))[0])
    assert mask.kl_nats == math.inf
    assert mask.js_nats == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-12)
    (mask, _) = compare(Impossible(7, 9), Impossible(9, 7), TEXT).masks
    assert (mask.kl_nats, mask.js_nats) == (0, 0)
    (values, _) = json.loads(compare(FIRST, Impossible(7), TEXT).to_json())["masks"]
    assert values["compare"]["kl_nats"] is None


def test_the_same_model_twice_differs_in_nothing():
    found = compare(FIRST, FIRST, TEXT, candidates=["walking"])
    assert found.first == found.second
    for mask in found.masks:
        assert (mask.kl_nats, mask.js_nats, mask.flipped) == (0, 0, False)
        assert mask.entropy_nats == mask.other_entropy_nats
        assert {row.difference for row in mask.candidates} == {0}
        assert all(row.rank == row.other_rank for row in mask.candidates)
        assert all(row.listed == row.other_listed for row in mask.candidates)
    assert all(own.nll_nats == own.other_nll_nats for own in found.joint)


def test_joint_fillings_of_either_under_both():
    found = compare(FIRST, SECOND, TEXT, joint=3)
    alone = [
        {own.text: own.nll_nats for own in fill(model, TEXT, joint=100, beam_width=2000).joint}
        for model in (FIRST, SECOND)
    ]
    assert {own.text for own in found.joint if own.listed} == {j.text for j in found.first.joint}
    assert {own.text for own in found.joint if own.other_listed} == {
        j.text for j in found.second.joint
    }
    assert any(not own.listed for own in found.joint)
    for own in found.joint:
        assert own.nll_nats == alone[0].get(own.text, own.nll_nats)
        assert own.other_nll_nats == alone[1].get(own.text, own.other_nll_nats)
    assert sum(own.text in alone[1] for own in found.joint if not own.other_listed) > 0


def test_two_tokenizers_are_compared_by_word():
    found = compare(FIRST, OTHER, TEXT, top_k=6, candidates=["stone"], joint=3)
    assert found.by_word and "different tokenizers" in found.notes[0]
    alone = whole(FIRST), whole(OTHER)
    for number, mask in enumerate(found.masks):
        assert mask.kl_nats is None and mask.js_nats is None
        for row in mask.candidates:
            ids = OTHER.vocabulary.encode_word(row.word)
            if row.listed and not row.token.startswith("##") and row.token_id > 4:
                own = alone[0][number][row.token_id]
                assert (row.word, row.probability, row.rank) == (
                    own.word,
                    own.probability,
                    own.rank,
                )
                scored = score_candidates(OTHER, TEXT, [row.word])[number][0]
                assert row.other_probability == scored.probability
                assert row.other_rank == scored.rank
            elif row.listed:  # an ending is no word
                assert row.other_probability is None and row.difference is None
            if row.asked:
                assert len(ids) > 1 and row.other_rank is None and row.rank
        assert any(row.other_listed and row.probability is None for row in mask.candidates)
        words = [
            m.candidates[0].word for m in (found.first.masks[number], found.second.masks[number])
        ]
        assert mask.flipped == (words[0] != words[1])
    assert {own.listed for own in found.joint} == {True, False}
    assert all(own.nll_nats is not None for own in found.joint if own.listed)


def test_each_model_gets_its_own_mask(tiny_models):
    """A WordPiece and a byte-level BPE model, made with transformers, as their users load them."""
    bert, roberta = (load_model(str(tiny_models.folder(f))) for f in ("bert", "roberta"))
    text = "The cat sat on the [MASK] by the ___."
    for first, second in ((bert, roberta), (roberta, bert)):
        found = compare(first, second, text, top_k=8, candidates=["river"])
        assert found.by_word and len(found.masks) == 2
        assert found.first == fill(first, text, top_k=8, candidates=["river"])
        assert found.second == fill(second, text, top_k=8, candidates=["river"])
        for number, mask in enumerate(found.masks):
            (asked,) = (row for row in mask.candidates if row.asked)
            assert asked.probability == found.first.masks[number].scored[0].probability
            assert asked.other_probability == found.second.masks[number].scored[0].probability


@pytest.mark.parametrize("family", ["xlm-roberta", "deberta-v2"])
def test_real_models_with_one_tokenizer(tiny_models, family):
    model = load_model(str(tiny_models.folder(family)))
    (mask,) = compare(model, model, "The cat sat on the [MASK].", top_k=3).masks
    assert (mask.kl_nats, mask.js_nats, mask.flipped) == (0, 0, False)
    assert [row.rank for row in mask.candidates] == [1, 2, 3]


def test_json_is_that_of_the_first_model_with_the_second_beside_it():
    found = compare(FIRST, SECOND, TEXT, top_k=2)
    values = json.loads(found.to_json())
    compared = [mask.pop("compare") for mask in values["masks"]]
    assert len(values.pop("joint_compare")) == len(found.joint)
    assert values == json.loads(fill(FIRST, TEXT, top_k=2).to_json())
    assert compared[0]["model"] == SECOND.signature.name
    assert compared[0]["kl_nats"] == found.masks[0].kl_nats
    assert compared[0]["candidates"][0]["other_rank"] == found.masks[0].candidates[0].other_rank
    single = compare(FIRST, SECOND, "the [MASK]", top_k=None).to_dict()
    assert "joint_compare" not in single
    assert len(single["masks"][0]["compare"]["candidates"]) == FIRST.vocabulary.size


class Broken(TableModel):
    def logits_at(self, *arrays):
        return super().logits_at(*arrays) * np.nan


def test_errors_name_the_model_that_cannot_take_the_text():
    short = TableModel(seed=4, max_tokens=5)
    with pytest.raises(TextError, match=r"^table-4-0: the text has 9 tokens"):
        compare(FIRST, short, TEXT)
    with pytest.raises(TextError, match=r"^table-3-0: the text has no mask"):
        compare(FIRST, short, "the cat")
    with pytest.raises(OptionError, match=r"^table-5-0: the candidate 'éclair' cannot be spelled"):
        known = TableModel(vocabulary=TableVocabulary((*FIRST.vocabulary.tokens, "éclair")))
        compare(known, OTHER, TEXT, candidates=["éclair"])
    with pytest.raises(ModelOutputError, match=r"^table-8-0: the model returned NaN"):
        compare(FIRST, Broken(seed=8), TEXT)
    with pytest.raises(OptionError, match=r"^top-k was 0"):
        compare(FIRST, SECOND, TEXT, top_k=0)


def test_work_is_bounded():
    with pytest.raises(OptionError, match="whole vocabulary would take hours"):
        compare(FIRST, OTHER, TEXT, top_k=None)
    compare(FIRST, SECOND, TEXT, most_work=0)
    with pytest.raises(OptionError, match="make the model read"):
        compare(FIRST, OTHER, TEXT, top_k=20, most_work=50)
