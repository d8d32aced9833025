"""Which output of an ONNX graph holds the logits, whatever its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import ModelError, ModelOutputError

# A model may be wider than its tokenizer, rounded up for speed (DeBERTa-v3: 128,001 tokens in
# 128,100 columns). More than that without a config.json that says so is another kind of output.
_ROUNDED_UP = 128


@dataclass(frozen=True)
class LogitsOutput:
    """The output that was recognised.

    Attributes:
        name: in the graph.
        width: V.
        bytes_per_logit: of its type.
        note: what a reader should know; "" for nothing.
    """

    name: str
    width: int
    bytes_per_logit: int
    note: str = ""


def find_logits(
    outputs: Mapping[str, np.ndarray],
    shape: tuple[int, int],
    real_tokens: int,
    vocabulary_size: int,
    config_size: int | None,
    name: str,
) -> LogitsOutput:
    """The output whose last dimension is the vocabulary.

    Args:
        outputs: what the graph returned on a probe, by name.
        shape: [B, T] of the probe.
        real_tokens: of its first text; what lies behind them may be anything.
        vocabulary_size: number of tokens that the tokenizer knows.
        config_size: V as `config.json` says, None if it does not.
        name: of the model, for messages.

    Raises:
        ModelError: that lists the outputs with shapes, if none fits.
        ModelOutputError: if the one that fits holds NaN.
    """
    widths = {
        key: value.shape[2]
        for key, value in outputs.items()
        if value.ndim == 3 and value.shape[:2] == shape and value.dtype.kind == "f"
    }
    for wanted in dict.fromkeys((config_size, vocabulary_size)):
        fitting = [key for key, width in widths.items() if width == wanted]
        if wanted is None or not fitting:
            continue
        chosen = "logits" if "logits" in fitting else fitting[0]
        if wanted < vocabulary_size:
            raise _too_large(name, vocabulary_size, wanted)
        return _checked(chosen, outputs[chosen], real_tokens, vocabulary_size, name)
    rounded = [
        key
        for key, width in widths.items()
        if vocabulary_size <= width < vocabulary_size + _ROUNDED_UP and "logits" in key
    ]
    if rounded and config_size is None:
        return _checked(rounded[0], outputs[rounded[0]], real_tokens, vocabulary_size, name)
    listed = ", ".join(f"{key} {list(value.shape)}" for key, value in outputs.items())
    raise ModelError(
        f"{name} is no masked language model that goes with this tokenizer: no output has a "
        f"column for each of the {vocabulary_size:,} tokens. On a probe of {shape[0]} x "
        f"{shape[1]} tokens its outputs were: {listed}. Export the model with its masked-LM "
        "head (task fill-mask), or name the tokenizer that belongs to it"
    )


def _checked(
    key: str, logits: np.ndarray, real_tokens: int, vocabulary_size: int, name: str
) -> LogitsOutput:
    if np.isnan(logits[0, :real_tokens]).any():
        raise ModelOutputError(
            f"{name} returns NaN on a plain probe text: its weights are damaged or overflow "
            "their precision; use the full-precision file or fetch it again"
        )
    width = logits.shape[2]
    note = size_note(width, vocabulary_size)
    return LogitsOutput(key, width, logits.dtype.itemsize, note)


def size_note(width: int, vocabulary_size: int) -> str:
    """What to say about a model that is wider than its tokenizer.

    >>> size_note(5, 5)
    ''
    """
    if width == vocabulary_size:
        return ""
    return f"the model has {width:,} logits, the tokenizer knows {vocabulary_size:,} tokens"


def check_width(width: int, vocabulary_size: int, name: str) -> None:
    """Stop if the tokenizer has tokens that the model has no logit for.

    Raises:
        ModelError: with both sizes.
    """
    if width < vocabulary_size:
        raise _too_large(name, vocabulary_size, width)


def _too_large(name: str, vocabulary_size: int, width: int) -> ModelError:
    return ModelError(
        f"the tokenizer and the model of {name} do not belong together: the tokenizer knows "
        f"{vocabulary_size:,} tokens, the model has logits for {width:,}; name the right "
        "tokenizer, or fetch both from one place"
    )


def refuse_nan(logits: np.ndarray, name: str) -> None:
    """Stop if logits [M, V] hold NaN.

    Raises:
        ModelOutputError: that says at how many positions.
    """
    broken = np.isnan(logits).any(axis=1)  # [M]
    if broken.any():
        raise ModelOutputError(
            f"{name} returned NaN at {int(broken.sum())} of {len(logits)} positions, so there is "
            "no probability to show; this often comes from float16 overflow or a broken "
            "quantization: use the full-precision model"
        )
