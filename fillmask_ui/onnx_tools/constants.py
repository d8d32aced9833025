"""What of a graph is the same for every text, and what the runtime makes of it.

Weights reach the operator that reads them through others: a Cast of half precision, a Transpose, a
DequantizeLinear. Types and shapes are told without reading any weight.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from fillmask_ui.onnx_tools.by_row import read_by

_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *_HALVES)
_BITS: dict[int, int] = {TensorProto.INT4: 4, TensorProto.UINT4: 4}


@dataclass(frozen=True)
class Kind:
    """Type and shape of a constant."""

    type: int  # ONNX element type
    dims: tuple[int, ...]

    @property
    def is_float(self) -> bool:
        return self.type in _FLOATS

    @property
    def is_half(self) -> bool:
        return self.type in _HALVES

    @property
    def is_vector(self) -> bool:
        """Whether it holds one number for each of several columns, the other axes being 1."""
        return bool(self.dims) and math.prod(self.dims) == self.dims[-1] > 1


class Constants:
    """The constants of one graph."""

    def __init__(self, graph: GraphProto) -> None:
        self.graph = graph
        self.stored = {tensor.name: tensor for tensor in graph.initializer}
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.readers: dict[str, list[NodeProto]] = {}
        for node in graph.node:
            for name in read_by(node):
                self.readers.setdefault(name, []).append(node)
        self._kinds: dict[str, Kind | None] = {}

    def kind(self, name: str) -> Kind | None:
        """Type and shape of a value; None where it is no constant."""
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
        if node.op_type == "Transpose":
            order = attributes.get("perm") or range(len(first.dims))[::-1]
            return Kind(first.type, tuple(first.dims[axis] for axis in order))
        if node.op_type == "DequantizeLinear":
            return Kind(inputs[1].type if inputs[1] else first.type, first.dims)
        if node.op_type == "DynamicQuantizeLinear":
            place = list(node.output).index(name)
            return Kind(
                TensorProto.FLOAT if place == 1 else TensorProto.UINT8, () if place else first.dims
            )
        if node.op_type == "QuantizeLinear":
            third = inputs[2] if len(inputs) > 2 else None
            return Kind(third.type if third else TensorProto.UINT8, first.dims)
        return None

    def nodes(self, name: str) -> list[NodeProto]:
        """What makes a constant out of stored ones, each behind what it reads."""
        node = self.makers.get(name)
        if node is None:
            return []
        found: list[NodeProto] = []
        for value in node.input:
            found += [own for own in self.nodes(value) if own not in found]
        return [*found, node]

    def roots(self, name: str) -> list[str]:
        """Names of the stored tensors that a constant is made of, its numbers first."""
        node = self.makers.get(name)
        if node is None or not node.input:
            return [name]
        return list(dict.fromkeys(root for value in node.input for root in self.roots(value)))

    def value(self, name: str) -> np.ndarray:
        """The numbers, as ONNX Runtime works them out; their weights must be in the graph."""
        if name in self.stored:
            return onnx.numpy_helper.to_array(self.stored[name])
        nodes = self.nodes(name)
        read = {value for node in nodes for value in node.input}
        stored = [tensor for tensor in self.graph.initializer if tensor.name in read]
        output = helper.make_tensor_value_info(name, self.known(name).type, None)
        return run_nodes(helper.make_graph(nodes, "constant", [], [output], stored), {})[0]

    def known(self, name: str) -> Kind:
        """`kind` of what is known to be a constant."""
        kind = self.kind(name)
        if kind is None:
            raise ValueError(f"{name} is no constant")
        return kind

    def roots_of(self, node: str, place: int, others: Sequence[str]) -> list[str]:
        """The stored tensors behind one input of an operator and behind other constants."""
        values = [self.makers[node].input[place], *others]
        return list(dict.fromkeys(root for value in values for root in self.roots(value)))

    def type_name(self, name: str) -> str:
        """Element type of a stored tensor, such as `int8`."""
        return str(TensorProto.DataType.Name(self.known(name).type)).lower()

    def size_bytes(self, name: str) -> int:
        """Bytes of a stored tensor."""
        kind = self.kind(name)
        if kind is None:
            return 0
        bits = _BITS.get(kind.type) or 8 * helper.tensor_dtype_to_np_dtype(kind.type).itemsize
        return (math.prod(kind.dims) * bits + 7) // 8


def run_nodes(graph: GraphProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """All outputs of a small graph."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    results: list[np.ndarray] = session.run(None, feeds)
    return results


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """The attributes of a node by name."""
    return {own.name: helper.get_attribute_value(own) for own in node.attribute}


def in_order(model: ModelProto) -> Iterator[NodeProto]:
    """The nodes that the outputs need, each behind what it reads, by the graph alone.

    Files list the same nodes in different orders; this one follows the inputs of each operator
    from the outputs back, so that two files of one model agree on it.
    """
    makers = {name: node for node in model.graph.node for name in node.output if name}
    done: set[int] = set()
    pending = [(makers[out.name], False) for out in model.graph.output if out.name in makers][::-1]
    while pending:
        node, ready = pending.pop()
        if ready:
            yield node
        elif id(node) not in done:
            done.add(id(node))
            pending.append((node, True))
            needed = [makers[name] for name in read_by(node) if name in makers]
            pending += [(own, False) for own in reversed(needed)]
