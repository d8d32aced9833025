"""What a word is, over every kind of tokenizer; models of numpy tables with real tokenizers."""

import re
from copy import deepcopy
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from table_model import TableModel, log_softmax_at
from tiny_models import quiet
from tiny_tokenizers import OTHER_TOKENIZERS, SENTENCES, TOKENIZERS, UNSPACED_SENTENCES

from fillmask_ui import EvaluationConfig, evaluate, masking, summarize
from fillmask_ui import surprisal as surprisal_of
from fillmask_ui.evaluation.metrics import PseudoPerplexity
from fillmask_ui.evaluation.rows import FIRST, LATER, WHOLE
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models.vocabulary import load_vocabulary
from fillmask_ui.text_words import UNSPACED, UNSPACED_NOTE, text_words, word_fault

EVERY = {**TOKENIZERS, **OTHER_TOKENIZERS}
# Of English; PhoBERT's merges letters with the signs behind them, ESM's knows capitals alone.
ENGLISH = [name for name in EVERY if name not in (*UNSPACED_SENTENCES, "phobert", "esm")]
WITHIN = EvaluationConfig("pseudo-perplexity", within_word=True)
WHOLE_WORDS = MaskRecipe(0.3, whole_word=True)
every_tokenizer = pytest.mark.parametrize("name", EVERY)


@cache
def tokenizer(name):
    with quiet():
        return EVERY[name]()


@cache
def vocabulary(name):
    return load_vocabulary(tokenizer(name), name)


@cache
def model(name):
    return TableModel(seed=3, vocabulary=vocabulary(name), max_tokens=300)


FRAGMENTS = [
    *(word for sentence in SENTENCES for word in sentence.split()),
    *(sentence for group in UNSPACED_SENTENCES.values() for sentence in group),
    *(" ", "  ", "\n", "\n\n", "\t", "\u3000", " ", " "),
    *("don't", "e-mail", "3.14", "20°", "…", "½", "(", ")", "#", "@you", "@@", "[SEP]", "</s>"),
    *("cafe\u0301", "हिन्दी", "שלום", "👩‍🚀", "❤️", "ﬁn", "한국어", "𠮷野家", "ﷺ"),
]
# No part of a written mask; no accents alone and no U+FFFD, which some tokenizers drop.
LETTERS = st.characters(
    categories=["L", "N", "P", "Sm", "Sc", "So"], exclude_characters="\ufffc\ufffd_"
)
texts = st.lists(
    st.sampled_from(FRAGMENTS) | st.text(LETTERS, max_size=4),
    min_size=1,
    max_size=8,
).map(lambda fragments: "The " + "".join(fragments))


@every_tokenizer
@settings(max_examples=60, deadline=None)
@given(text=texts, masked=st.booleans())
@example(text="The  cat\n\nsat.", masked=False)
def test_words_and_blanks_are_the_text(name, text, masked):
    """Every token is in one word; words do not overlap and have no blank inside."""
    if masked:
        text += f" {vocabulary(name).mask_token} mat"
    encoding = vocabulary(name).encode(text)
    words = text_words(encoding)
    hidden = [
        index
        for index, token_id in enumerate(encoding.ids)
        if encoding.special[index] or token_id == vocabulary(name).mask_id
    ]
    tokens = [token for word in words for token in word.tokens]
    assert sorted([*tokens, *hidden]) == list(range(len(encoding)))
    assert tokens == sorted(tokens)
    assert all(np.diff(word.tokens).max(initial=1) == 1 for word in words)
    assert all(a.end <= b.start for a, b in pairwise(words))
    unknown = vocabulary(name).unk_id
    for word in words:
        assert word.is_blank or word.text == text[word.start : word.end]
        spelled = unknown not in [encoding.ids[token] for token in word.tokens]
        if spelled and not word.is_blank:  # the end of a line may be a part of what is unknown
            assert not re.search(r"\s", word.text)
    covered = {at for word in words for at in range(word.start, word.end)}
    for index in hidden:
        covered.update(range(encoding.spans[index].start, encoding.spans[index].end))
    assert {at for at, letter in enumerate(text) if not letter.isspace()} <= covered
    assert unknown in encoding.ids or word_fault(encoding) == ""


@pytest.mark.parametrize("name", ENGLISH)
@given(
    sentence=st.lists(
        st.sampled_from([w for s in SENTENCES for w in re.findall(r"[A-Za-zé]+|[.,;]", s)]),
        min_size=1,
        max_size=9,
    )
)
@settings(max_examples=25, deadline=None)
def test_all_tokenizers_see_the_same_english_words(name, sentence):
    """Those of a regular expression, whatever marks them: `##`, `Ġ`, `▁` or `@@`."""
    text = re.sub(r" ([.,;])", r"\1", " ".join(["A", *sentence]))
    found = [word.text for word in text_words(vocabulary(name).encode(text))]
    assert [part for word in found for part in re.findall(r"\w+|\W", word)] == re.findall(
        r"\w+|[^\w\s]", text
    )
    assert all(re.fullmatch(r"\w+|\W+", word) for word in found)


@every_tokenizer
@settings(max_examples=20, deadline=None)
@given(text=texts)
def test_losses_of_words_sum_to_those_within_words(name, text):
    """Word by word, and of all; words with an unknown token are in neither sum."""
    subject = model(name)
    encoding = subject.vocabulary.encode(text)
    assume(len(encoding) <= subject.max_tokens)
    assume(masking.hideable(encoding.ids, subject.vocabulary.special_ids).any())
    (row,) = evaluate(subject, [text], WITHIN)
    losses = dict(zip(row.cols.tolist(), row.scores.nll_nats.tolist(), strict=True))
    spelled = 0.0
    found = surprisal_of(subject, text)
    for word in found.words:
        if not word.unknown:
            assert word.nll_nats == pytest.approx(sum(losses[t] for t in word.word.tokens))
            spelled += word.nll_nats
    if found.summary:
        assert found.summary.total_nll_nats == pytest.approx(spelled)
    if not any(word.unknown for word in found.words):
        assert spelled == pytest.approx(row.scores.nll_nats.sum())


def by_pre_tokenizer(name):
    """The tokenizer with blanks that part words, as XLM-R has them: transformers' own word ids."""
    from tokenizers import pre_tokenizers

    usual = deepcopy(tokenizer(name))
    usual.backend_tokenizer.normalizer = None
    usual.backend_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return usual


@pytest.mark.parametrize("name", ["gemma", "metaspace"])
def test_within_word_where_the_tokenizer_parts_no_words(name):
    """By hand; words are the `word_ids` of the tokenizer with another pre-tokenizer."""
    text = "Nobody knows what the museum sells tomorrow"
    subject, usual = model(name), by_pre_tokenizer(name)(text)
    ids, words = usual["input_ids"], usual.word_ids()
    assert tuple(ids) == subject.vocabulary.encode(text).ids
    clause = tokenizer(name)(text)  # to the tokenizer itself all is one word
    assert len({word for word in clause.word_ids() if word is not None}) == 1
    expected = []
    for at in range(1, len(ids) - 1):
        seen = [
            subject.vocabulary.mask_id if later >= at and words[later] == words[at] else token
            for later, token in enumerate(ids)
        ]
        expected.append(-log_softmax_at(subject, seen, at)[ids[at]].item())
    (row,) = evaluate(subject, [text], WITHIN)
    np.testing.assert_allclose(row.scores.nll_nats, expected, atol=1e-6)
    assert surprisal_of(subject, text).summary.total_nll_nats == pytest.approx(sum(expected))
    together = np.flatnonzero(np.diff(words[1:-1]) == 0) + 1
    assert row.parts[together].tolist() == [LATER] * len(together)


@pytest.mark.parametrize("name", ["phobert", "bertweet"])
def test_trailing_marks(name):
    """Tokens lie where transformers' decoder puts them; words are those of a reader."""
    for text in SENTENCES:
        encoding = vocabulary(name).encode(text)
        spelled = [token.removesuffix("@@") for token in encoding.tokens[1:-1]]
        spans = encoding.spans[1:-1]
        assert [text[span.start : span.end] for span in spans] == spelled
        decoded = tokenizer(name).decode(encoding.ids, skip_special_tokens=True)
        assert decoded.replace(" ", "") == text.replace(" ", "")
    encoding = vocabulary(name).encode("Nobody knows souvenirs, tomorrow.")
    assert any(token.endswith("@@") for token in encoding.tokens)
    words = [word.text for word in text_words(encoding)]
    assert words == ["Nobody", "knows", "souvenirs", ",", "tomorrow", "."]
    token_id = vocabulary(name).ids["souven@@"]
    assert vocabulary(name).word(token_id) == "souven"


@pytest.mark.parametrize("language", UNSPACED_SENTENCES)
def test_scripts_without_blanks(language):
    """A word is a token, so whole words can be hidden; a note says so."""
    subject, texts = model(language), UNSPACED_SENTENCES[language]
    for text in texts:
        encoding = subject.vocabulary.encode(text)
        letters = [word for word in text_words(encoding) if UNSPACED.search(word.text)]
        assert all(
            len(word.tokens) == 1 or "▁" in encoding.tokens[word.tokens[0]] for word in letters
        )
        starts = masking.word_starts(encoding, subject.vocabulary.special_ids)
        assert starts.sum() >= len(letters)
        hidden = PseudoPerplexity(within_word=True).hide(encoding, subject.vocabulary, None)
        assert (hidden.hidden_until - hidden.cols).max() <= 2  # a lone mark and its token
        found = surprisal_of(subject, text)
        assert found.notes == (UNSPACED_NOTE,) == tuple(found.to_dict()["notes"])
    for config in (EvaluationConfig(recipe=WHOLE_WORDS), WITHIN):
        summary = summarize(evaluate(subject, texts * 5, config), config=config)
        share = summary.texts / (5 * len(texts))
        assert share > 0.9
        (alarm,) = summary.alarms
        assert alarm.startswith(f"{summary.texts} of {summary.texts} texts are in a script")
    plain = summarize(evaluate(subject, texts))
    assert not any("script" in alarm for alarm in plain.alarms)
    english = model("bert")
    assert surprisal_of(english, SENTENCES[0]).notes == ()
    config = EvaluationConfig(recipe=WHOLE_WORDS)
    assert not summarize(evaluate(english, SENTENCES, config), config=config).alarms


def test_parts_are_those_of_words():
    """XLM-R counts a comma to the word before it; a reader does not."""
    row = next(iter(evaluate(model("xlm-roberta"), ["He walked in, delicious."], WITHIN)))
    kinds = dict(zip(row.tokens, row.parts.tolist(), strict=True))
    assert kinds[","] == kinds["."] == WHOLE
    assert {FIRST, LATER} <= set(row.parts.tolist())


def altered(name, change):
    """The notes of a tokenizer that was changed."""
    changed = EVERY[name]()
    change(changed.backend_tokenizer)
    return load_vocabulary(changed, "changed").note


def test_a_tokenizer_that_breaks_the_rules_is_noted():
    from tokenizers import models, normalizers

    def drop_letters(backend):
        backend.normalizer = normalizers.Replace("sat", "")

    def join_words(backend):
        unigrams = [
            ("<pad>", 0.0),
            ("<unk>", 0.0),
            ("<bos>", 0.0),
            ("<eos>", 0.0),
            ("<mask>", 0.0),
        ]
        unigrams += [("▁The", -1.0), ("▁cats▁sat", -1.0), ("▁a", -1.0)]
        backend.model = models.Unigram(unigrams, unk_id=1)

    assert "no token stands for 'sat' in \"The cats sat" in altered("bert", drop_letters)
    note = altered("metaspace", join_words)
    assert note == "some tokens are several words, such as '▁cats▁sat', and count as one"
    assert not any(vocabulary(name).note for name in EVERY)
