"""Load a masked LM of torch to work on: to train it further or to package it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fillmask_ui.assets import asset
from fillmask_ui.errors import ModelError
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.models.reference import parse_reference


@dataclass(frozen=True)
class Weights:
    """A model in float32 and its tokenizer, both of transformers."""

    model: Any
    tokenizer: Any


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


def load_weights(reference: str | Path, attention: str = "eager") -> Weights:
    """Model and tokenizer of a folder or hub id.

    Args:
        reference: as in `load_model`: `embedded`, a folder or a hub id.
        attention: implementation in transformers' terms: `eager` or `sdpa`.

    Raises:
        ModelError: if it holds no masked LM with weights and a tokenizer.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = model_folder(reference)
    try:
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForMaskedLM.from_pretrained(
                folder,
                dtype=torch.float32,
                attn_implementation=attention,
                use_safetensors=True,
                local_files_only=True,
            )
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"cannot load {str(reference)!r} as a masked language model with its tokenizer: "
            f"{reason}"
        ) from error
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"the tokenizer of {str(reference)!r} has no mask token, so nothing can be hidden; "
            "choose a model for fill-mask"
        )
    return Weights(model, tokenizer)
