"""masking against transformers' DataCollatorForLanguageModeling and against its own definitions."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_model import TOKENS, TableVocabulary, sample_texts
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from fillmask_ui import masking
from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.metrics import CrossEntropy, PseudoPerplexity, Suffix, Uniform
from fillmask_ui.records import Encoding, Span

VOCABULARY = TableVocabulary()
NO_DRAWS = None  # in place of the generator where a metric may not ask it


def encoded(ids):
    """The text of some ids, without characters and words."""
    many = len(ids)
    blank = (Span(0, 0),) * many
    return Encoding("", tuple(ids), ("",) * many, blank, (None,) * many, (False,) * many)


@pytest.fixture(scope="module")
def bert_tokenizer():
    """The vocabulary of `TableVocabulary` in a real WordPiece tokenizer."""
    ids = {token: index for index, token in enumerate(TOKENS)}
    inner = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def collate(tokenizer, text, seed, example_id, **options):
    """One text through the real collator, its generator replaced by that of the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collator = DataCollatorForLanguageModeling(tokenizer, return_tensors="np", **options)
    collator.generator = np.random.default_rng([seed, example_id])
    encoded = tokenizer(text, return_offsets_mapping=options.get("whole_word_mask", False))
    if options.get("whole_word_mask"):
        encoded["special_tokens_mask"] = tokenizer.get_special_tokens_mask(
            encoded["input_ids"], already_has_special_tokens=True
        )
        encoded.pop("attention_mask")
        encoded.pop("token_type_ids", None)
    batch = collator([encoded])
    return batch["input_ids"][0], batch["labels"][0]


TEXTS = [
    *sample_texts(40, seed=3, longest=30),
    "the cat's unhappiness, zzz was [MASK] in the river!",
    "zzz qqq",
    "the",
]


@pytest.mark.parametrize(
    ("probability", "shares"),
    [
        (0.15, (0.8, 0.1, 0.1)),
        (0.5, (0.5, 0.4, 0.1)),
        (1.0, (0.0, 1.0, 0.0)),
        (0.3, (1.0, 0.0, 0.0)),
        (0.3, (0.6, 0.0, 0.4)),
        (0.9, (0.0, 0.0, 1.0)),
        (0.3, (0.7, 0.3, 0.0)),
    ],
)
def test_same_draws_as_the_collator(bert_tokenizer, probability, shares):
    recipe = masking.MaskRecipe(probability, *shares)
    for example_id, text in enumerate(TEXTS):
        encoding = VOCABULARY.encode(text)
        assert list(encoding.ids) == bert_tokenizer(text)["input_ids"]
        expected_ids, labels = collate(
            bert_tokenizer,
            text,
            42,
            example_id,
            mlm_probability=probability,
            mask_replace_prob=shares[0],
            random_replace_prob=shares[1],
        )
        hidden = masking.hide_random(
            encoding, VOCABULARY, recipe, masking.generator(42, example_id)
        )
        np.testing.assert_array_equal(hidden.input_ids, expected_ids)
        np.testing.assert_array_equal(hidden.cols, np.flatnonzero(labels != -100))
        np.testing.assert_array_equal(hidden.true_ids, labels[labels != -100])


@pytest.mark.parametrize("probability", [0.15, 0.6])
def test_same_whole_words_as_the_collator(bert_tokenizer, probability):
    recipe = masking.MaskRecipe(probability, whole_word=True)
    several = 0
    for example_id, text in enumerate(TEXTS):
        expected_ids, labels = collate(
            bert_tokenizer,
            text,
            7,
            example_id,
            mlm_probability=probability,
            whole_word_mask=True,
        )
        hidden = masking.hide_random(
            VOCABULARY.encode(text), VOCABULARY, recipe, masking.generator(7, example_id)
        )
        np.testing.assert_array_equal(hidden.input_ids, expected_ids)
        np.testing.assert_array_equal(hidden.cols, np.flatnonzero(labels != -100))
        several += bool((np.diff(hidden.cols) == 1).any())
    assert several > 5  # words of several tokens took part


def test_kinds_tell_what_the_model_sees():
    recipe = masking.MaskRecipe(1.0, 0.4, 0.3, 0.3)
    for example_id, text in enumerate(TEXTS):
        hidden = masking.hide_random(
            VOCABULARY.encode(text), VOCABULARY, recipe, masking.generator(1, example_id)
        )
        shown = hidden.input_ids[hidden.cols]
        assert (shown[hidden.kinds == masking.MASK] == VOCABULARY.mask_id).all()
        unchanged = hidden.kinds == masking.UNCHANGED
        np.testing.assert_array_equal(shown[unchanged], hidden.true_ids[unchanged])
        rest = np.setdiff1d(np.arange(len(hidden.ids)), hidden.cols)
        np.testing.assert_array_equal(hidden.input_ids[rest], hidden.ids[rest])


def test_shares_of_many_texts_are_those_asked_for():
    recipe = masking.MaskRecipe(0.15)
    encoding = encoded(range(5, 30))
    counts, total = np.zeros(3), 0
    for example_id in range(4000):
        rng = masking.generator(0, example_id)
        hidden = masking.hide_random(encoding, VOCABULARY, recipe, rng)
        counts += np.bincount(hidden.kinds, minlength=3)
        total += len(encoding)
    # Five standard errors of a binomial share of 100,000 and of 15,000 draws.
    assert counts.sum() / total == pytest.approx(0.15, abs=0.006)
    np.testing.assert_allclose(counts / counts.sum(), [0.8, 0.1, 0.1], atol=0.017)


def test_masks_depend_on_seed_and_id_alone():
    encoding = VOCABULARY.encode(" ".join(["cat"] * 60))
    recipe = masking.MaskRecipe()

    def cols(seed, example_id):
        return tuple(
            masking.hide_random(
                encoding, VOCABULARY, recipe, masking.generator(seed, example_id)
            ).cols
        )

    assert cols(42, 3) == cols(42, 3)
    assert len({cols(42, 3), cols(42, 4), cols(43, 3)}) == 3


@given(st.integers(0, 10**9), st.lists(st.integers(5, 40), max_size=40))
def test_special_tokens_are_never_hidden(seed, inner):
    encoding = encoded([2, *inner, 4, 1, 3])
    can_hide = masking.hideable(encoding.ids, VOCABULARY.special_ids)
    assert can_hide.sum() == len(inner)
    rng = np.random.default_rng(seed)
    schemes = [
        CrossEntropy(masking.MaskRecipe(0.9)),
        PseudoPerplexity(),
        Suffix(suffix_tokens=3),
        Uniform(),
    ]
    plans = [scheme.hide(encoding, VOCABULARY, rng) for scheme in schemes]
    for plan in plans:
        assert can_hide[plan.cols].all()
        np.testing.assert_array_equal(plan.ids, encoding.ids)


def test_one_by_one_hides_each_real_token_once():
    encoding = VOCABULARY.encode("the happiness was warm.")
    ids = np.array(encoding.ids)
    plan = PseudoPerplexity().hide(encoding, VOCABULARY, NO_DRAWS)
    assert plan.view_count == len(ids) - 2
    for index in range(plan.view_count):
        view = plan.view(index)
        assert np.flatnonzero(view != ids).tolist() == [index + 1]
        assert plan.scored(index).tolist() == [index]


def test_within_word_hides_the_rest_of_the_word():
    # The first sub-token of "souvenir" is scored without ##uven and ##ir: arXiv:2305.10588, fig. 1.
    encoding = VOCABULARY.encode("the walkings was")
    assert encoding.tokens == ("[CLS]", "the", "walk", "##ing", "##s", "was", "[SEP]")
    plan = PseudoPerplexity(within_word=True).hide(encoding, VOCABULARY, NO_DRAWS)
    masked = [np.flatnonzero(plan.view(index) == 4).tolist() for index in range(plan.view_count)]
    assert masked == [[1], [2, 3, 4], [3, 4], [4], [5]]


def test_uniform_share_makes_every_count_equally_likely():
    encoding = encoded([2, 10, 11, 12, 13, 3])
    counts = np.zeros(5)
    places = np.zeros(6)
    for example_id in range(4000):
        plan = Uniform().hide(encoding, VOCABULARY, masking.generator(0, example_id))
        counts[len(plan.cols)] += 1
        places[plan.cols] += 1
        assert (plan.input_ids[plan.cols] == 4).all()
    # Expected 1,000 of each count, standard error 27; 2,500 of each place, standard error 31.
    np.testing.assert_allclose(counts, [0, 1000, 1000, 1000, 1000], atol=120)
    np.testing.assert_allclose(places, [0, 2500, 2500, 2500, 2500, 0], atol=140)


@pytest.mark.parametrize(("count", "expected"), [(1, [3]), (2, [2, 3]), (99, [1, 2, 3])])
def test_suffix(count, expected):
    plan = Suffix(suffix_tokens=count).hide(encoded([2, 10, 11, 12, 3]), VOCABULARY, NO_DRAWS)
    assert plan.cols.tolist() == expected
    assert np.flatnonzero(plan.input_ids == 4).tolist() == expected


def test_a_blank_inside_a_span_begins_a_word():
    # As in XLM-R, whose tokens carry the blank to their left: "▁the", "▁ca", "t".
    encoding = Encoding(
        "the cat",
        (2, 10, 11, 12, 3),
        ("<s>", "▁the", "▁ca", "t", "</s>"),
        (Span(0, 0), Span(0, 3), Span(3, 6), Span(6, 7), Span(0, 0)),
        (None, 0, 1, 1, None),
        (True, False, False, False, True),
    )
    starts = masking.word_starts(encoding, frozenset({2, 3}))
    assert starts.tolist() == [False, True, True, False, False]


@pytest.mark.parametrize("probability", [0, -0.1, 2])
def test_a_probability_outside_its_range(probability):
    with pytest.raises(OptionError, match="above 0 and at most 1"):
        masking.MaskRecipe(probability)


def test_values_of_another_type():
    with pytest.raises(OptionError, match="whole word must be True or False; it was 'no'"):
        masking.MaskRecipe(0.3, whole_word="no")
    with pytest.raises(OptionError, match=r"probability must be a finite number; it was '0\.3'"):
        masking.MaskRecipe("0.3")
    with pytest.raises(OptionError, match="probability must be a finite number; it was nan"):
        masking.MaskRecipe(float("nan"))


@pytest.mark.parametrize("shares", [(0.8, 0.1, 0.2), (0.5, 0.1, 0.1), (1.0, 0.1, 0.0)])
def test_shares_that_do_not_add_up(shares):
    with pytest.raises(OptionError, match="add up to 1"):
        masking.MaskRecipe(0.15, *shares)


def test_a_share_below_zero():
    with pytest.raises(OptionError, match=r"lie in \[0, 1\]"):
        masking.MaskRecipe(0.15, 1.2, -0.1, -0.1)


def test_whole_words_take_no_other_shares():
    with pytest.raises(OptionError, match="whole words are always shown as mask tokens"):
        masking.MaskRecipe(0.15, 0.8, 0.1, 0.1, whole_word=True)


def test_a_negative_seed():
    with pytest.raises(OptionError, match="seed must be 0 or larger"):
        masking.generator(-1, 0)
