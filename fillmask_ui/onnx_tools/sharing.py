"""Let a graph take its weights from a safetensors file instead of carrying a copy.

ONNX external data is "these bytes of that file", and a safetensors file is a header and plain
bytes, so a graph can point into it. Half-precision weights get a Cast, those that the graph wants
transposed a Transpose; ONNX Runtime folds both when it loads the graph, so they cost nothing later.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from safetensors import safe_open

from fillmask_ui.errors import opening

_KINDS = {"F16": TensorProto.FLOAT16, "F32": TensorProto.FLOAT}
MINIMUM_ELEMENTS = 256  # smaller constants are cheaper inside the graph


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies in a safetensors file."""

    name: str
    kind: int  # ONNX element type
    offset: int  # bytes from the start of the file
    length: int  # bytes
    values: np.ndarray  # float32, of its shape


def read_safetensors(path: Path) -> list[StoredTensor]:
    """The float tensors of a safetensors file with their byte ranges, in the order of the file.

    Source:
        https://huggingface.co/docs/safetensors, section "Format": a header, then the data of all
        tensors without holes up to the file's end.
    """
    with opening("a model", path), safe_open(path, "pt") as file:
        names = file.offset_keys()
        kinds = [_KINDS.get(file.get_slice(name).get_dtype()) for name in names]
        tensors = [file.get_tensor(name) for name in names]
    offset = path.stat().st_size - sum(tensor.nbytes for tensor in tensors)
    found = []
    for name, kind, tensor in zip(names, kinds, tensors, strict=True):
        if kind is not None:
            values = tensor.float().numpy()
            found.append(StoredTensor(name, kind, offset, tensor.nbytes, values))
        offset += tensor.nbytes
    return found


def share_weights(model: onnx.ModelProto, weights: Path, location: str) -> list[str]:
    """Replace constants of a graph by references into a safetensors file, in place.

    Constants are matched by value, as they are or transposed, never by name, so this works for
    any exporter. `location` is the path of that file seen from the graph's folder.

    Returns:
        The names of the constants that are now shared.
    """
    known: dict[bytes, tuple[StoredTensor, bool]] = {}  # digest -> tensor, whether transposed
    for stored in read_safetensors(weights):
        known.setdefault(_digest(stored.values), (stored, False))
        if stored.values.ndim == 2:
            known.setdefault(_digest(stored.values.T), (stored, True))
    graph = model.graph
    kept: list[TensorProto] = []
    references: dict[str, TensorProto] = {}
    front: dict[str, onnx.NodeProto] = {}  # by the name of their output
    replacements: dict[str, str] = {}  # name of a constant -> name of what stands in for it
    for tensor in graph.initializer:
        match = None
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= MINIMUM_ELEMENTS:
            match = known.get(_digest(numpy_helper.to_array(tensor)))
        if match is None:
            kept.append(tensor)
            continue
        stored, transposed = match
        name = stored.name
        references.setdefault(name, _reference(stored, location))
        if stored.kind != TensorProto.FLOAT:
            half, name = name, f"{name}.float32"
            front[name] = helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT)
        if transposed:
            upright, name = name, f"{tensor.name}.shared"
            front[name] = helper.make_node("Transpose", [upright], [name], perm=[1, 0])
        replacements[tensor.name] = name
    for node in graph.node:
        node.input[:] = [replacements.get(name, name) for name in node.input]
    nodes = [*front.values(), *graph.node]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend([*kept, *references.values()])
    return sorted(replacements)


def _digest(values: np.ndarray) -> bytes:
    shape = str(values.shape).encode()
    return hashlib.sha256(shape + np.ascontiguousarray(values).tobytes()).digest()


def _reference(stored: StoredTensor, location: str) -> TensorProto:
    tensor = TensorProto(
        name=stored.name, data_type=stored.kind, dims=stored.values.shape, raw_data=b""
    )
    set_external_data(tensor, location, stored.offset, stored.length)
    tensor.ClearField("raw_data")
    return tensor
