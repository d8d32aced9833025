"""Let a graph take its weights from a safetensors file instead of carrying a copy.

ONNX external data is "these bytes of that file", and a safetensors file is a header and plain
bytes, so a graph can point into it. Half-precision weights get a Cast, those that the graph wants
transposed a Transpose; ONNX Runtime folds both when it loads the graph, so they cost nothing later.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fillmask_ui.errors import ModelError

_KINDS = {"F16": (TensorProto.FLOAT16, np.float16), "F32": (TensorProto.FLOAT, np.float32)}
MINIMUM_ELEMENTS = 256  # smaller constants are cheaper inside the graph


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies in a safetensors file.

    Attributes:
        name: in the file.
        kind: ONNX element type.
        shape: of the array.
        offset: bytes from the start of the file.
        length: bytes.
        values: float32 array of `shape`.
    """

    name: str
    kind: int
    shape: tuple[int, ...]
    offset: int
    length: int
    values: np.ndarray


def read_safetensors(path: Path) -> list[StoredTensor]:
    """The float tensors of a safetensors file with their byte ranges.

    Raises:
        ModelError: if the file is no safetensors file.

    Source:
        https://huggingface.co/docs/safetensors, section "Format": 8 bytes of header length,
        little-endian, the header as JSON, then the data; offsets count from the data's start.
    """
    content = path.read_bytes()
    try:
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + size])
    except (struct.error, ValueError) as error:
        raise ModelError(f"{path} is no safetensors file: {error}") from error
    tensors = []
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in _KINDS:
            continue
        kind, dtype = _KINDS[entry["dtype"]]
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = np.frombuffer(content[begin:end], dtype).reshape(entry["shape"])
        tensors.append(
            StoredTensor(
                name, kind, tuple(entry["shape"]), begin, end - begin, values.astype(np.float32)
            )
        )
    return tensors


def _digest(values: np.ndarray) -> bytes:
    shape = str(values.shape).encode()
    return hashlib.sha256(shape + np.ascontiguousarray(values).tobytes()).digest()


def share_weights(model: onnx.ModelProto, weights: Path, location: str) -> list[str]:
    """Replace constants of a graph by references into a safetensors file, in place.

    Constants are matched by value, as they are or transposed, never by name, so this works for
    any exporter.

    Args:
        model: graph whose float32 constants are inside it.
        weights: the safetensors file.
        location: how the graph's folder reaches that file, e.g. `../model.safetensors`.

    Returns:
        The names of the constants that are now shared.
    """
    known: dict[bytes, tuple[StoredTensor, bool]] = {}
    for stored in read_safetensors(weights):
        known.setdefault(_digest(stored.values), (stored, False))
        if len(stored.shape) == 2:
            known.setdefault(_digest(stored.values.T), (stored, True))
    graph = model.graph
    kept, references, front = [], {}, []
    sources: dict[str, str] = {}  # name of the constant -> name of what replaces it
    for tensor in graph.initializer:
        match = None
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= MINIMUM_ELEMENTS:
            match = known.get(_digest(numpy_helper.to_array(tensor)))
        if match is None:
            kept.append(tensor)
            continue
        stored, transposed = match
        references.setdefault(stored.name, _reference(stored, location))
        name = _as_float(stored, front)
        if transposed:
            front.append(
                helper.make_node("Transpose", [name], [f"{tensor.name}.shared"], perm=[1, 0])
            )
            name = f"{tensor.name}.shared"
        sources[tensor.name] = name
    if not sources:
        return []
    nodes = [_rewire(node, sources) for node in graph.node]
    del graph.node[:], graph.initializer[:]
    graph.node.extend([*_unique(front), *nodes])
    graph.initializer.extend([*kept, *references.values()])
    return sorted(sources)


def _reference(stored: StoredTensor, location: str) -> TensorProto:
    tensor = TensorProto(name=stored.name, data_type=stored.kind, dims=stored.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (
        ("location", location),
        ("offset", str(stored.offset)),
        ("length", str(stored.length)),
    ):
        tensor.external_data.add(key=key, value=value)
    return tensor


def _as_float(stored: StoredTensor, front: list[onnx.NodeProto]) -> str:
    if stored.kind == TensorProto.FLOAT:
        return stored.name
    name = f"{stored.name}.float32"
    front.append(helper.make_node("Cast", [stored.name], [name], to=TensorProto.FLOAT))
    return name


def _unique(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    return list({node.output[0]: node for node in nodes}.values())


def _rewire(node: onnx.NodeProto, sources: dict[str, str]) -> onnx.NodeProto:
    for i, name in enumerate(node.input):
        node.input[i] = sources.get(name, name)
    return node
