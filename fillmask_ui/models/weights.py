"""What is known of files of weights before they are loaded: hash, size, precision."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from safetensors import SafetensorError, safe_open

from fillmask_ui.errors import ModelError, first_line
from fillmask_ui.models.memory import check_no_pointer
from fillmask_ui.models.sizes import StoredSize

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


# As protobuf has it; larger weights lie beside the graph.
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")  # of a layer, in the name of a weight
_LARGEST_GRAPH = 2**31


def check_weights(paths: Iterable[Path]) -> None:
    """Before files are read whole: a ModelError for one that cannot be what its name says."""
    for path in paths:
        check_no_pointer(path)
        if path.suffix == ".safetensors":
            for _ in _tensors(path):
                break
        elif path.suffix == ".onnx" and (size := path.stat().st_size) > _LARGEST_GRAPH:
            raise ModelError(
                f"{path} has {size / 1e9:,.1f} GB, and a graph has 2 at most, its weights beside "
                "it if they are larger: it is damaged; fetch it again"
            )


def weights_sha256(paths: Iterable[Path]) -> str:
    """Hash of one file, or of the sorted hashes of several."""
    states = ((path, path.stat()) for path in paths)
    hashes = sorted(_file_sha256(path, state.st_mtime_ns, state.st_size) for path, state in states)
    if len(hashes) == 1:
        return hashes[0]
    return hashlib.sha256("".join(hashes).encode("ascii")).hexdigest()


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


@dataclass(frozen=True)
class _Tensor:
    """What a header says of one."""

    name: str
    kind: str  # as safetensors calls its type
    numbers: int


def _tensors(path: Path) -> Iterator[_Tensor]:
    """All of a safetensors file; a ModelError for what is none."""
    try:
        with safe_open(path, framework="numpy") as file:  # reads the header alone
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                own = file.get_slice(name)
                yield _Tensor(name, own.get_dtype(), math.prod(own.get_shape()))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(
            f"{path} is no complete safetensors file: its header is no JSON of tensors, or "
            f"promises more than the file has ({first_line(error)}); fetch it again"
        ) from error


def header_of(path: Path) -> bytes:
    """The JSON that a safetensors file begins with; the file was checked before."""
    with path.open("rb") as file:
        return file.read(int.from_bytes(file.read(8), "little"))


def tensor_ranges(path: Path) -> list[tuple[int, int]]:
    """First byte and end of each tensor in a safetensors file, in order; it was checked before."""
    content = header_of(path)
    header, length = json.loads(content), len(content)
    header.pop("__metadata__", None)
    pairs = (own["data_offsets"] for own in header.values())
    return sorted((8 + length + start, 8 + length + end) for start, end in pairs)


def stored_size(paths: Iterable[Path]) -> StoredSize:
    """How much the files hold."""
    numbers = [tensor.numbers for path in paths for tensor in _tensors(path)]
    return StoredSize(len(numbers), sum(numbers))


def stored_precision(paths: Iterable[Path]) -> str:
    """The type that most weights are stored in; float32 where none is of a known type."""
    sizes = Counter[str]()
    for tensor in chain.from_iterable(map(_tensors, paths)):
        if kind := _NAMES.get(tensor.kind):
            sizes[kind] += tensor.numbers
    return max(sizes, key=lambda kind: sizes[kind], default="float32")


def tensor_names(paths: Iterable[Path]) -> Iterator[str]:
    """Names of all tensors in some safetensors files."""
    return (tensor.name for path in paths for tensor in _tensors(path))


def refuse_mismatched(
    name: str, mismatched: Iterable[tuple[str, Sequence[int], Sequence[int]]]
) -> None:
    """Stop if tensors have other shapes than config.json asks for.

    Args:
        name: of the model.
        mismatched: names of tensors with their shapes in the file and as asked for.

    Raises:
        ModelError: if there are any.
    """
    for tensor, stored, wanted in mismatched:
        raise ModelError(
            f"the weights of {name} have other shapes or kinds of numbers than its config.json "
            f"asks for, such as {tensor}: {list(stored)}, wanted {list(wanted)}; fetch config.json "
            "and weights from one place"
        )


def refuse_integers(name: str, paths: Iterable[Path], floats: Collection[str]) -> None:
    """Stop if what a model computes as fractions is stored as whole numbers.

    Args:
        name: of the model.
        paths: its safetensors files.
        floats: names of its weights.

    Raises:
        ModelError: if the file has one of them as integers, which transformers would convert.
    """
    for path in paths:
        for tensor in _tensors(path):
            if tensor.name in floats and tensor.kind.startswith(("I", "U", "BOOL")):
                raise ModelError(
                    f"{path} has {tensor.name} of {name} as {tensor.kind}, where numbers with "
                    "fractions are wanted: it is damaged; fetch it again"
                )


def refuse_more_layers(name: str, loaded: Iterable[str], unexpected: Iterable[str]) -> None:
    """Stop if the weights have layers that config.json does not ask for.

    Args:
        name: of the model.
        loaded: names of the weights that the model has.
        unexpected: names of those that it has no place for; a head of another task is none.

    Raises:
        ModelError: if one of these is as one that was loaded, but for the number of its layer.
    """
    numbered = {_NUMBER.sub("#", own) for own in loaded}
    if more := sorted(own for own in unexpected if _NUMBER.sub("#", own) in numbered):
        raise ModelError(
            f"the weights of {name} have more layers than its config.json asks for, such as "
            f"{more[0]}: fetch config.json and weights from one place"
        )


def impossible(error: Exception) -> str:
    """What transformers says of a model that it cannot build, and whose fault that is.

    >>> impossible(ZeroDivisionError("integer modulo by zero"))
    'its config.json asks for something impossible (integer modulo by zero)'
    >>> impossible(KeyError("swishy"))
    "its config.json asks for 'swishy', which transformers does not know"
    """
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return f"its config.json asks for {error.args[0]!r}, which transformers does not know"
    if isinstance(error, ArithmeticError | AttributeError | LookupError | TypeError):
        return f"its config.json asks for something impossible ({first_line(error)})"
    return first_line(error)


def refuse_missing(name: str, kind: str, missing: Sequence[str]) -> None:
    """Stop if weights of a class are missing, which transformers fills with random numbers."""
    if missing:
        raise ModelError(
            f"{name} lacks {len(missing)} weights of a {kind}, such as {', '.join(missing[:3])}: "
            "without them its answers would be random numbers; choose a checkpoint with its "
            "masked-LM head, or train one: fillmask-ui train --init"
        )
