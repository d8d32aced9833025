"""Which values of a graph have a row per position, made from the same row of others.

And what rewritings share that ask for some positions only, in a new input of M flat positions,
b * T + t.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper

ASKED = "asked_positions"  # the new input, int64 [M]

# Operators with a constant matrix; they mix what stands in one row, never rows.
PRODUCTS = {
    "MatMul",
    "Gemm",
    "FusedMatMul",
    "FusedGemm",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul",
    "MatMulNBits",
    "MatMulBnb4",
    "QLinearMatMul",
    "QGemm",
}
# Those that give each row from the same row of their inputs, constants aside.
_BY_ROW = PRODUCTS | {
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Where", "QLinearAdd", "QLinearMul"),
    *("Cast", "Identity", "Dropout", "Sqrt", "Reciprocal", "Neg", "Abs", "Exp", "Log", "Clip"),
    *("Erf", "Tanh", "Sigmoid", "Relu", "LeakyRelu", "Elu", "Selu", "Softplus", "HardSigmoid"),
    *("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "Mish", "Swish", "HardSwish"),
    *("QuantizeLinear", "DequantizeLinear", "QLinearSigmoid"),
    *("LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"),
    *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "Reshape"),
    "Split",
}
LAST_AXIS = {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "Split"}
_SEVERAL_OUTPUTS = {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Split"}
_REDUCE = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"}


class ByRow:
    """What the operators of one graph do to the positions of a text."""

    def __init__(self, graph: GraphProto) -> None:
        self.graph = graph
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.constants = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self.fixed = set(self.constants)  # values that are the same for every text
        for node in graph.node:  # each stands behind what it reads
            if all(name in self.fixed for name in read_by(node)):
                self.fixed.update(node.output)

    def rows(self, value: str) -> list[str] | None:
        """The inputs of a value that have a row per position; None where it mixes positions."""
        node = self.makers.get(value)
        if node is None or node.op_type not in _BY_ROW or value in self.fixed:
            return None
        if value != node.output[0] and node.op_type not in _SEVERAL_OUTPUTS:
            return None
        rows = [name for name in node.input if name and not self._is_small(name)]
        attributes = {own.name: helper.get_attribute_value(own) for own in node.attribute}
        if not rows or attributes.get("transA"):
            return None
        if node.op_type in PRODUCTS and rows != [node.input[0]]:
            return None  # the product of two activations is attention
        default = 0 if node.op_type == "Split" else -1
        if node.op_type in LAST_AXIS and attributes.get("axis", default) not in (-1, 2):
            return None
        if node.op_type in _REDUCE and not self._reduces_last(node, attributes):
            return None
        if node.op_type == "Reshape":
            width = self._width(value)
            if width is None or self._width(node.input[0]) != width:
                return None
            return [node.input[0]]
        return rows

    def _is_small(self, value: str) -> bool:
        """Whether it is constant, or one scale for all positions."""
        node = self.makers.get(value)
        if node is None or value in self.fixed:
            return value in self.fixed
        if node.op_type == "DynamicQuantizeLinear":
            return value != node.output[0]
        return node.op_type in ("Mul", "Cast") and all(map(self._is_small, node.input))

    def _reduces_last(self, node: NodeProto, attributes: dict[str, object]) -> bool:
        axes = attributes.get("axes")
        if axes is None and len(node.input) > 1:
            stored = [tensor for tensor in self.graph.initializer if tensor.name == node.input[1]]
            maker = self.makers.get(node.input[1])
            if maker is not None and maker.op_type == "Constant":
                stored = [own.t for own in maker.attribute if own.name == "value"]
            axes = [int(axis) for tensor in stored for axis in onnx.numpy_helper.to_array(tensor)]
        return axes == [-1] and attributes.get("keepdims", 1) == 1

    def _width(self, value: str) -> int | None:
        """Size of the last axis, as far as constants tell it."""
        node = self.makers.get(value)
        if node is None:
            return None
        if node.op_type in PRODUCTS:
            return self._columns(node)
        if node.op_type == "Reshape":
            return next(self._widths_behind(value), None) or self._width(node.input[0])
        if node.op_type not in _BY_ROW | {"DynamicQuantizeLinear"} or node.op_type in _REDUCE:
            return None
        for name in node.input:
            if name in self.constants and self.constants[name][-1:] not in ((), (1,)):
                return self.constants[name][-1]
        widths = (self._width(name) for name in node.input if name and not self._is_small(name))
        return next((width for width in widths if width is not None), None)

    def _widths_behind(self, value: str) -> Iterator[int]:
        """What readers of a value say of its last axis."""
        for node in self.graph.node:
            if node.op_type in PRODUCTS and node.input[0] == value:
                dims = self._dims(node.input[1]) if len(node.input) > 1 else None
                transposed = any(own.name == "transB" and own.i for own in node.attribute)
                if dims is not None and len(dims) == 2:
                    yield dims[1] if transposed else dims[0]

    def _columns(self, node: NodeProto) -> int | None:
        attributes = {own.name: helper.get_attribute_value(own) for own in node.attribute}
        if "N" in attributes:
            return int(attributes["N"])
        place = 3 if node.op_type in ("QLinearMatMul", "QGemm") else 1
        dims = self._dims(node.input[place])
        if dims is None or len(dims) != 2:
            return None
        return dims[0] if attributes.get("transB") else dims[1]

    def _dims(self, value: str) -> tuple[int, ...] | None:
        """Shape of a constant, seen through what does not move its numbers far."""
        if value in self.constants:
            return self.constants[value]
        node = self.makers.get(value)
        if node is None:
            return None
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            return tuple(node.attribute[0].t.dims)
        if node.op_type in ("Cast", "Identity", "DequantizeLinear", "QuantizeLinear"):
            return self._dims(node.input[0])
        if node.op_type == "Transpose":
            dims = self._dims(node.input[0])
            return None if dims is None or len(dims) != 2 else dims[::-1]
        return None


def read_by(node: NodeProto) -> Iterator[str]:
    """All values that a node reads, those of its inner graphs too."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from read_by(inner)
            yield from (value.name for value in graph.output)


def _used(nodes: list[NodeProto], output: str) -> list[NodeProto]:
    """Those that an output needs, in an order in which each stands behind what it reads."""
    makers = {name: node for node in nodes for name in node.output if name}
    ordered: list[NodeProto] = []
    done: set[int] = set()
    pending = [(makers[output], False)]
    while pending:
        node, ready = pending.pop()
        if ready:
            ordered.append(node)
        elif id(node) not in done:
            done.add(id(node))
            pending.append((node, True))
            pending += [(makers[name], False) for name in read_by(node) if name in makers]
    return ordered


def taken(value: str, asked: str) -> list[NodeProto]:
    """Nodes that take the asked rows [M, ...] out of a value [B, T, ...] or [B * T, ...]."""
    flat = f"{value}_by_row"
    return [
        helper.make_node("Flatten", [value], [flat], axis=-1),
        helper.make_node("Gather", [flat, ASKED], [asked], axis=0),
    ]


def end_in(graph: GraphProto, new: list[NodeProto], output: str, kind: int) -> None:
    """Make a graph, with new nodes and the input `ASKED`, give one output and nothing else.

    `kind` is the element type of the output; what it does not need is dropped.
    """
    used = _used([*graph.node, *new], output)
    del graph.node[:], graph.output[:]
    graph.node.extend(used)
    read = {name for node in used for name in read_by(node)}
    constants = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(constants)
    graph.input.append(helper.make_tensor_value_info(ASKED, TensorProto.INT64, ["asked"]))
    graph.output.append(helper.make_tensor_value_info(output, kind, None))
