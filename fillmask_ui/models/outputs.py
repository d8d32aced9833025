"""Which output of an ONNX graph holds the logits, whatever its name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fillmask_ui.errors import ModelError

# A model may be wider than its tokenizer, rounded up for speed (DeBERTa-v3: 128,001 tokens in
# 128,100 columns). More than that without a config.json that says so is another kind of output.
_ROUNDED_UP = 128


def find_logits(
    outputs: Mapping[str, np.ndarray],
    shape: tuple[int, int],
    vocabulary_size: int,
    config_size: int | None,
    name: str,
) -> str:
    """Name of the output whose last dimension is the vocabulary.

    Args:
        outputs: what the graph returned on a probe, by name.
        shape: [B, T] of the probe.
        vocabulary_size: number of tokens that the tokenizer knows.
        config_size: V as `config.json` says, None if it does not.
        name: of the model, for messages.

    Raises:
        ModelError: that lists the outputs with shapes, if none fits.
    """
    widths = {
        key: value.shape[2]
        for key, value in outputs.items()
        if value.ndim == 3 and value.shape[:2] == shape and value.dtype.kind == "f"
    }
    for wanted in (config_size, vocabulary_size):
        fitting = [key for key, width in widths.items() if width == wanted]
        if fitting:
            return "logits" if "logits" in fitting else fitting[0]
    if config_size is None:
        for key, width in widths.items():
            if "logits" in key and 0 <= width - vocabulary_size < _ROUNDED_UP:
                return key
    listed = ", ".join(f"{key} {list(value.shape)}" for key, value in outputs.items())
    raise ModelError(
        f"{name} is no masked language model that goes with this tokenizer: no output has a "
        f"column for each of the {vocabulary_size:,} tokens. On a probe of {shape[0]} x "
        f"{shape[1]} tokens its outputs were: {listed}. Export the model with its masked-LM "
        "head (task fill-mask), or name the tokenizer that belongs to it"
    )
