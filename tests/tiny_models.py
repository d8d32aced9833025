"""Tiny real models of every family, made on demand: random weights, tokenizers trained here.

A pytest plugin: the session fixture `tiny_models` gives `tiny_models.folder("bert")`, a folder in
Hugging Face layout with model.safetensors, config.json, the tokenizer and onnx/model.onnx.
Making one takes about a second, after the first import of torch and transformers.
"""

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from once import Once
from tiny_tokenizers import SENTENCES as SENTENCES
from tiny_tokenizers import TOKENIZERS

from fillmask_ui.batching import pad
from fillmask_ui.models import load_model
from fillmask_ui.protocol import MaskedLM, Vocabulary

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
THREE = ("bert", "roberta", "xlm-roberta")  # WordPiece, byte-level BPE and Unigram
OTHERS = tuple(family for family in FAMILIES if family not in THREE)
# For `parametrize`: three families by default, all with `-m slow`.
EVERY_FAMILY = [*THREE, *(pytest.param(family, marks=pytest.mark.slow) for family in OTHERS)]

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
    """Texts as one padded batch, with a question at each mask."""

    input_ids: np.ndarray  # int64 [B, T]
    attention_mask: np.ndarray  # int64 [B, T]
    rows: np.ndarray  # int64 [M]
    cols: np.ndarray  # int64 [M]

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.input_ids, self.attention_mask, self.rows, self.cols))


def batch_of(vocabulary: Vocabulary, texts: Sequence[str]) -> Batch:
    """Encode texts and pad them to the longest."""
    batch = pad([np.array(vocabulary.encode(text).ids) for text in texts], vocabulary.pad_id)
    rows, cols = np.nonzero(batch.input_ids == vocabulary.mask_id)
    return Batch(batch.input_ids, batch.attention_mask, rows, cols)


class TinyModels:
    """The folders of a test run, made when first asked for."""

    def __init__(self, once: Once) -> None:
        self._once = once

    def folder(self, family: str, *, onnx: bool = True) -> Path:
        """A model of the family; `onnx` asks for onnx/model.onnx too."""
        plain = self._once.folder(f"tiny/{family}", partial(make_model, family))
        if onnx:
            self._once.do(f"tiny/{family}/onnx", lambda: export_onnx(plain))
        return plain

    def without_onnx(self, family: str) -> Path:
        """The same model in a folder that has no ONNX file."""
        return self._once.folder(f"tiny-safetensors/{family}", partial(make_model, family))


@pytest.fixture(scope="session")
def tiny_models(once: Once) -> TinyModels:
    """Tiny real models of every family; no test may change them."""
    return TinyModels(once)


def make_model(family: str, folder: Path) -> None:
    """Train a tokenizer, draw random weights and save both in Hugging Face layout."""
    tokenizer = TOKENIZERS[family]()
    tokenizer.save_pretrained(folder)
    words = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    save_random_model(family, folder, **words, **_SHAPES.get(family, _SHAPE))


def save_random_model(family: str, folder: Path, size: float = 0.4, **shape: Any) -> None:
    """A model of this config and of random weights of a size, in Hugging Face layout."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    torch_state = torch.random.get_rng_state()
    torch.manual_seed(20)
    config = AutoConfig.for_model(family, **shape)
    with quiet():
        model = AutoModelForMaskedLM.from_config(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Fresh weights give nearly uniform guesses and zero biases: comparisons of
                # those would hold for wrong code too.
                parameter.add_(torch.randn_like(parameter) * (size if parameter.dim() > 1 else 0.1))
        model.save_pretrained(folder)
    torch.random.set_rng_state(torch_state)


def reference_model(folder: Path, **options: Any) -> Any:
    """The masked language model of a folder by transformers alone, not in training."""
    from transformers import AutoModelForMaskedLM

    with quiet():
        return AutoModelForMaskedLM.from_pretrained(folder, **options).eval()


def reference_tokenizer(folder: Path) -> Any:
    """Its tokenizer by transformers alone."""
    from transformers import AutoTokenizer

    with quiet():
        return AutoTokenizer.from_pretrained(folder)


def export_onnx(folder: Path, target: Path | None = None, **changes: Any) -> Path:
    """Export the folder's model with PyTorch's own exporter, by default to onnx/model.onnx.

    `changes` are `inputs` (names), `outputs` (`logits`, `hidden`), `batch` and `length` (fixed
    sizes instead of free ones), `dtype` of the inputs.
    """
    import torch

    target = target or folder / "onnx" / "model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    model, tokenizer = reference_model(folder), reference_tokenizer(folder)
    order = ("input_ids", "attention_mask", "token_type_ids")
    usual = [name for name in order if name in tokenizer.model_input_names]
    inputs = tuple(changes.get("inputs") or usual)
    outputs = tuple(changes.get("outputs") or ("logits",))
    shape = (changes.get("batch") or 2, changes.get("length") or 9)
    dtype = changes.get("dtype") or torch.int64
    values = {"input_ids": 5, "token_type_ids": 0}
    example = tuple(torch.full(shape, values.get(name, 1), dtype=dtype) for name in inputs)
    axes = {0: "batch", 1: "length"}
    free = {axis: name for axis, name in axes.items() if not changes.get(name)}

    class Named(torch.nn.Module):
        """Takes the inputs in order and returns the chosen outputs."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            named = {name: value.long() for name, value in zip(inputs, values, strict=True)}
            result = self.model(**named, output_hidden_states="hidden" in outputs)
            arrays = {"logits": result.logits, "hidden": (result.hidden_states or [None])[-1]}
            return tuple(arrays[name] for name in outputs)

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


@pytest.fixture(scope="session")
def loaded(tiny_models: TinyModels) -> Callable[[str, str], MaskedLM]:
    """`loaded(family, runtime)`: each is loaded once a session."""
    models: dict[tuple[str, str], MaskedLM] = {}

    def get(family: str, runtime: str) -> MaskedLM:
        if (family, runtime) not in models:
            folder = tiny_models.folder(family)
            models[family, runtime] = load_model(folder, runtime=runtime)
        return models[family, runtime]

    return get
