"""A masked LM of torch to work on: loaded, to train it further or to package it, or made anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordPieceTrainer
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerFast

from fillmask_ui.errors import ModelError, OptionError, opening
from fillmask_ui.files import asset
from fillmask_ui.models.hub_models import fetch_model
from fillmask_ui.models.loading_progress import quiet_transformers, silent
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.model_files import files_in_folder
from fillmask_ui.models.torch_model import plain_config
from fillmask_ui.models.vocabulary import read_tokenizer
from fillmask_ui.models.weights import refuse_mismatched
from fillmask_ui.schema import from_json

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# What configs call the dropout of heads that a masked LM does not have.
_OTHER_HEADS = ("classifier", "cls", "pooler", "qa", "seq_classif", "summary")


@dataclass(frozen=True)
class Weights:
    """A model in float32 and its tokenizer, both of transformers."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast  # with a mask token
    missing: tuple[str, ...] = ()  # names of the weights that the files lack: random numbers


def missing_note(names: Sequence[str]) -> str:
    """A remark on weights that a start lacks.

    >>> missing_note(["head.bias", "head.weight"])
    '2 tensors that the start lacks, such as head.bias, began as random numbers'
    """
    return f"{len(names)} tensors that the start lacks, such as {names[0]}, began as random numbers"


def dropout_values(config: dict[str, Any]) -> dict[str, float]:
    """What a Hugging Face config says of dropout in a masked LM, zeros left out.

    >>> dropout_values({"hidden_dropout_prob": 0.1, "attention_dropout": 0.0, "qa_dropout": 0.1})
    {'hidden_dropout_prob': 0.1}
    """
    return {
        name: value
        for name, value in config.items()
        if "drop" in name
        and not name.startswith(_OTHER_HEADS)
        and isinstance(value, float)
        and value > 0
    }


def _attention(device: str) -> str | None:
    # On cuda transformers takes its fused attention where the architecture has one. On the CPU,
    # with head sizes of 32 to 64 and rows of a few hundred tokens, torch's fused kernel spends
    # more time in its backward pass than two plain matrix products do.
    return None if device.startswith("cuda") else "eager"


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """That of a folder, of any family."""
    tokenizer: Any = read_tokenizer(folder, str(folder))
    return tokenizer


def load_weights(reference: str | Path, device: str = "cpu") -> Weights:
    """Model and tokenizer of `embedded`, a folder or a hub id, for work on a device.

    Raises:
        ModelError: if it holds no masked LM with weights and a tokenizer.
        NetworkError: if it has to be fetched and cannot be.
    """
    parsed = parse_reference(reference)
    if parsed.kind == "file":
        raise ModelError(
            f"{str(reference)!r} is a file; give the folder of a model with its safetensors weights"
        )
    if parsed.kind == "hub":
        folder = fetch_model(parsed, "torch", None, silent).folder
    else:
        folder = parsed.path or asset("model")
    files = files_in_folder(str(reference), folder, "torch")
    tokenizer = load_tokenizer(folder)
    with opening("a model", str(reference)), quiet_transformers():
        model, info = AutoModelForMaskedLM.from_pretrained(
            folder,
            config=plain_config(folder, str(reference)),
            dtype=torch.float32,
            attn_implementation=_attention(device),
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # to say which they are
        )
    refuse_mismatched(files.name, info["mismatched_keys"])
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"the tokenizer of {str(reference)!r} has no mask token, so nothing can be hidden; "
            "choose a model for fill-mask"
        )
    return Weights(model, tokenizer, tuple(sorted(info["missing_keys"])))


def train_tokenizer(paragraphs: list[str], vocabulary_size: int) -> PreTrainedTokenizerFast:
    """An uncased WordPiece tokenizer in BERT's form, trained on the text.

    The trainer breaks ties by the order of a hash map, so two trainings may differ in a few rare
    tokens: a run keeps its tokenizer and resumes with it. `vocabulary_size` is an upper limit:
    little text has fewer tokens to offer.

    Raises:
        OptionError: for a vocabulary that leaves no room beside the special tokens.
    """
    if vocabulary_size < 100:
        raise OptionError(
            f"a vocabulary of {vocabulary_size} tokens is too small; take 100 or more"
        )
    tokenizer = Tokenizer(models.WordPiece(unk_token=_SPECIAL[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = WordPieceTrainer(
        vocab_size=vocabulary_size, special_tokens=list(_SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(paragraphs, trainer)
    sep, cls = ((token, _SPECIAL.index(token)) for token in ("[SEP]", "[CLS]"))
    tokenizer.post_processor = processors.BertProcessing(sep, cls)
    named = {f"{token.strip('[]').lower()}_token": token for token in _SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **named)


def new_model(
    config_path: Path, tokenizer: PreTrainedTokenizerFast, device: str = "cpu"
) -> PreTrainedModel:
    """Random weights for a Hugging Face config; V and the special ids are the tokenizer's.

    The tokenizer's longest text becomes that of the model.

    Raises:
        DataError: if the file is no JSON object.
        OptionError: if it names no architecture.
        ModelError: if that has no masked-LM head, or a size is impossible.
    """
    content = from_json(dict[str, Any], config_path.read_bytes(), str(config_path))
    model_type = content.pop("model_type", None)
    if model_type is None:
        raise OptionError(
            f'{config_path} has no "model_type"; write one such as "bert" or "modernbert"'
        )
    content |= {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    kind = _attention(device)
    with opening("a model", config_path):
        config = transformers.AutoConfig.for_model(model_type, **content)
        model = AutoModelForMaskedLM.from_config(config, attn_implementation=kind)
    limit = getattr(config, "max_position_embeddings", None)
    if isinstance(limit, int):
        tokenizer.model_max_length = limit
    return model.float()
