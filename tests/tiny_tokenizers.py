"""Real tokenizers of every family, trained on a few sentences."""

import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

SENTENCES = (
    "The cat sat on the mat and looked at the birds.",
    "A quick brown fox jumps over the lazy dog.",
    "The capital of France is a city on a river.",
    "She walked to the café because the morning was cold.",
    "Nobody knows what the weather will be like tomorrow.",
    "The opposite of hot is cold, and the opposite of up is down.",
    "Children were playing in the garden behind the old house.",
    "He opened the door, looked around and slowly walked in.",
    "Reading and writing are taught in the first years of school.",
    "The museum sells souvenirs; the souvenir shop is always full.",
    "Walden Pond is beautifully blue in the early summer.",
    "Lunch was delicious, but dinner was better than lunch.",
    "Water boils at one hundred degrees and freezes at zero.",
    "The teacher asked the students to open their books.",
    "We took the train to the sea and slept all the way.",
    "The river runs from the mountains down to the ocean.",
)

# Scripts without blanks between words.
UNSPACED_SENTENCES = {
    "chinese": (
        "今天天气很好,我们去公园吧。",
        "法国的首都是巴黎,巴黎是一座城市。",
        "他打开门,慢慢地走进房间。",
        "孩子们在老房子后面的花园里玩。",
        "我们坐火车去海边,一路都在睡觉。",
    ),
    "japanese": (
        "今日は天気がいいので、公園に行きましょう。",
        "フランスの首都はパリで、パリは川のそばにあります。",
        "彼はドアを開けて、ゆっくり部屋に入った。",
        "子どもたちは古い家の庭で遊んでいました。",
    ),
    "thai": (
        "วันนี้อากาศดีมาก เราไปสวนสาธารณะกันเถอะ",
        "เมืองหลวงของฝรั่งเศสคือปารีส",
        "เด็กๆ เล่นอยู่ในสวนหลังบ้านเก่า",
        "เขาเปิดประตูแล้วเดินเข้าไปช้าๆ",
    ),
}

ALPHABET = " ".join(f"{letter} {letter}{letter}" for letter in "abcdefghijklmnopqrstuvwxyzé.,'")

# The alphabet of ESM-2, in its order.
ESM_ALPHABET = (
    "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>"
)


def _word_pieces(specials: list[str]) -> dict[str, int]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    options = {"special_tokens": specials, "show_progress": False}
    raw.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=300, **options))
    return raw.get_vocab()


def _byte_level(specials: list[str]) -> dict[str, Any]:
    """Vocabulary and merges."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(SENTENCES, trainer)
    model = json.loads(raw.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


def _unigram(
    specials: list[str], unk: str, sentences: Sequence[str] = SENTENCES
) -> list[tuple[str, float]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    raw = Tokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=specials, unk_token=unk, show_progress=False
    )
    raw.train_from_iterator(sentences, trainer)
    vocab = json.loads(raw.to_str())["model"]["vocab"]
    return [(token, score) for token, score in vocab]


_BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def _mask(text: str) -> Any:
    """A mask token that swallows the blank to its left, as the published tokenizers have it."""
    from tokenizers import AddedToken

    return AddedToken(text, lstrip=True, special=True)


def _bert_tokenizer() -> Any:
    from transformers import BertTokenizer

    return BertTokenizer(vocab=_word_pieces(_BERT_SPECIALS), model_max_length=64)


def _roberta_tokenizer() -> Any:
    from transformers import RobertaTokenizer

    trained = _byte_level(_ROBERTA_SPECIALS)
    return RobertaTokenizer(**trained, mask_token=_mask("<mask>"), model_max_length=64)


def _xlm_roberta_tokenizer() -> Any:
    from transformers import XLMRobertaTokenizer

    vocab = _unigram(_ROBERTA_SPECIALS, "<unk>")
    return XLMRobertaTokenizer(vocab=vocab, mask_token=_mask("<mask>"), model_max_length=64)


def _albert_tokenizer() -> Any:
    from transformers import AlbertTokenizer

    vocab = _unigram(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], "<unk>")
    return AlbertTokenizer(vocab=vocab, mask_token=_mask("[MASK]"), model_max_length=64)


def _deberta_tokenizer() -> Any:
    from transformers import DebertaV2Tokenizer

    return DebertaV2Tokenizer(vocab=_unigram(_BERT_SPECIALS, "[UNK]"), model_max_length=64)


def _mpnet_tokenizer() -> Any:
    from transformers import MPNetTokenizer

    specials = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    return MPNetTokenizer(vocab=_word_pieces(specials), model_max_length=64)


def _modernbert_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE(**_byte_level(_BERT_SPECIALS)))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token=_mask("[MASK]"),
        model_max_length=64,
        model_input_names=["input_ids", "attention_mask"],
    )


def _esm_tokenizer() -> Any:
    from transformers import EsmTokenizer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(ESM_ALPHABET.split()), encoding="utf-8")
        return EsmTokenizer(str(path), model_max_length=64)


# Files of a tokenizer of PhoBERT's kind: words and how often they came, and merges.
PHOBERT = {
    "config.json": json.dumps({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"]}),
    "tokenizer_config.json": json.dumps({"tokenizer_class": "PhobertTokenizer"}),
    "vocab.txt": "ab 9\nc 5\na@@ 3\nb 2\n",
    "bpe.codes": "a b</w> 9\n",
}


def _unspaced_tokenizer(language: str) -> Any:
    """SentencePiece as in XLM-R: blanks alone part words, so that a sentence is one."""
    from transformers import XLMRobertaTokenizer

    vocab = _unigram(_ROBERTA_SPECIALS, "<unk>", UNSPACED_SENTENCES[language] * 3)
    return XLMRobertaTokenizer(vocab=vocab, mask_token=_mask("<mask>"), model_max_length=64)


def _gemma_tokenizer(blanks: str) -> Any:
    """Blanks are marked, but part no words: by `pre_tokenizer` or, as in Gemma, `normalizer`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    specials = ["<pad>", "<unk>", "<bos>", "<eos>", "<mask>"]
    raw = Tokenizer(models.Unigram(_unigram(specials, "<unk>"), unk_id=1))
    if blanks == "pre_tokenizer":
        raw.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    else:
        raw.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
        raw.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    raw.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>", special_tokens=[("<bos>", 2), ("<eos>", 3)]
    )
    names = {f"{name}_token": f"<{name}>" for name in ("pad", "unk", "bos", "eos", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=64, **names)


def _open_bpe_tokenizer(class_name: str, **options: Any) -> Any:
    """PhoBERT's and BERTweet's, in Python alone: `@@` marks tokens that the next one continues."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=250, end_of_word_suffix="</w>", show_progress=False)
    raw.train_from_iterator((*SENTENCES, ALPHABET), trainer)
    model = json.loads(raw.to_str())["model"]
    tokens = (token[:-4] if token.endswith("</w>") else f"{token}@@" for token in model["vocab"])
    with tempfile.TemporaryDirectory() as folder:
        vocabulary, merges = Path(folder) / "vocab.txt", Path(folder) / "bpe.codes"
        vocabulary.write_text("".join(f"{token} 1\n" for token in dict.fromkeys(tokens)), "utf-8")
        merges.write_text("".join(f"{' '.join(merge)} 1\n" for merge in model["merges"]), "utf-8")
        kind = getattr(transformers, class_name)
        return kind(str(vocabulary), str(merges), model_max_length=64, **options)


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "bert": _bert_tokenizer,
    "roberta": _roberta_tokenizer,
    "xlm-roberta": _xlm_roberta_tokenizer,
    "distilbert": _bert_tokenizer,
    "albert": _albert_tokenizer,
    "electra": _bert_tokenizer,
    "deberta-v2": _deberta_tokenizer,
    "mpnet": _mpnet_tokenizer,
    "modernbert": _modernbert_tokenizer,
    "esm": _esm_tokenizer,
}

# Without a model of their own: what a word is, is hardest to see here.
OTHER_TOKENIZERS: dict[str, Callable[[], Any]] = {
    "gemma": partial(_gemma_tokenizer, "normalizer"),
    "metaspace": partial(_gemma_tokenizer, "pre_tokenizer"),
    "phobert": partial(_open_bpe_tokenizer, "PhobertTokenizer"),
    "bertweet": partial(_open_bpe_tokenizer, "BertweetTokenizer", normalization=True),
    **{language: partial(_unspaced_tokenizer, language) for language in UNSPACED_SENTENCES},
}
