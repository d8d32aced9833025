"""Let a graph take its weights from another file instead of carrying a copy.

ONNX external data is "these bytes of that file". Weights are plain bytes in safetensors and ONNX
files, so a graph can point into either.
"""

import hashlib
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from safetensors import safe_open

from fillmask_ui.errors import opening
from fillmask_ui.onnx_tools.constant_folding import replace_nodes

_KINDS = {"F16": TensorProto.FLOAT16, "F32": TensorProto.FLOAT}
MINIMUM_ELEMENTS = 256  # smaller constants are cheaper inside the graph
_LEAST_BYTES = 4096  # of a constant that stays in the ONNX file it was read from


def content(values: np.ndarray) -> bytes:
    """Equal for equal matrices."""
    shape = str(values.shape).encode()
    return hashlib.sha256(shape + np.ascontiguousarray(values).tobytes()).digest()


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies in a safetensors file."""

    name: str
    kind: int  # ONNX element type
    offset: int  # bytes from the start of the file
    length: int  # bytes
    values: np.ndarray  # float32, of its shape


def read_safetensors(path: Path) -> Iterator[StoredTensor]:
    """The float tensors of a safetensors file with their byte ranges, in the order of the file.

    Source:
        https://huggingface.co/docs/safetensors, section "Format": no holes up to the file's end.
    """
    with opening("a model", path), safe_open(path, "pt") as file:
        names = file.offset_keys()
        kinds = [_KINDS.get(file.get_slice(name).get_dtype()) for name in names]
        tensors = [file.get_tensor(name) for name in names]
    offset = path.stat().st_size - sum(tensor.nbytes for tensor in tensors)
    for name, kind, tensor in zip(names, kinds, tensors, strict=True):
        if kind is not None:
            yield StoredTensor(name, kind, offset, tensor.nbytes, tensor.float().numpy())
        offset += tensor.nbytes


def share_weights(model: ModelProto, weights: Path) -> list[str]:
    """Replace constants of a graph by references into a safetensors file, in place.

    Constants are matched by value, also transposed, never by name, so this works for any exporter.
    Half-precision weights get a Cast, transposed ones a Transpose, which ONNX Runtime folds when it
    loads the graph. The graph has its weights inside, in float32, and must be saved beside the
    file: what lies elsewhere other tools refuse. Returns the names of the constants now shared.
    """
    known: dict[bytes, tuple[StoredTensor, bool]] = {}  # content -> tensor, whether transposed
    for stored in read_safetensors(weights):
        known.setdefault(content(stored.values), (stored, False))
        if stored.values.ndim == 2:
            known.setdefault(content(stored.values.T), (stored, True))
    references: dict[str, TensorProto] = {}
    front = {}  # nodes by the name of their output
    replacements: dict[str, str] = {}  # name of a constant -> name of what stands in for it
    for tensor in model.graph.initializer:
        match = None
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= MINIMUM_ELEMENTS:
            match = known.get(content(numpy_helper.to_array(tensor)))
        if match is None:
            continue
        stored, transposed = match
        name = stored.name
        if name not in references:
            references[name] = reference = TensorProto(
                name=name, data_type=stored.kind, dims=stored.values.shape, raw_data=b""
            )
            set_external_data(reference, weights.name, stored.offset, stored.length)
            reference.ClearField("raw_data")
        if stored.kind != TensorProto.FLOAT:
            half, name = name, f"{name}.float32"
            front[name] = helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT)
        if transposed:
            upright, name = name, f"{tensor.name}.shared"
            front[name] = helper.make_node("Transpose", [upright], [name], perm=[1, 0])
        replacements[tensor.name] = name
    for node in model.graph.node:
        node.input[:] = [replacements.get(name, name) for name in node.input]
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in replacements]
    del model.graph.initializer[:]
    nodes = [*front.values(), *model.graph.node]
    replace_nodes(model.graph, nodes, [*kept, *references.values()])
    return sorted(replacements)


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
