"""Words as they are tokenized at a mask, words as they are shown, spans, threads."""

import json
import threading
import warnings
from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tiny_models import EVERY_FAMILY, FAMILIES, quiet, reference_model, reference_tokenizer
from tiny_tokenizers import PHOBERT, SENTENCES

from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.files import asset
from fillmask_ui.models import load_model
from fillmask_ui.models.model_files import _READ_BESIDE, ModelFiles
from fillmask_ui.models.vocabulary import load_embedded_vocabulary, load_vocabulary
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.publishing.hub_folder import copy_beside

BYTE_LEVEL = ("roberta", "modernbert")
UNIGRAM = ("xlm-roberta", "albert", "deberta-v2")
WORD_PIECE = ("bert", "distilbert", "electra", "mpnet")


@cache
def read(folder):
    return load_vocabulary(folder, folder.name)


tokenizer_of = cache(reference_tokenizer)


@pytest.fixture
def folder(tiny_models, request):
    return tiny_models.folder(request.param, onnx=False)


@pytest.fixture
def vocabulary(folder):
    return read(folder)


def of(*families):
    return pytest.mark.parametrize("folder", families, indirect=True)


@pytest.fixture
def sentencepiece_alone(tiny_models, tmp_path):
    """A model whose tokenizer is a sentencepiece file alone, and the library that reads it."""
    import sentencepiece

    folder = tmp_path / "alone"
    model = reference_model(tiny_models.folder("xlm-roberta", onnx=False))
    model.resize_token_embeddings(150)
    model.save_pretrained(folder)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_prefix=str(folder / "sentencepiece.bpe"),
        vocab_size=150,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "sentencepiece.bpe.vocab").unlink()
    path = folder / "sentencepiece.bpe.model"
    return folder, sentencepiece.SentencePieceProcessor(model_file=str(path))


def test_a_sentencepiece_file_alone_is_a_tokenizer(sentencepiece_alone):
    """Its tokens are those that sentencepiece itself finds."""
    folder, library = sentencepiece_alone
    loaded = load_model(folder)
    for text in SENTENCES[:5]:
        start, *tokens, end = loaded.vocabulary.encode(text).tokens
        assert (start, tokens, end) == ("<s>", library.encode(text, out_type=str), "</s>")
    assert "<mask>" in {loaded.vocabulary.token(i) for i in loaded.vocabulary.special_ids}
    path = folder / "sentencepiece.bpe.model"
    path.rename(folder / "spiece.model")
    with pytest.raises(ModelError, match=r"knows no words"):
        load_model(folder)


def test_files_that_a_class_names_are_copied_with_its_tokenizer(tmp_path):
    """`bpe.codes` of PhoBERT has no usual name."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir(), target.mkdir()
    for name, content in PHOBERT.items():
        (source / name).write_text(content, encoding="utf-8")
    (source / "notes.codes").write_text("mine")
    weights = (source / "model.safetensors",)
    copy_beside(ModelFiles("m", source, "torch", weights, source), target)
    assert {path.name for path in target.iterdir()} == {*PHOBERT}
    assert load_vocabulary(target, "m").encode("ab c").tokens == ("<s>", "ab", "c", "</s>")


def test_no_file_that_a_tokenizer_reads_may_be_a_link_out():
    """All that the classes of transformers name is looked at."""
    from transformers.models.auto import tokenization_auto as auto

    kinds = map(auto.tokenizer_class_from_name, set(auto.TOKENIZER_MAPPING_NAMES.values()) - {None})
    named = [getattr(kind, "vocab_files_names", {}) for kind in kinds]
    names = {name for files in named for name in files.values()}
    assert {"bpe.codes", "vocab.txt", "spiece.model", "source.spm"} < names
    assert [name for name in names if not _READ_BESIDE.fullmatch(name)] == []


@of(*FAMILIES)
def test_every_family_keeps_the_protocol(vocabulary, capfd):
    assert isinstance(vocabulary, Vocabulary)
    assert {vocabulary.mask_id, vocabulary.pad_id} <= vocabulary.special_ids
    assert vocabulary.token(vocabulary.mask_id) == vocabulary.mask_token
    for word in ("", " ", "\n"):
        for before in ("", " ", "("):
            assert vocabulary.encode_word(word, before) == ()
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
    for text, position in (("\ud83d", 1), ("ab\udc00c", 3), ("caf\udce9", 4)):
        with pytest.raises(TextError, match=rf"character {position} .* lone surrogate\) that no"):
            vocabulary.encode(text)
        with pytest.raises(TextError, match="lone surrogate"):
            vocabulary.encode_word(text)
    with warnings.catch_warnings():  # long texts are neither cut nor warned about
        warnings.simplefilter("error")
        assert len(vocabulary.encode("A " * 5_000)) >= 5_000
    assert capfd.readouterr() == ("", "")


@of(*WORD_PIECE, *BYTE_LEVEL, *UNIGRAM)
def test_a_word_behind_a_blank_is_tokenized_as_in_running_text(vocabulary):
    """The ids are those that the text with the word written out has at that place."""
    left = vocabulary.encode("looked at the").ids
    for word in ("river", "souvenir", "Garden", "blue"):
        whole = vocabulary.encode(f"looked at the {word}").ids
        assert whole == (*left[:-1], *vocabulary.encode_word(word, " "), left[-1])


@of(*EVERY_FAMILY)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    context=st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    parts=st.lists(st.text("acdehiklnrstwy", min_size=1, max_size=6), min_size=1, max_size=3),
)
@example(context="-", parts=["new", "york"])
@example(context="a ", parts=["new", "york"])
def test_a_word_behind_any_context_decodes_to_itself(vocabulary, folder, context, parts):
    """As the decoder of transformers has it; blanks inside the word are kept."""
    is_protein = folder.name == "esm"  # its alphabet has capitals and no blank
    word = "".join(parts).upper() if is_protein else " ".join(parts)
    decoded = tokenizer_of(folder).decode(vocabulary.encode_word(word, context))
    assert decoded.removeprefix("##").strip() == (" ".join(word) if is_protein else word)


@of(*EVERY_FAMILY)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text(vocabulary, text):
    """Emoji, right-to-left text, NUL, combining marks: spans stay inside and in order."""
    text = f"{text} {vocabulary.mask_token}{text}"
    encoding = vocabulary.encode(text)
    assert all(0 <= s.start <= s.end <= len(text) for s in encoding.spans)
    assert len(encoding.tokens) == len(encoding.spans) == len(encoding.word_ids) == len(encoding)
    pairs = zip(encoding.ids, encoding.spans, strict=True)
    marked = [text[span.start : span.end] for i, span in pairs if i == vocabulary.mask_id]
    assert vocabulary.mask_token in marked
    for before in ("", " ", text[0]):
        assert all(0 <= i < vocabulary.size for i in vocabulary.encode_word(text, before))


@of(*WORD_PIECE)
def test_word_piece_words(vocabulary):
    behind = vocabulary.encode_word("souvenirs", " ")
    tokens = [vocabulary.token(i) for i in behind]
    assert "".join(t.removeprefix("##") for t in tokens) == "souvenirs"
    assert [vocabulary.is_continuation(i) for i in behind] == [t.startswith("##") for t in tokens]
    assert vocabulary.encode_word("\0\x01", " ") == ()  # BERT's normalizer drops these


@of("bert", "roberta", "xlm-roberta", "esm")
def test_many_threads(vocabulary):
    """Tokenizers that are set anew at each call raise `Already borrowed` here."""
    texts = [f"{'the cat ' * n} {vocabulary.mask_token}" for n in range(40)]
    expected = [vocabulary.encode(text).ids for text in texts]
    outcomes: list[object] = []

    def work() -> None:
        try:
            outcomes.append([vocabulary.encode(text).ids for text in texts])
        except RuntimeError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [expected] * 6


def test_the_embedded_tokenizer_means_what_transformers_makes_of_it():
    """It is read without transformers, for speed; both must say the same."""
    embedded, reference = (
        load_embedded_vocabulary(asset("model")),
        load_vocabulary(asset("model"), "embedded"),
    )
    names = ("size", "mask_id", "mask_token", "pad_id", "unk_id", "special_ids", "limit")
    assert {n: getattr(embedded, n) for n in names} == {n: getattr(reference, n) for n in names}
    for text in (
        "The capital of France is [MASK].",
        "naïve Café don't, O'Brien's 3.14 e-mail; 東京 🙂 שלום \t\n x\0y",
        "[CLS] [SEP] [UNK] [PAD] [mask]",
        "",
        "antidisestablishmentarianism " * 300,
    ):
        assert embedded.encode(text) == reference.encode(text)
        for before in ("", " ", "(", "x"):
            assert embedded.encode_word(text, before) == reference.encode_word(text, before)


def test_a_tokenizer_without_pre_tokenizer_has_words_by_its_marks(tmp_path):
    """As Gemma-like tokenizers have it: the Rust library sees one word, the marks say more."""
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    tokens = ["<unk>", "<mask>", "▁the", "▁ca", "t", "▁", "s"]
    raw = Tokenizer(models.Unigram([(token, -1.0) for token in tokens], unk_id=0))
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    with quiet():
        PreTrainedTokenizerFast(
            tokenizer_object=raw, unk_token="<unk>", mask_token="<mask>"
        ).save_pretrained(tmp_path)
    encoding = load_vocabulary(tmp_path, "made here").encode("the cats the")
    assert encoding.tokens == ("▁the", "▁ca", "t", "s", "▁the")
    assert encoding.word_ids == (0, 1, 1, 1, 2)


def test_more_than_tokens_is_refused(tmp_path):
    """RoCBERT's tokenizer of transformers gives shapes and sounds, which its model adds up."""
    import torch
    from transformers import RoCBertConfig, RoCBertForMaskedLM, RoCBertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    names = ("word_shape.json", "word_pronunciation.json")
    for name in names:
        (tmp_path / name).write_text(json.dumps({word: n + 3 for n, word in enumerate(words)}))
    tokenizer = RoCBertTokenizer(*(str(tmp_path / name) for name in ("vocab.txt", *names)))
    sizes = {"vocab_size": 7, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    with torch.no_grad():
        model = RoCBertForMaskedLM(RoCBertConfig(**sizes, intermediate_size=16)).eval()
        inputs = tokenizer("the [MASK]", return_tensors="pt")
        whole, tokens_alone = model(**inputs).logits, model(inputs["input_ids"]).logits
    assert (whole - tokens_alone).abs().max() > 1e-3
    with quiet():
        model.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="also gives input_pronunciation_ids, input_shape_ids, wh"):
        load_vocabulary(tmp_path, "rocbert")
