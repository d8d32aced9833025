"""Tiny real models of every family, made on demand: random weights, tokenizers trained here.

A pytest plugin: the session fixture `tiny_models` gives `tiny_models.folder("bert")`, a folder in
Hugging Face layout with model.safetensors, config.json, the tokenizer and onnx/model.onnx.
Making one takes about a second, after the first import of torch and transformers.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fillmask_ui.protocol import Vocabulary

FAMILIES = (
    "bert",
    "roberta",
    "xlm-roberta",
    "distilbert",
    "albert",
    "electra",
    "deberta-v2",
    "mpnet",
    "modernbert",
    "esm",
)

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

PROTEINS = (
    "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQ",
    "MALWMRLLPLLALLALWGPDPAAAFVNQHLCGSHLVEALYLVCGERGFFYTPKTRREAEDLQVGQV",
)

# The alphabet of ESM-2, in its order.
ESM_ALPHABET = (
    "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>"
)

_HIDDEN, _LAYERS, _HEADS, _INNER = 32, 2, 4, 64


def texts_for(family: str, mask: str) -> list[str]:
    """Texts with masks, of different lengths, that suit the family's tokenizer."""
    if family == "esm":
        return [f"MKTAY{mask}AKQ", f"MALWMRL{mask}PLLALLA{mask}WGPD", f"{mask}"]
    return [
        f"The cat sat on the {mask}.",
        f"The {mask} of France is a {mask} on a river, and she walked to the café.",
        f"{mask} is cold",
    ]


@dataclass(frozen=True)
class Batch:
    """Texts as one padded batch, with a question at each mask.

    Attributes:
        input_ids: int64 [B, T].
        attention_mask: int64 [B, T].
        rows: int64 [M].
        cols: int64 [M].
    """

    input_ids: np.ndarray
    attention_mask: np.ndarray
    rows: np.ndarray
    cols: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.input_ids, self.attention_mask, self.rows, self.cols))


def batch_of(vocabulary: Vocabulary, texts: Sequence[str]) -> Batch:
    """Encode texts and pad them to the longest."""
    encodings = [vocabulary.encode(text) for text in texts]
    shape = (len(texts), max(map(len, encodings)))
    input_ids = np.full(shape, vocabulary.pad_id, dtype=np.int64)
    attention_mask = np.zeros(shape, dtype=np.int64)
    for row, encoding in enumerate(encodings):
        input_ids[row, : len(encoding)] = encoding.ids
        attention_mask[row, : len(encoding)] = 1
    rows, cols = np.nonzero(input_ids == vocabulary.mask_id)
    return Batch(input_ids, attention_mask, rows, cols)


class TinyModels:
    """Makes and keeps the folders of one test session."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, family: str, *, onnx: bool = True) -> Path:
        """A model of the family; `onnx` asks for onnx/model.onnx too, which is exported once."""
        folder = self._root / family
        if not (folder / "model.safetensors").is_file():
            make_model(family, folder)
        if onnx and not (folder / "onnx" / "model.onnx").is_file():
            export_onnx(folder)
        return folder

    def without_onnx(self, family: str) -> Path:
        """The same model in a folder that has no ONNX file."""
        source = self.folder(family, onnx=False)
        target = self._root / f"{family}-safetensors"
        if not target.is_dir():
            target.mkdir()
            for path in source.iterdir():
                if path.is_file():
                    (target / path.name).write_bytes(path.read_bytes())
        return target


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Tiny real models of every family, made when first asked for."""
    return TinyModels(tmp_path_factory.mktemp("tiny_models"))


def make_model(family: str, folder: Path) -> None:
    """Train a tokenizer, draw random weights and save both in Hugging Face layout."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    tokenizer = _TOKENIZERS[family]()
    tokenizer.save_pretrained(folder)
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(20)
    config = AutoConfig.for_model(
        family,
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        **_SHAPES.get(family, _SHAPE),
    )
    with quiet():
        model = AutoModelForMaskedLM.from_config(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Fresh weights give nearly uniform guesses and zero biases: comparisons of
                # those would hold for wrong code too.
                parameter.add_(torch.randn_like(parameter) * (0.4 if parameter.dim() > 1 else 0.1))
        model.save_pretrained(folder)
    torch.random.set_rng_state(torch_state)


def export_onnx(folder: Path, target: Path | None = None, **changes: Any) -> Path:
    """Export the folder's model with PyTorch's own exporter.

    Args:
        folder: in Hugging Face layout.
        target: the file to write; onnx/model.onnx by default.
        changes: `inputs` (names), `outputs` (`logits`, `hidden`), `batch` and `length` (fixed
            sizes instead of free ones), `dtype` of the inputs.
    """
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    target = target or folder / "onnx" / "model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    with quiet():
        model = AutoModelForMaskedLM.from_pretrained(folder).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tuple(changes.get("inputs") or _default_inputs(tokenizer))
    outputs = tuple(changes.get("outputs") or ("logits",))
    shape = (changes.get("batch") or 2, changes.get("length") or 9)
    dtype = changes.get("dtype") or torch.int64
    example = tuple(
        torch.ones(shape, dtype=dtype) * (5 if name == "input_ids" else 1)
        if name != "token_type_ids"
        else torch.zeros(shape, dtype=dtype)
        for name in inputs
    )
    free = {}
    if not changes.get("batch"):
        free[0] = "batch"
    if not changes.get("length"):
        free[1] = "tokens"

    class Named(torch.nn.Module):
        """Takes the inputs in order and returns the outputs asked for."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            named = {name: value.long() for name, value in zip(inputs, values, strict=True)}
            result = self.model(**named, output_hidden_states="hidden" in outputs)
            kept = {"logits": result.logits}
            if "hidden" in outputs:
                kept["hidden"] = result.hidden_states[-1]
            return tuple(kept[name] for name in outputs)

    with quiet():
        torch.onnx.export(
            Named(),
            example,
            str(target),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=dict.fromkeys((*inputs, *outputs), free) if free else None,
            opset_version=18,
            dynamo=False,
        )
    return target


def _default_inputs(tokenizer: Any) -> tuple[str, ...]:
    order = ("input_ids", "attention_mask", "token_type_ids")
    return tuple(name for name in order if name in tokenizer.model_input_names)


@contextlib.contextmanager
def quiet():
    """The exporter's and the library's remarks are not about what is tested."""
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
            transformers_logging.set_verbosity(verbosity)
            transformers_logging.enable_progress_bar()


@dataclass(frozen=True)
class _Trained:
    vocab: Any
    merges: list[tuple[str, str]]


def _word_pieces(specials: list[str]) -> dict[str, int]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.train_from_iterator(
        SENTENCES,
        trainers.WordPieceTrainer(vocab_size=300, special_tokens=specials, show_progress=False),
    )
    return raw.get_vocab()


def _byte_level(specials: list[str]) -> _Trained:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=420,
            special_tokens=specials,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    model = json.loads(raw.to_str())["model"]
    return _Trained(model["vocab"], [tuple(pair) for pair in model["merges"]])


def _unigram(specials: list[str], unk: str) -> list[tuple[str, float]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    raw = Tokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.train_from_iterator(
        SENTENCES,
        trainers.UnigramTrainer(
            vocab_size=200, special_tokens=specials, unk_token=unk, show_progress=False
        ),
    )
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
    return RobertaTokenizer(
        vocab=trained.vocab, merges=trained.merges, mask_token=_mask("<mask>"), model_max_length=64
    )


def _xlm_roberta_tokenizer() -> Any:
    from transformers import XLMRobertaTokenizer

    return XLMRobertaTokenizer(
        vocab=_unigram(_ROBERTA_SPECIALS, "<unk>"), mask_token=_mask("<mask>"), model_max_length=64
    )


def _albert_tokenizer() -> Any:
    from transformers import AlbertTokenizer

    specials = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    return AlbertTokenizer(
        vocab=_unigram(specials, "<unk>"), mask_token=_mask("[MASK]"), model_max_length=64
    )


def _deberta_tokenizer() -> Any:
    from transformers import DebertaV2Tokenizer

    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return DebertaV2Tokenizer(vocab=_unigram(specials, "[UNK]"), model_max_length=64)


def _mpnet_tokenizer() -> Any:
    from transformers import MPNetTokenizer

    specials = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    return MPNetTokenizer(vocab=_word_pieces(specials), model_max_length=64)


def _modernbert_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    trained = _byte_level(_BERT_SPECIALS)
    raw = Tokenizer(models.BPE(vocab=trained.vocab, merges=trained.merges))
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
    import tempfile

    from transformers import EsmTokenizer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(ESM_ALPHABET.split()), encoding="utf-8")
        return EsmTokenizer(str(path), model_max_length=64)


_TOKENIZERS: dict[str, Callable[[], Any]] = {
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

_SHAPE: dict[str, Any] = {
    "hidden_size": _HIDDEN,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "intermediate_size": _INNER,
    "max_position_embeddings": 64,
}
# RoBERTa counts positions from pad_token_id + 1: two rows of the table are never used.
_AFTER_PAD = {**_SHAPE, "max_position_embeddings": 66, "type_vocab_size": 1}

_SHAPES: dict[str, dict[str, Any]] = {
    "roberta": _AFTER_PAD,
    "xlm-roberta": _AFTER_PAD,
    "mpnet": {**_SHAPE, "max_position_embeddings": 66},
    "distilbert": {
        "dim": _HIDDEN,
        "n_layers": _LAYERS,
        "n_heads": _HEADS,
        "hidden_dim": _INNER,
        "max_position_embeddings": 64,
    },
    "albert": {**_SHAPE, "embedding_size": 16},
    "electra": {**_SHAPE, "embedding_size": 16},
    "deberta-v2": {
        **_SHAPE,
        "relative_attention": True,
        "position_buckets": 16,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "type_vocab_size": 0,
    },
    "modernbert": {
        **_SHAPE,
        "num_hidden_layers": 3,
        "local_attention": 8,
        "cls_token_id": 2,
        "sep_token_id": 3,
        "bos_token_id": 2,
        "eos_token_id": 3,
    },
    "esm": {
        **_SHAPE,
        "max_position_embeddings": 66,
        "position_embedding_type": "rotary",
        "token_dropout": True,
        "mask_token_id": 32,
        "emb_layer_norm_before": False,
    },
}
