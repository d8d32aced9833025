"""What the lesson shows as masked is what the evaluator masks, and its shares are BERT's."""

import numpy as np
import pytest
from scipy.stats import binomtest
from table_model import TableModel, sample_texts

from fillmask_ui import load_model
from fillmask_ui.errors import TextError
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate
from fillmask_ui.filling import fill_at
from fillmask_ui.lessons.masked_text import each_kind, encoded, mask_text, shares
from fillmask_ui.masking import KINDS, MaskRecipe
from fillmask_ui.ui.learn.masking_figures import LUNCH, SEED, TEXT

PLAIN = MaskRecipe()


@pytest.fixture(scope="module")
def model():
    return TableModel()


@pytest.fixture(scope="module", params=["embedded", "embedded:int8"])
def embedded(request):
    return load_model(request.param)


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_a_text_is_masked_as_the_first_text_of_an_evaluation(model, rate):
    seen = 0
    for seed, text in enumerate(sample_texts(40)):
        config = EvaluationConfig(seed=seed, recipe=MaskRecipe(probability=rate))
        row = next(row for row in evaluate(model, [text, "a cat"], config) if row.id == 0)
        shown = mask_text(model, text, seed, MaskRecipe(probability=rate)).chosen
        if not isinstance(row, EvaluatedText):
            assert not shown
            continue
        assert [token.position for token in shown] == row.cols.tolist()
        assert [token.token_id for token in shown] == row.true_ids.tolist()
        assert [token.shown_id for token in shown] == row.shown_ids.tolist()
        assert [token.kind for token in shown] == [KINDS[kind] for kind in row.kinds]
        seen += len(shown)
    assert seen > 20


def test_special_tokens_masks_and_unknown_words_are_never_chosen(model):
    text = "the [MASK] sat xyz on the ___"  # neither xyz nor ___ is a word of the vocabulary
    certain = mask_text(model, text, 0, MaskRecipe(probability=1))
    fixed = [model.vocabulary.token(token.token_id) for token in certain.tokens if token.fixed]
    assert fixed == ["[CLS]", "[MASK]", "[UNK]", "[MASK]", "[SEP]"]
    assert [token.fixed for token in certain.tokens] == [not t.kind for t in certain.tokens]
    assert certain.free == len(certain.chosen) == 4


def test_shares_count_what_each_seed_chooses(model):
    text, seeds = "the old dog ran to the river", range(7, 47)
    counted = shares(encoded(model, text), model.vocabulary, PLAIN, seeds)
    texts = [mask_text(model, text, seed) for seed in seeds]
    kinds = [token.kind for masked in texts for token in masked.chosen]
    assert counted.kinds == tuple(kinds.count(kind) for kind in KINDS)
    assert counted.chosen == len(kinds) > 20
    assert counted.tokens == 40 * 7
    assert counted.empty == sum(not masked.chosen for masked in texts) > 0


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_over_many_seeds_the_shares_are_those_expected(model, rate):
    """By scipy's exact binomial test; a share that is a tenth off would fail it."""
    text = "the old dog ran to the river and the cat sat on the mat"
    counted = shares(encoded(model, text), model.vocabulary, MaskRecipe(rate), range(4000))
    expected = dict(zip(counted.kinds, (0.8, 0.1, 0.1), strict=True))
    assert binomtest(counted.chosen, counted.tokens, rate).pvalue > 1e-4
    for count, share in expected.items():
        assert binomtest(count, counted.chosen, share).pvalue > 1e-4
    assert binomtest(counted.empty, 4000, (1 - rate) ** 13).pvalue > 1e-4
    assert binomtest(counted.chosen, counted.tokens, 1.1 * rate).pvalue < 1e-4


@pytest.mark.parametrize("first", [0, 500])
def test_each_kind_has_a_seed_that_chooses_the_last_word_alone(model, first):
    encoding = encoded(model, "the cat sat.")
    ways = each_kind(encoding, model.vocabulary, first)
    assert [way.kind for way in ways] == [*KINDS]
    for way in ways:
        (token,) = mask_text(model, "the cat sat.", way.seed).chosen
        assert (token.position, token.kind) == (way.position, way.kind)
        assert encoding.tokens[way.position] == "sat"
        assert way.seed >= first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n", "the text is empty"),
        ("[MASK] xyz", "no token of this text can be chosen"),
        ("the cat " * 40, "at most 64"),
    ],
)
def test_a_text_that_cannot_be_masked_is_refused(model, text, said):
    with pytest.raises(TextError, match=said):
        mask_text(model, text, 0)


def test_a_long_text_is_too_much_for_one_word_alone(model):
    with pytest.raises(TextError, match="14 tokens and this wants at most 12"):
        each_kind(encoded(model, "the cat " * 7), model.vocabulary, 0)


def test_the_text_of_the_chapter_shows_all_three_kinds(embedded):
    kinds = [token.kind for token in mask_text(embedded, TEXT, SEED).chosen]
    assert len(kinds) == 5
    assert set(kinds) == set(KINDS)


def test_lunch_is_easy_only_where_it_is_left_unchanged(embedded):
    encoding = encoded(embedded, LUNCH)
    ways = {way.kind: way for way in each_kind(encoding, embedded.vocabulary, 0)}
    said = {}
    for kind, way in ways.items():
        ids, place = way.hidden.input_ids.tolist(), way.position
        (true,) = fill_at(embedded, ids, place, encoding.ids[place], top_k=1).scored
        said[kind] = true.probability
    assert encoding.tokens[ways["mask"].position] == "delicious"
    assert said["unchanged"] > 0.5
    assert max(said["mask"], said["random"]) < 0.05
    assert np.array_equal(ways["unchanged"].hidden.input_ids, encoding.ids)
