"""A masked LM of torch to work on: loaded, to train it further or to package it, or made anew."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordPieceTrainer
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerFast

from fillmask_ui.errors import ModelError, OptionError, opening
from fillmask_ui.files import asset, write_text
from fillmask_ui.models.hub_models import fetch_model
from fillmask_ui.models.loading_progress import quiet_transformers, silent
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.model_files import files_in_folder
from fillmask_ui.models.runtimes import WEIGHTS
from fillmask_ui.models.torch_model import plain_config
from fillmask_ui.models.vocabulary import read_tokenizer
from fillmask_ui.models.weights import refuse_unlike
from fillmask_ui.schema import from_json

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Weights:
    """A model in float32 and its tokenizer, both of transformers."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast  # with a mask token
    missing: tuple[str, ...] = ()  # names of the weights that the files lack: random numbers


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
    name, parsed = str(reference), parse_reference(reference)
    if parsed.kind == "file":
        raise ModelError(
            f"{name!r} is a file; give the folder of a model with its safetensors weights"
        )
    if parsed.kind == "hub":
        folder = fetch_model(parsed, "torch", None, silent).folder
    else:
        folder = parsed.path or asset("model")
    files_in_folder(name, folder, "torch")  # which says what is missing
    tokenizer = load_tokenizer(folder)
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"the tokenizer of {name!r} has no mask token, so nothing can be hidden; choose a "
            "model for fill-mask"
        )
    with opening("a model", name), quiet_transformers():
        model, info = AutoModelForMaskedLM.from_pretrained(
            folder,
            config=plain_config(folder, name),
            dtype=torch.float32,
            attn_implementation=_attention(device),
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # to say which they are
        )
    refuse_unlike(name, model.state_dict(), info)
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


def write_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """`tokenizer.json` without blanks and a configuration of what matters.

    The class is the plain one: those of a family build the normalizer and the splitting into words
    anew from their own arguments, whatever `tokenizer.json` says.
    """
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content["truncation"] = content["padding"] = None
    compact = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    write_text(compact, folder / "tokenizer.json")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": list(tokenizer.model_input_names),
        "model_max_length": tokenizer.model_max_length,
    }
    for kind in ("unk", "cls", "sep", "pad", "mask", "bos", "eos"):
        if token := getattr(tokenizer, f"{kind}_token"):
            config[f"{kind}_token"] = str(token)
    text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(text + "\n", folder / "tokenizer_config.json")


def write_weights(model: PreTrainedModel, folder: Path) -> None:
    """`config.json` and float16 weights.

    The model's own weights are rounded in place and stay float32: what every runtime will compute
    with. Values that are not in the file, such as the frequencies of rotary positions, stay as
    they are.

    Raises:
        ModelError: if a weight does not fit into float16.
    """
    largest = max(float(p.detach().abs().max()) for p in model.parameters())
    if not largest < torch.finfo(torch.float16).max:
        raise ModelError(f"a weight of {largest:g} does not fit into float16")
    half = copy.deepcopy(model).half()
    with quiet_transformers():
        half.save_pretrained(folder)
    model.load_state_dict(half.state_dict())
    (folder / WEIGHTS).chmod(0o644)  # safetensors writes files that only the owner may read
    (folder / "generation_config.json").unlink(missing_ok=True)
