"""Which values of a graph have a row per position, made from the same row of others.

And what rewritings share that ask for some positions only, in a new input of M flat positions,
b * T + t.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import GraphProto, NodeProto, TensorProto, helper

from fillmask_ui.onnx_tools.constant_folding import Constants, attributes_of, replace_nodes

ASKED = "asked_positions"  # the new input, int64 [M]

# Operators with a constant matrix; they mix what stands in one row, never rows.
PRODUCTS = {
    *("MatMul", "Gemm", "FusedMatMul", "FusedGemm", "MatMulInteger", "MatMulIntegerToFloat"),
    *("DynamicQuantizeMatMul", "MatMulNBits", "MatMulBnb4", "QLinearMatMul", "QGemm"),
}
# Those that give each row from the same row of their inputs, constants aside.
_ROW_WISE = PRODUCTS | {
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Where", "QLinearAdd", "QLinearMul"),
    *("Cast", "Identity", "Dropout", "Sqrt", "Reciprocal", "Neg", "Abs", "Exp", "Log", "Clip"),
    *("Erf", "Tanh", "Sigmoid", "Relu", "LeakyRelu", "Elu", "Selu", "Softplus", "HardSigmoid"),
    *("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "Mish", "Swish", "HardSwish"),
    *("QuantizeLinear", "DequantizeLinear", "QLinearSigmoid"),
    *("LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"),
    *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "Reshape", "Split"),
}
LAST_AXIS = {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "Split"}
_SEVERAL_OUTPUTS = {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Split"}
_REDUCE = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"}
# Operators of quantized graphs whose first output stands for their first input.
_SAME = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Identity"}


class RowWise:
    """What the operators of one graph do to the positions of a text."""

    def __init__(self, graph: GraphProto) -> None:
        self.constants = Constants(graph)
        self.makers = self.constants.makers

    def rows(self, value: str) -> list[str] | None:
        """The inputs of a value that have a row per position; None if it mixes positions."""
        node = self.makers.get(value)
        if node is None or node.op_type not in _ROW_WISE or value in self.constants.fixed:
            return None
        if value != node.output[0] and node.op_type not in _SEVERAL_OUTPUTS:
            return None
        rows = [name for name in node.input if name and not self._is_small(name)]
        attributes = attributes_of(node)
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

    def unquantized(self, value: str) -> str:
        """What a value was quantized from; the value itself if it was not."""
        maker = self.makers.get(value)
        while maker is not None and maker.op_type in _SAME and maker.output[0] == value:
            value = maker.input[0]
            maker = self.makers.get(value)
        return value

    def _is_small(self, value: str) -> bool:
        """Whether it is constant, or one scale for all positions."""
        node = self.makers.get(value)
        if node is None or value in self.constants.fixed:
            return value in self.constants.fixed
        if node.op_type == "DynamicQuantizeLinear":
            return value != node.output[0]
        return node.op_type in ("Mul", "Cast") and all(map(self._is_small, node.input))

    def _reduces_last(self, node: NodeProto, attributes: dict[str, Any]) -> bool:
        axes = attributes.get("axes")
        if axes is None and len(node.input) > 1 and self.constants.kind(node.input[1]):
            axes = self.constants.value(node.input[1]).tolist()
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
        if node.op_type not in _ROW_WISE | {"DynamicQuantizeLinear"} or node.op_type in _REDUCE:
            return None
        for name in node.input:
            if name in self.constants.stored and self._dims(name)[-1:] not in ((), (1,)):
                return self._dims(name)[-1]
        widths = (self._width(name) for name in node.input if name and not self._is_small(name))
        return next((width for width in widths if width is not None), None)

    def _widths_behind(self, value: str) -> Iterator[int]:
        """What readers of a value say of its last axis."""
        for node in self.constants.readers.get(value, []):
            if node.op_type in PRODUCTS and node.input[0] == value and len(node.input) > 1:
                dims = self._dims(node.input[1])
                if len(dims) == 2:
                    yield dims[1] if attributes_of(node).get("transB") else dims[0]

    def _columns(self, node: NodeProto) -> int | None:
        attributes = attributes_of(node)
        if "N" in attributes:
            return int(attributes["N"])
        dims = self._dims(node.input[3 if node.op_type in ("QLinearMatMul", "QGemm") else 1])
        if len(dims) != 2:
            return None
        return dims[0] if attributes.get("transB") else dims[1]

    def _dims(self, value: str) -> tuple[int, ...]:
        """Shape of a constant; () for anything else."""
        kind = self.constants.kind(value)
        return kind.dims if kind else ()


def asked_rows(value: str, asked: str) -> list[NodeProto]:
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
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(output, kind, None))
    replace_nodes(graph, [*graph.node, *new])
    graph.input.append(helper.make_tensor_value_info(ASKED, TensorProto.INT64, ["asked"]))
