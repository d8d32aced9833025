"""masking against transformers' DataCollatorForLanguageModeling and against its own definitions."""

import json
import math
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_model import TOKENS, TableVocabulary, sample_texts
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from fillmask_ui import EvaluationConfig, masking
from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.metrics import CrossEntropy, PseudoPerplexity, Suffix, Uniform
from fillmask_ui.files import asset
from fillmask_ui.records import Encoding, Span
from fillmask_ui.runs.collator_masks import CollatorMasks

VOCABULARY = TableVocabulary()
NO_DRAWS = None  # in place of the generator where a metric may not ask it


def encoded(ids):
    """The text of some ids, without characters and words."""
    count = len(ids)
    blank = (Span(0, 0),) * count
    return Encoding("", tuple(ids), ("",) * count, blank, (None,) * count, (False,) * count)


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


def hidden(encoding, recipe, seed, example_id):
    return masking.hide_random(encoding, VOCABULARY, recipe, masking.generator(seed, example_id))


@pytest.mark.parametrize(
    ("probability", "shares"),
    [
        (0.15, (0.8, 0.1, 0.1)),
        (0.5, (0.5, 0.4, 0.1)),
        (1.0, (0.0, 1.0, 0.0)),
        (0.3, (1.0, 0.0, 0.0)),
        (0.9, (0.0, 0.0, 1.0)),
        (0.15, None),  # whole words
        (0.6, None),
    ],
)
def test_same_draws_as_the_collator(bert_tokenizer, probability, shares):
    recipe = masking.MaskRecipe(probability, *(shares or ()), whole_word=not shares)
    options = {"mlm_probability": probability, "whole_word_mask": True}
    if shares:
        names = ("mlm_probability", "mask_replace_prob", "random_replace_prob")
        options = dict(zip(names, (probability, *shares), strict=False))
    several = 0
    for example_id, text in enumerate(TEXTS):
        encoding = VOCABULARY.encode(text)
        assert list(encoding.ids) == bert_tokenizer(text)["input_ids"]
        expected_ids, labels = collate(bert_tokenizer, text, 42, example_id, **options)
        found = hidden(encoding, recipe, 42, example_id)
        np.testing.assert_array_equal(found.input_ids, expected_ids)
        np.testing.assert_array_equal(found.cols, np.flatnonzero(labels != -100))
        np.testing.assert_array_equal(found.true_ids, labels[labels != -100])
        several += bool((np.diff(found.cols) == 1).any())
    assert several > 5  # words of several tokens took part


def test_shares_of_many_texts_are_those_asked_for():
    encoding = encoded(range(5, 30))
    found = [hidden(encoding, masking.MaskRecipe(), 0, example_id) for example_id in range(2000)]
    counts = np.bincount(np.concatenate([result.kinds for result in found]), minlength=3)
    # Five standard errors of a binomial share of 50,000 and of 7,500 draws.
    assert counts.sum() / 50_000 == pytest.approx(0.15, abs=0.008)
    np.testing.assert_allclose(counts / counts.sum(), [0.8, 0.1, 0.1], atol=0.023)


def test_random_tokens_by_their_frequency_in_the_embedded_texts():
    """Counted anew; the hidden positions are those of uniform draws."""
    lines = (asset("texts") / "embedded.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    counts = Counter(i for text in texts for i in VOCABULARY.encode(text).ids)
    ordinary = {i: n for i, n in counts.items() if i not in VOCABULARY.special_ids}
    encoding, shares = encoded(range(5, 30)), (0.2, 0.8, 0.0)
    uniform, unigram = (
        [
            hidden(encoding, masking.MaskRecipe(1.0, *shares, random_from=name), 0, i)
            for i in range(2000)
        ]
        for name in ("uniform", "unigram")
    )
    drawn = Counter()
    for left, right in zip(uniform, unigram, strict=True):
        np.testing.assert_array_equal(left.cols, right.cols)
        np.testing.assert_array_equal(left.kinds, right.kinds)
        drawn.update(right.input_ids[right.kinds == masking.RANDOM].tolist())
    assert not drawn.keys() & VOCABULARY.special_ids
    for token_id, count in ordinary.items():
        share = count / sum(ordinary.values())
        error = math.sqrt(share * (1 - share) / drawn.total())
        assert drawn[token_id] / drawn.total() == pytest.approx(share, abs=5 * error)
    again = hidden(encoding, masking.MaskRecipe(1.0, *shares, random_from="unigram"), 0, 3)
    np.testing.assert_array_equal(again.input_ids, unigram[3].input_ids)


def test_how_random_tokens_are_drawn_is_signed_and_must_matter():
    plain, unigram = (
        EvaluationConfig(recipe=masking.MaskRecipe(random_from=name)).signature
        for name in ("uniform", "unigram")
    )
    assert "random:unigram" in unigram and unigram.replace("random:unigram|", "") == plain
    for options in ({"whole_word": True}, {"random_share": 0.0, "unchanged_share": 0.2}):
        with pytest.raises(OptionError, match="nothing to draw"):
            masking.MaskRecipe(random_from="unigram", **options)
    recipe = masking.MaskRecipe(random_from="unigram")
    with pytest.raises(OptionError, match="draws random tokens uniformly"):
        CollatorMasks(VOCABULARY, EvaluationConfig(recipe=recipe, mask_stream="collator"))


@given(st.integers(0, 10**9), st.lists(st.integers(5, 40), max_size=40))
def test_special_tokens_are_never_hidden(seed, inner):
    encoding = encoded([2, *inner, 4, 1, 3])
    can_hide = masking.hideable(encoding.ids, VOCABULARY.special_ids)
    assert can_hide.sum() == len(inner)
    rng = np.random.default_rng(seed)
    cross_entropy = CrossEntropy(masking.MaskRecipe(0.9))
    for metric in (cross_entropy, PseudoPerplexity(), Suffix(suffix_tokens=3), Uniform()):
        plan = metric.hide(encoding, VOCABULARY, rng)
        assert can_hide[plan.cols].all()
        np.testing.assert_array_equal(plan.ids, encoding.ids)


def test_within_word_hides_the_rest_of_the_word():
    # The first sub-token of "souvenir" is scored without ##uven and ##ir: arXiv:2305.10588, fig. 1.
    encoding = VOCABULARY.encode("the walkings was")
    assert encoding.tokens == ("[CLS]", "the", "walk", "##ing", "##s", "was", "[SEP]")
    plan = PseudoPerplexity(within_word=True).hide(encoding, VOCABULARY, NO_DRAWS)
    masked = [np.flatnonzero(plan.view(index) == 4).tolist() for index in range(plan.view_count)]
    assert masked == [[1], [2, 3, 4], [3, 4], [4], [5]]
    alone = PseudoPerplexity().hide(encoding, VOCABULARY, NO_DRAWS)
    masked = [np.flatnonzero(alone.view(index) == 4).tolist() for index in range(alone.view_count)]
    assert masked == [[1], [2], [3], [4], [5]]


def test_uniform_share_makes_every_count_equally_likely():
    encoding = encoded([2, 10, 11, 12, 13, 3])
    counts = np.zeros(5)
    places = np.zeros(6)
    for example_id in range(2000):
        plan = Uniform().hide(encoding, VOCABULARY, masking.generator(0, example_id))
        counts[len(plan.cols)] += 1
        places[plan.cols] += 1
        assert (plan.input_ids[plan.cols] == 4).all()
    # Expected 500 of each count, standard error 19; 1,250 of each place, standard error 22.
    np.testing.assert_allclose(counts, [0, 500, 500, 500, 500], atol=95)
    np.testing.assert_allclose(places, [0, 1250, 1250, 1250, 1250, 0], atol=110)


def test_a_blank_inside_a_span_begins_a_word():
    # As in XLM-R, whose tokens carry the blank to their left.
    tokens, words = ("<s>", "▁the", "▁ca", "t", "</s>"), (None, 0, 1, 1, None)
    spans = [Span(*ends) for ends in ((0, 0), (0, 3), (3, 6), (6, 7), (0, 0))]
    special = (True, False, False, False, True)
    encoding = Encoding("the cat", (2, 10, 11, 12, 3), tokens, tuple(spans), words, special)
    starts = masking.word_starts(encoding, frozenset({2, 3}))
    assert starts.tolist() == [False, True, True, False, False]
