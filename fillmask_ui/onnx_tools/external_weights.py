"""Let a graph take its weights from another file instead of carrying a copy.

ONNX external data is "these bytes of that file". Weights are plain bytes in safetensors and ONNX
files, so a graph can point into either.
"""

import hashlib
import math
import mmap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from fillmask_ui.onnx_tools.constant_folding import rename, replace_nodes

_KINDS: dict[str, Any] = {"F16": np.float16, "F32": np.float32}  # types in safetensors
MINIMUM_ELEMENTS = 256  # smaller constants are cheaper inside the graph
_LEAST_BYTES = 4096  # of a constant that stays in the ONNX file it was read from


def content_hash(values: np.ndarray) -> bytes:
    """Equal for equal matrices."""
    shape = str(values.shape).encode()
    return hashlib.sha256(shape + np.ascontiguousarray(values).tobytes()).digest()


def share_weights(model: ModelProto, weights: Path, header: Iterable[Any]) -> list[str]:
    """Replace constants of a graph by references into a safetensors file, in place.

    Constants are matched by value, also transposed, never by name, so this works for any exporter.
    Half-precision weights get a Cast, transposed ones a Transpose, which ONNX Runtime folds when it
    loads the graph. The graph has its weights inside, in float32, and must be saved beside the
    file: what lies elsewhere other tools refuse. `header` is that of `models.weights.read_header`.
    Returns the names of the constants now shared.
    """
    stored: dict[bytes, Stored] = {}
    data = weights.read_bytes()
    for entry in header:
        if entry.kind not in _KINDS:
            continue
        values = np.frombuffer(data[entry.start : entry.end], _KINDS[entry.kind])
        values = values.reshape(entry.shape)
        tensor = numpy_helper.from_array(values, entry.name)
        set_external_data(tensor, weights.name, entry.start, entry.end - entry.start)
        tensor.ClearField("raw_data")
        remember(stored, values.astype(np.float32), tensor)
    return reuse(model.graph, stored)


@dataclass(frozen=True)
class Stored:
    """A tensor that other constants can be read from."""

    tensor: TensorProto
    transposed: bool = False


def remember(stored: dict[bytes, Stored], values: np.ndarray, tensor: TensorProto) -> None:
    """Add the numbers of a tensor to those that `reuse` finds, transposed too."""
    stored.setdefault(content_hash(values), Stored(tensor))
    if values.ndim == 2:
        stored.setdefault(content_hash(values.T), Stored(tensor, transposed=True))


def reuse(graph: GraphProto, stored: Mapping[bytes, Stored]) -> list[str]:
    """Replace constants by tensors of the same numbers, in place; names of those replaced."""
    used: dict[str, TensorProto] = {}
    nodes = {}  # by the name of their output
    replaced: dict[str, str] = {}  # name of a constant -> name of the value in its place
    for constant in graph.initializer:
        if constant.data_type != TensorProto.FLOAT or math.prod(constant.dims) < MINIMUM_ELEMENTS:
            continue
        equal = stored.get(content_hash(numpy_helper.to_array(constant)))
        if equal is None or equal.tensor is constant:
            continue
        name = equal.tensor.name
        used[name] = equal.tensor
        if equal.tensor.data_type != TensorProto.FLOAT:
            half, name = name, f"{name}.float32"
            nodes[name] = helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT)
        if equal.transposed:
            upright, name = name, f"{constant.name}.shared"
            nodes[name] = helper.make_node("Transpose", [upright], [name], perm=[1, 0])
        replaced[constant.name] = name
    rename(graph, replaced)
    unchanged = [
        constant
        for constant in graph.initializer
        if constant.name not in replaced and constant.name not in used
    ]
    del graph.initializer[:]
    replace_nodes(graph, [*nodes.values(), *graph.node], [*unchanged, *used.values()])
    return sorted(replaced)


def point_into(model: ModelProto, path: Path, location: str) -> None:
    """Replace large weights in a graph by references into its file `path`, named `location`."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start = 0
        for tensor in model.graph.initializer:
            length = len(tensor.raw_data)
            if tensor.data_location == TensorProto.EXTERNAL or length < _LEAST_BYTES:
                continue
            # They follow each other in the file in the order of the graph.
            offset = data.find(tensor.raw_data, start)
            if offset >= 0:
                set_external_data(tensor, location, offset=offset, length=length)
                tensor.ClearField("raw_data")
                start = offset + length
