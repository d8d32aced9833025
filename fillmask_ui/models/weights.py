"""What .safetensors files hold, read from their headers alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open

from fillmask_ui.errors import ModelError, first_line

_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8",
    "F8_E5M2": "float8",
    "I8": "int8",
    "U8": "int8",
}


def stored_precision(paths: Iterable[Path]) -> str:
    """The type that most weights are stored in; float32 where none is of a known type.

    Raises:
        ModelError: if a file is no safetensors file or is cut short.
    """
    sizes = Counter[str]()
    for path in paths:
        sizes += _elements(path)
    return sizes.most_common(1)[0][0] if sizes else "float32"


def _elements(path: Path) -> Counter[str]:
    """Number of elements by type."""
    sizes = Counter[str]()
    try:
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                tensor = file.get_slice(name)
                if kind := _NAMES.get(tensor.get_dtype()):
                    sizes[kind] += math.prod(tensor.get_shape())
    except SafetensorError as error:
        raise ModelError(
            f"{path} is no complete safetensors file: its header is no JSON of tensors, or "
            f"promises more than the file has ({first_line(error)}); fetch it again"
        ) from error
    return sizes


def refuse_missing(name: str, kind: str, missing: Sequence[str]) -> None:
    """Stop if weights are missing, which transformers fills with random numbers.

    Args:
        name: of the model.
        kind: its class.
        missing: names of the weights.

    Raises:
        ModelError: if there are any.
    """
    if missing:
        raise ModelError(
            f"{name} lacks {len(missing)} weights of a {kind}, such as {', '.join(missing[:3])}: "
            "without them its answers would be random numbers; choose a checkpoint with its "
            "masked-LM head, or train one: fillmask-ui train --init"
        )
