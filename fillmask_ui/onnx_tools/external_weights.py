"""Let a graph take its weights from another file instead of carrying a copy.

ONNX external data is "these bytes of that file". Weights are plain bytes in safetensors and ONNX
files, so a graph can point into either.
"""

import hashlib
import math
import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from fillmask_ui.onnx_tools.constant_folding import rename, replace_nodes

_KINDS: dict[str, Any] = {"F16": np.float16, "F32": np.float32}  # types in safetensors
MINIMUM_ELEMENTS = 256  # smaller constants are cheaper inside the graph
_LEAST_BYTES = 4096  # of a constant that stays in the ONNX file it was read from


def content(values: np.ndarray) -> bytes:
    """Equal for equal matrices."""
    shape = str(values.shape).encode()
    return hashlib.sha256(shape + np.ascontiguousarray(values).tobytes()).digest()


def share_weights(
    model: ModelProto, weights: Path, header: Iterable[tuple[int, int, str, str, tuple[int, ...]]]
) -> list[str]:
    """Replace constants of a graph by references into a safetensors file, in place.

    Constants are matched by value, also transposed, never by name, so this works for any exporter.
    Half-precision weights get a Cast, transposed ones a Transpose, which ONNX Runtime folds when it
    loads the graph. The graph has its weights inside, in float32, and must be saved beside the
    file: what lies elsewhere other tools refuse. `header` tells first byte, end, name, type and
    shape of each tensor in the file. Returns the names of the constants now shared.
    """
    known: dict[bytes, Stored] = {}
    data = weights.read_bytes()
    for start, end, name, kind, shape in header:
        if kind not in _KINDS:
            continue
        values = np.frombuffer(data[start:end], _KINDS[kind]).reshape(shape)
        stored = numpy_helper.from_array(values, name)
        set_external_data(stored, weights.name, start, end - start)
        stored.ClearField("raw_data")
        remember(known, values.astype(np.float32), stored)
    return reuse(model.graph, known)


Stored = tuple[TensorProto, bool]  # a tensor, and whether it is to be transposed


def remember(known: dict[bytes, Stored], values: np.ndarray, stored: TensorProto) -> None:
    """Add the numbers of a tensor to those that `reuse` finds, transposed too."""
    known.setdefault(content(values), (stored, False))
    if values.ndim == 2:
        known.setdefault(content(values.T), (stored, True))


def reuse(graph: GraphProto, known: Mapping[bytes, Stored]) -> list[str]:
    """Replace constants by known tensors of the same numbers, in place; names of those replaced."""
    used: dict[str, TensorProto] = {}
    front = {}  # nodes by the name of their output
    instead: dict[str, str] = {}  # name of a constant -> name of what stands in for it
    for tensor in graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or math.prod(tensor.dims) < MINIMUM_ELEMENTS:
            continue
        stored, transposed = known.get(content(numpy_helper.to_array(tensor)), (tensor, False))
        if stored is tensor:
            continue
        name = stored.name
        used[name] = stored
        if stored.data_type != TensorProto.FLOAT:
            half, name = name, f"{name}.float32"
            front[name] = helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT)
        if transposed:
            upright, name = name, f"{tensor.name}.shared"
            front[name] = helper.make_node("Transpose", [upright], [name], perm=[1, 0])
        instead[tensor.name] = name
    rename(graph, instead)
    kept = [own for own in graph.initializer if own.name not in instead.keys() | used.keys()]
    del graph.initializer[:]
    replace_nodes(graph, [*front.values(), *graph.node], [*kept, *used.values()])
    return sorted(instead)


def point_into(model: ModelProto, path: Path, location: str) -> None:
    """Replace large weights in a graph by references into its file `path`, named `location`."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start = 0
        for tensor in model.graph.initializer:
            length = len(tensor.raw_data)
            if tensor.data_location == TensorProto.EXTERNAL or length < _LEAST_BYTES:
                continue
            # They follow each other in the file in the order of the graph.
            found = data.find(tensor.raw_data, start)
            if found >= 0:
                set_external_data(tensor, location, offset=found, length=length)
                tensor.ClearField("raw_data")
                start = found + length
