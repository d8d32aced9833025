"""Constants of a graph, and the walks that all tools here share.

Weights reach the operator that reads them through others: a Cast of half precision, a Transpose, a
DequantizeLinear. Types and shapes are known without reading any weight.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *HALVES)
_BITS: dict[int, int] = {TensorProto.INT4: 4, TensorProto.UINT4: 4}
# Operators of quantized graphs whose first output stands for their first input.
_PASS_ON = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Identity"}
# End the names of vectors 1 / s, see `onnx_tools.smoothing`; the second is for looked-up rows.
SMOOTHING, UNSMOOTHING = "_smoothing", "_unsmoothing"


@dataclass(frozen=True)
class Kind:
    """Type and shape of a constant."""

    type: int  # ONNX element type
    dims: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        return helper.tensor_dtype_to_np_dtype(self.type)

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS

    @property
    def is_half(self) -> bool:
        return self.type in HALVES

    @property
    def is_vector(self) -> bool:
        """Whether all axes but the last, which is longer, are 1."""
        return bool(self.dims) and math.prod(self.dims) == self.dims[-1] > 1


class Constants:
    """The constants of one graph."""

    def __init__(self, graph: GraphProto) -> None:
        self.stored = {tensor.name: tensor for tensor in graph.initializer}
        self.fixed = set(self.stored)  # values that are the same for every text
        self.makers: dict[str, NodeProto] = {}
        self.readers: dict[str, list[NodeProto]] = {}
        for node in graph.node:  # each behind what it reads
            self.makers.update((name, node) for name in node.output if name)
            read = list(values_read(node))
            for name in read:
                self.readers.setdefault(name, []).append(node)
            if self.fixed.issuperset(read):
                self.fixed.update(node.output)
        self._kinds: dict[str, Kind | None] = {}

    def kind(self, name: str) -> Kind | None:
        """Type and shape of a value; None if it is not a constant or is not known."""
        if name not in self._kinds:
            self._kinds[name] = self._kind(name)
        return self._kinds[name]

    def _kind(self, name: str) -> Kind | None:
        if name in self.stored:
            return Kind(self.stored[name].data_type, tuple(self.stored[name].dims))
        node = self.makers.get(name)
        if node is None:
            return None
        attributes = attributes_of(node)
        if node.op_type == "Constant":
            tensor = attributes.get("value")
            return None if tensor is None else Kind(tensor.data_type, tuple(tensor.dims))
        inputs = [self.kind(value) for value in node.input]
        first = inputs[0] if inputs and all(inputs) else None
        if first is None:
            return None
        if node.op_type == "Identity":
            return first
        if node.op_type == "Cast":
            return Kind(attributes["to"], first.dims)
        if node.op_type == "Mul" and inputs[1]:  # by the scales of columns
            return first if inputs[1].dims == first.dims[-1:] else None
        if node.op_type == "Transpose":
            order = attributes.get("perm") or range(len(first.dims))[::-1]
            return Kind(first.type, tuple(first.dims[axis] for axis in order))
        if node.op_type == "DequantizeLinear":
            return Kind(inputs[1].type if inputs[1] else first.type, first.dims)
        if node.op_type == "DynamicQuantizeLinear":  # values, scale, zero point
            if name == node.output[0]:
                return Kind(TensorProto.UINT8, first.dims)
            return Kind(TensorProto.FLOAT if name == node.output[1] else TensorProto.UINT8, ())
        if node.op_type == "QuantizeLinear":
            third = inputs[2] if len(inputs) > 2 else None
            return Kind(third.type if third else TensorProto.UINT8, first.dims)
        return None

    def required_kind(self, name: str) -> Kind:
        """As `kind`; a ValueError if it is None."""
        kind = self.kind(name)
        if kind is None:
            raise ValueError(f"{name} is not a constant")
        return kind

    def nodes(self, name: str) -> list[NodeProto]:
        """The operators that make a constant out of stored ones, in order."""
        return list(nodes_for(self.makers.values(), [name]))

    def unquantized(self, value: str) -> str:
        """What a value was quantized from; the value itself if it was not."""
        maker = self.makers.get(value)
        while maker is not None and maker.op_type in _PASS_ON and maker.output[0] == value:
            value = maker.input[0]
            maker = self.makers.get(value)
        return value

    def smoothing(self, value: str) -> str:
        """The stored vector [K] that smoothing multiplied a value's channels by; "" if none."""
        maker = self.makers.get(value)
        if maker is not None and maker.op_type == "LayerNormalization":
            return self.smoothing(maker.input[1])
        if maker is not None and maker.op_type == "Mul" and maker.input[1].endswith(SMOOTHING):
            return str(maker.input[1])
        return ""

    def unsmoothed(self, value: str) -> str:
        """What a Mul in front of a product smoothed; else the value itself."""
        maker = self.makers.get(value)
        if maker is not None and maker.op_type == "Mul" and self.smoothing(value):
            return str(maker.input[0])
        return value

    def roots(self, *names: str) -> list[str]:
        """Names of the stored tensors behind constants, their numbers first."""
        roots: list[str] = []
        for name in names:
            node = self.makers.get(name)
            roots += self.roots(*node.input) if node is not None and node.input else [name]
        return list(dict.fromkeys(roots))

    def value(self, name: str) -> np.ndarray:
        """The numbers, computed by ONNX Runtime; their weights must be in the graph."""
        if name in self.stored:
            return onnx.numpy_helper.to_array(self.stored[name])
        stored = [self.stored[root] for root in self.roots(name) if root in self.stored]
        output = helper.make_tensor_value_info(name, self.required_kind(name).type, None)
        return run_nodes(helper.make_graph(self.nodes(name), "constant", [], [output], stored))

    def size_bytes(self, *names: str) -> int:
        """Bytes of stored tensors together; other values count nothing."""
        total = 0
        for name in names:
            kind = self.kind(name)
            if kind is not None:
                bits = _BITS.get(kind.type) or 8 * kind.dtype.itemsize
                total += (math.prod(kind.dims) * bits + 7) // 8
        return total


def run_nodes(graph: GraphProto, **feeds: np.ndarray) -> np.ndarray:
    """The first output of a small graph."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    result: np.ndarray = session.run(None, feeds)[0]
    return result


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Attributes by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def values_read(node: NodeProto) -> Iterator[str]:
    """All values that a node and its inner graphs read."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from values_read(inner)
            yield from (value.name for value in graph.output)


def rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Let all nodes read other values, by name."""
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                rename(inner, names)


def copy_model(model: ModelProto) -> ModelProto:
    """A copy, to be changed in place."""
    result = ModelProto()
    result.CopyFrom(model)
    return result


def nodes_for(nodes: Iterable[NodeProto], outputs: Iterable[str]) -> Iterator[NodeProto]:
    """The nodes that outputs need, each behind what it reads.

    The order follows from the graph alone, so that two files of one model agree on it.
    """
    makers = {name: node for node in nodes for name in node.output if name}
    done: set[int] = set()
    pending = [(makers[name], False) for name in outputs if name in makers][::-1]
    while pending:
        node, ready = pending.pop()
        if ready:
            yield node
        elif id(node) not in done:
            done.add(id(node))
            pending.append((node, True))
            needed = [makers[name] for name in values_read(node) if name in makers]
            pending += [(maker, False) for maker in reversed(needed)]


def replace_nodes(
    graph: GraphProto, nodes: Iterable[NodeProto], added: Iterable[TensorProto] = ()
) -> None:
    """Keep those of the nodes and constants that the graph's outputs need, in place."""
    outputs = [output.name for output in graph.output]
    used = list(nodes_for(nodes, outputs))
    read = {*outputs, *(name for node in used for name in values_read(node))}
    stored = [tensor for tensor in (*graph.initializer, *added) if tensor.name in read]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(used)
    graph.initializer.extend(stored)
