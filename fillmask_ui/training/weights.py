"""Load a masked LM of torch to work on: to train it further or to package it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fillmask_ui.assets import asset
from fillmask_ui.errors import ModelError, first_line
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.models.reference import parse_reference

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


@dataclass(frozen=True)
class Weights:
    """A model in float32 and its tokenizer, both of transformers."""

    model: PreTrainedModel  # in float32
    tokenizer: PreTrainedTokenizerFast  # with a mask token
    # names of the weights that the files lack; they are random numbers
    missing: tuple[str, ...] = ()


def missing_note(names: Sequence[str]) -> str:
    """A remark on weights that a start lacks.

    >>> missing_note(["head.bias", "head.weight"])
    '2 tensors that the start lacks, such as head.bias, began as random numbers'
    """
    return f"{len(names)} tensors that the start lacks, such as {names[0]}, began as random numbers"


# What configs call the dropout of heads that a masked LM does not have.
_OTHER_HEADS = ("classifier", "cls", "pooler", "qa", "seq_classif", "summary")


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


def model_folder(reference: str | Path) -> Path:
    """Where a reference's files are, fetched from the hub where it is an id.

    Raises:
        ModelError: if nothing is there.
        NetworkError: if it has to be fetched and cannot be.
    """
    parsed = parse_reference(reference)
    if parsed.kind == "embedded":
        return asset("model")
    if parsed.kind == "folder" and parsed.path is not None:
        return parsed.path
    if parsed.kind == "hub":
        from fillmask_ui.models.hub import fetch_model
        from fillmask_ui.models.progress import silent

        return fetch_model(parsed, "torch", None, silent).folder
    raise ModelError(
        f"{str(reference)!r} is a file; give the folder of a model with its safetensors weights"
    )


def attention_on(device: str) -> str | None:
    """The attention that trains fastest, in transformers' terms; None leaves the choice to it."""
    # On cuda transformers takes its fused attention where the architecture has one. On the CPU,
    # with head sizes of 32 to 64 and rows of a few hundred tokens, torch's fused kernel spends
    # more time in its backward pass than two plain matrix products do.
    return None if device.startswith("cuda") else "eager"


def load_weights(reference: str | Path, attention: str | None = "eager") -> Weights:
    """Model and tokenizer of a folder or hub id.

    Args:
        reference: as in `load_model`: `embedded`, a folder or a hub id.
        attention: implementation in transformers' terms: `eager` or `sdpa`; None leaves the
            choice to it.

    Raises:
        ModelError: if it holds no masked LM with weights and a tokenizer.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = model_folder(reference)
    tokenizer: Any
    try:
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model, info = AutoModelForMaskedLM.from_pretrained(
                folder,
                dtype=torch.float32,
                attn_implementation=attention,
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
            )
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"cannot load {str(reference)!r} as a masked language model with its tokenizer: "
            f"{first_line(error)}"
        ) from error
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"the tokenizer of {str(reference)!r} has no mask token, so nothing can be hidden; "
            "choose a model for fill-mask"
        )
    return Weights(model, tokenizer, tuple(sorted(info["missing_keys"])))
