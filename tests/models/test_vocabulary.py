"""Words as they are tokenized at a mask, words as they are shown, spans, threads."""

from __future__ import annotations

import threading
import warnings
from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tiny_models import FAMILIES, quiet

from fillmask_ui.errors import TextError
from fillmask_ui.files import asset
from fillmask_ui.models.subword_prefixes import SubwordPrefixes
from fillmask_ui.models.vocabulary import load_own_vocabulary, load_vocabulary
from fillmask_ui.protocol import Vocabulary

BYTE_LEVEL = ("roberta", "modernbert")
UNIGRAM = ("xlm-roberta", "albert", "deberta-v2")
WORD_PIECE = ("bert", "distilbert", "electra", "mpnet")


@pytest.fixture
def vocabulary(loaded, request):
    return loaded(request.param, "onnx").vocabulary


def of(*families):
    return pytest.mark.parametrize("vocabulary", families, indirect=True)


@of(*FAMILIES)
def test_keeps_the_protocol(vocabulary):
    assert isinstance(vocabulary, Vocabulary)
    assert vocabulary.mask_id in vocabulary.special_ids
    assert vocabulary.pad_id in vocabulary.special_ids
    assert vocabulary.token(vocabulary.mask_id) == vocabulary.mask_token


@of(*WORD_PIECE, *BYTE_LEVEL, *UNIGRAM)
@pytest.mark.parametrize("word", ["river", "souvenir", "Garden", "blue"])
def test_a_word_behind_a_blank_is_tokenized_as_in_running_text(vocabulary, word):
    """The ids are those that the text with the word written out has at that place."""
    left = vocabulary.encode("looked at the").ids
    whole = vocabulary.encode(f"looked at the {word}").ids
    assert whole == (*left[:-1], *vocabulary.encode_word(word, " "), left[-1])


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    context=st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    parts=st.lists(st.text("acdehiklnrstwy", min_size=1, max_size=6), min_size=1, max_size=3),
)
@example(context="-", parts=["new", "york"])
@example(context="a ", parts=["new", "york"])
def test_a_word_behind_any_context_decodes_to_itself(loaded, tiny_models, family, context, parts):
    """As the decoder of transformers has it; blanks inside the word are kept."""
    is_protein = family == "esm"  # its alphabet has capitals and no blank
    word = "".join(parts).upper() if is_protein else " ".join(parts)
    ids = loaded(family, "onnx").vocabulary.encode_word(word, context)
    decoded = tokenizer_of(tiny_models.folder(family)).decode(ids)
    assert decoded.removeprefix("##").strip() == (" ".join(word) if is_protein else word)


@cache
def tokenizer_of(folder):
    from transformers import AutoTokenizer

    with quiet():
        return AutoTokenizer.from_pretrained(folder)


@of(*BYTE_LEVEL)
def test_byte_level_words(vocabulary):
    (start,), (behind,) = vocabulary.encode_word("a", ""), vocabulary.encode_word("a", " ")
    assert vocabulary.token(start) == "a"
    assert vocabulary.token(behind) == "Ġa"
    assert [vocabulary.token(i) for i in vocabulary.encode_word("a", "(")] == ["a"]
    assert vocabulary.is_continuation(start)
    assert not vocabulary.is_continuation(behind)
    assert vocabulary.word(start) == vocabulary.word(behind) == "a"


@of(*UNIGRAM)
def test_unigram_words(vocabulary):
    assert vocabulary.token(vocabulary.encode_word("of", "")[0]).startswith("▁")
    assert vocabulary.token(vocabulary.encode_word("of", " ")[0]).startswith("▁")
    assert not vocabulary.token(vocabulary.encode_word("of", "(")[0]).startswith("▁")


@of(*WORD_PIECE)
def test_word_piece_words(vocabulary):
    behind = vocabulary.encode_word("souvenirs", " ")
    tokens = [vocabulary.token(i) for i in behind]
    assert "".join(t.removeprefix("##") for t in tokens) == "souvenirs"
    assert [vocabulary.is_continuation(i) for i in behind] == [t.startswith("##") for t in tokens]
    assert all("#" not in vocabulary.word(i) for i in behind)


@of("bert", "roberta", "xlm-roberta")
def test_raw_vocabulary_strings_are_taken_as_such(vocabulary):
    marked = [t for t in ("##s", "Ġthe", "▁the", "▁a") if vocabulary.ids.get(t) is not None]
    assert marked
    for token in marked:
        assert [vocabulary.token(i) for i in vocabulary.encode_word(token, " ")] == [token]


@of(*FAMILIES)
def test_nothing_tokenizes_to_nothing(vocabulary):
    for word in ("", " ", "\n"):
        for before in ("", " ", "("):
            assert vocabulary.encode_word(word, before) == ()


def test_control_characters_tokenize_to_nothing(loaded):
    """BERT's normalizer drops them, so such a candidate has no ids."""
    assert loaded("bert", "onnx").vocabulary.encode_word("\0\x01", " ") == ()


@of("esm")
def test_protein(vocabulary):
    encoding = vocabulary.encode("MK<mask>AY\nW?")
    assert encoding.tokens == (
        "<cls>", "M", "K", "<mask>", "A", "Y", "W", "<unk>", "<eos>",
    )  # fmt: skip
    pieces = [encoding.text[s.start : s.end] for s in encoding.spans]
    assert pieces == ["", "M", "K", "<mask>", "A", "Y", "W", "?", ""]
    assert [encoding.special[0], encoding.special[3], encoding.special[-1]] == [True, False, True]
    assert [vocabulary.token(i) for i in vocabulary.encode_word("W", "K")] == ["W"]
    assert not vocabulary.is_continuation(vocabulary.encode_word("W")[0])


@pytest.mark.parametrize(
    ("style", "token", "word"),
    [
        ("pieces", "##ing", "ing"),
        ("pieces", "##", "##"),
        ("pieces", "play", "play"),
        ("bytes", "Ġthe", "the"),
        ("bytes", "the", "the"),
        ("bytes", "Ġ", "␣"),
        ("bytes", "ĠĠ", "␣␣"),
        ("bytes", "Ċ", "⏎"),
        ("bytes", "ĉ", "⇥"),
        ("bytes", "ĠæĿ±", "東"),
        ("bytes", "æĿ", "æĿ"),  # two of three bytes: shown as it is in the vocabulary
        ("bytes", "Ā", "Ā"),  # the byte 0
        ("blank", "▁der", "der"),
        ("blank", "▁", "␣"),
        ("blank", "<0xE2>", "<0xE2>"),
        ("blank", "東", "東"),
        ("none", "W", "W"),
        ("none", "the</w>", "the"),
    ],
)
def test_words_as_shown(style, token, word):
    assert SubwordPrefixes(style).word(token) == word


@of(*FAMILIES)
def test_every_token_is_visible_and_special_tokens_stay(vocabulary):
    for token_id in range(vocabulary.size):
        word = vocabulary.word(token_id)
        assert word.strip()
        if token_id in vocabulary.special_ids:
            assert word == vocabulary.token(token_id)
            assert not vocabulary.is_continuation(token_id)
        elif len(vocabulary.token(token_id)) > 2:
            assert not word.startswith(("##", "Ġ", "▁"))
    assert vocabulary.token(10**6) == vocabulary.word(10**6) == "[1000000]"
    assert not vocabulary.is_continuation(10**6)


@of(*FAMILIES)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\ud83d", "character 1 .* lone surrogate\\) that no"),
        ("ab\udc00c", "character 3 .* lone surrogate\\) that no"),
        ("caf\udce9", "character 4 .* lone surrogate\\) that no"),
    ],
)
def test_lone_surrogates(vocabulary, text, said):
    with pytest.raises(TextError, match=said):
        vocabulary.encode(text)
    with pytest.raises(TextError, match="lone surrogate"):
        vocabulary.encode_word(text)


@of(*FAMILIES)
def test_long_text_is_neither_cut_nor_warned_about(vocabulary, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoding = vocabulary.encode("A " * 50_000)
    assert len(encoding) >= 50_000
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@of(*FAMILIES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text(vocabulary, text):
    """Emoji, right-to-left text, NUL, combining marks: spans stay inside and in order."""
    text = f"{text} {vocabulary.mask_token}{text}"
    encoding = vocabulary.encode(text)
    assert vocabulary.mask_id in encoding.ids
    assert all(0 <= s.start <= s.end <= len(text) for s in encoding.spans)
    assert len(encoding.tokens) == len(encoding.spans) == len(encoding.word_ids) == len(encoding)
    marked = [
        text[s.start : s.end]
        for i, s in zip(encoding.ids, encoding.spans, strict=True)
        if i == vocabulary.mask_id
    ]
    assert vocabulary.mask_token in marked
    for before in ("", " ", text[0]):
        assert all(0 <= i < vocabulary.size for i in vocabulary.encode_word(text, before))


@of("bert", "roberta", "xlm-roberta", "esm")
def test_many_threads(vocabulary):
    """Tokenizers that are set anew at each call raise `Already borrowed` here."""
    texts = [f"{'the cat ' * n} {vocabulary.mask_token}" for n in range(40)]
    wanted = [vocabulary.encode(text).ids for text in texts]
    problems: list[object] = []

    def work() -> None:
        try:
            problems.extend(
                text
                for text, ids in zip(texts, wanted, strict=True)
                if vocabulary.encode(text).ids != ids
            )
        except RuntimeError as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_the_embedded_tokenizer_means_what_transformers_makes_of_it():
    """It is read without transformers, for speed; both must say the same."""
    own, usual = load_own_vocabulary(asset("model")), load_vocabulary(asset("model"), "embedded")
    names = ("size", "mask_id", "mask_token", "pad_id", "unk_id", "special_ids", "limit")
    assert {n: getattr(own, n) for n in names} == {n: getattr(usual, n) for n in names}
    for text in (
        "The capital of France is [MASK].",
        "naïve Café don't, O'Brien's 3.14 e-mail; 東京 🙂 שלום \t\n x\0y",
        "[CLS] [SEP] [UNK] [PAD] [mask]",
        "",
        "antidisestablishmentarianism " * 300,
    ):
        assert own.encode(text) == usual.encode(text)
        for before in ("", " ", "(", "x"):
            assert own.encode_word(text, before) == usual.encode_word(text, before)


def test_a_tokenizer_without_pre_tokenizer_has_words_by_its_marks(tmp_path):
    """As Gemma-like tokenizers have it: the Rust library sees one word, the marks say more."""
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "<mask>", "▁the", "▁ca", "t", "▁", "s"]
    raw = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0))
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    with quiet():
        PreTrainedTokenizerFast(
            tokenizer_object=raw, unk_token="<unk>", mask_token="<mask>"
        ).save_pretrained(tmp_path)
    encoding = load_vocabulary(tmp_path, "made here").encode("the cats the")
    assert encoding.tokens == ("▁the", "▁ca", "t", "s", "▁the")
    assert encoding.word_ids == (0, 1, 1, 1, 2)
