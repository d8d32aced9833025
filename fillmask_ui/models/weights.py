"""Files of weights: hash, size, precision, and whether they fit their config."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from fillmask_ui.errors import ModelError, opening

# Types of safetensors -> as signatures call them.
_FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_NAMES = _FLOATS | {"F8_E4M3": "float8", "F8_E5M2": "float8", "I8": "int8", "U8": "int8"}
_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")  # its number, in the name of a weight


def weights_sha256(paths: Iterable[Path]) -> str:
    """Hash of one file, or of the sorted hashes of several."""
    states = [(path, path.stat()) for path in paths]
    hashes = sorted(_file_sha256(path, state.st_mtime_ns, state.st_size) for path, state in states)
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


@lru_cache(maxsize=256)
def _file_sha256(path: Path, _mtime_ns: int, _size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Tensor(NamedTuple):
    """One entry in the header of a safetensors file."""

    start: int  # its first byte in the file
    end: int
    name: str
    kind: str  # `F16`, `I8`, ...
    shape: tuple[int, ...]


def read_header(path: Path) -> list[Tensor]:
    """The tensors of a safetensors file, in the order of their bytes."""
    with opening("a model", path), path.open("rb") as file:
        content = file.read(min(int.from_bytes(file.read(8), "little"), path.stat().st_size))
        header, first = json.loads(content), 8 + len(content)
        header.pop("__metadata__", None)
        tensors = []
        for name, own in header.items():
            start, end = own["data_offsets"]
            shape = tuple(own["shape"])
            tensors.append(Tensor(first + start, first + end, name, own["dtype"], shape))
        return sorted(tensors)


def stored_precision(paths: Iterable[Path]) -> str:
    """The type of most weights; float32 if none has a known type."""
    sizes = Counter[str]()
    for tensor in (own for path in paths for own in read_header(path)):
        if tensor.kind in _NAMES:
            sizes[_NAMES[tensor.kind]] += math.prod(tensor.shape)
    return max(sizes, key=lambda kind: sizes[kind], default="float32")


def refuse_unlike(name: str, loaded: Iterable[str], info: Mapping[str, Any]) -> None:
    """A ModelError for weights of other shapes or more layers than config.json says.

    `loaded` are the names of the model's weights, `info` is the loading report of transformers.
    """
    for tensor, stored, wanted in info["mismatched_keys"]:
        raise ModelError(
            f"the weights of {name} have other shapes than its config.json asks for, such as "
            f"{tensor}: {list(stored)}, wanted {list(wanted)}; fetch both from one place"
        )
    # Named as a loaded weight but for the number; others belong to heads of other tasks.
    numbered = {_LAYER.sub("#", own) for own in loaded}
    if more := sorted(o for o in info["unexpected_keys"] if _LAYER.sub("#", o) in numbered):
        raise ModelError(
            f"the weights of {name} have more layers than its config.json asks for, such as "
            f"{more[0]}: fetch both from one place"
        )


def refuse_missing(name: str, kind: str, missing: Sequence[str]) -> None:
    """A ModelError if weights of a class are missing, which transformers draws at random."""
    if missing:
        raise ModelError(
            f"{name} lacks {len(missing)} weights of a {kind}, such as {', '.join(missing[:3])}: "
            "without them its answers would be random numbers; choose a checkpoint with its "
            "masked-LM head, or train one: fillmask-ui train --init"
        )
