"""What .safetensors files hold, read from their headers alone."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import index
from pathlib import Path

from fillmask_ui.errors import ModelError

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

# Far above any real header; a wrong file would otherwise ask for gigabytes.
_LONGEST_HEADER = 100_000_000


def stored_precision(paths: Iterable[Path]) -> str:
    """The type that most weights are stored in.

    Raises:
        ModelError: if a file is no safetensors file or is cut short.

    Source:
        Format: eight bytes little-endian header length, JSON header, data
        (https://huggingface.co/docs/safetensors).
    """
    sizes: Counter[str] = Counter()
    for path in paths:
        for kind, size in _tensors(path):
            sizes[_NAMES.get(kind, "")] += size
    del sizes[""]
    return sizes.most_common(1)[0][0] if sizes else "float32"


def _tensors(path: Path) -> list[tuple[str, int]]:
    """Type and number of elements of each tensor."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise _damaged(path, "its header is longer than the file")
        try:
            header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            tensors = [
                (str(entry["dtype"]), math.prod(map(index, entry["shape"])))
                for entry in header.values()
            ]
            end = max((index(entry["data_offsets"][1]) for entry in header.values()), default=0)
        except (ValueError, AttributeError, LookupError, TypeError) as error:
            raise _damaged(path, "its header is no JSON of tensors") from error
    if 8 + length + end > size:
        raise _damaged(path, f"it has {size:,} bytes and its header promises {8 + length + end:,}")
    return tensors


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


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError(f"{path} is no complete safetensors file: {why}; fetch it again")
