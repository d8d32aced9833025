"""What is known of files of weights: hash, size, precision, and whether they fit their config."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fillmask_ui.errors import ModelError, opening

# Types of safetensors, as the signature of a model calls them.
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
_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")  # its number, in the name of a weight


def weights_sha256(paths: Iterable[Path]) -> str:
    """Hash of one file, or of the sorted hashes of several."""
    states = [(path, path.stat()) for path in paths]
    hashes = sorted(_file_sha256(path, state.st_mtime_ns, state.st_size) for path, state in states)
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


@lru_cache(maxsize=256)
def _file_sha256(path: Path, _mtime_ns: int, _size: int) -> str:
    """Read once per process as long as the file does not change."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def total_bytes(paths: Iterable[Path]) -> int:
    """Size of files on disk."""
    return sum(path.stat().st_size for path in paths)


class Tensor(NamedTuple):
    """What the header of a safetensors file says of a tensor."""

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
    """The type that most weights are stored in; float32 if none is of a known type."""
    sizes = Counter[str]()
    for tensor in (own for path in paths for own in read_header(path)):
        if tensor.kind in _NAMES:
            sizes[_NAMES[tensor.kind]] += math.prod(tensor.shape)
    return max(sizes, key=lambda kind: sizes[kind], default="float32")


def refuse_mismatched(
    name: str, mismatched: Iterable[tuple[str, Sequence[int], Sequence[int]]]
) -> None:
    """A ModelError if there are tensors (name, shape in the file, shape wanted by the config)."""
    for tensor, stored, wanted in mismatched:
        raise ModelError(
            f"the weights of {name} have other shapes than its config.json asks for, such as "
            f"{tensor}: {list(stored)}, wanted {list(wanted)}; fetch both from one place"
        )


def refuse_more_layers(name: str, loaded: Iterable[str], unexpected: Iterable[str]) -> None:
    """A ModelError if the weights have layers that config.json does not ask for.

    Such a name is that of a loaded weight but for the number; others are of heads of other tasks.
    """
    numbered = {_LAYER.sub("#", own) for own in loaded}
    if more := sorted(own for own in unexpected if _LAYER.sub("#", own) in numbered):
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
