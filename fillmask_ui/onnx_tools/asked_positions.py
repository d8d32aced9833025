"""Graphs that end in the logits at asked positions.

    hidden states [B, T, H] -> MatMul -> logits [B, T, V]

becomes

    hidden states [B, T, H] -> Flatten -> [B * T, H] -> Gather -> [M, H] -> MatMul -> [M, V]

with a new input of M flat positions, b * T + t. The Gather moves further up through all that treats
each position by itself, such as the last feed-forward part, to the keys and values of attention. In
a dynamically quantized graph it stays behind DynamicQuantizeLinear, whose scale is that of all
positions. The rewriting reasons about operators, not about patterns of exporters; the result must
be compared with the whole graph on a probe.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from fillmask_ui.onnx_tools.constant_folding import (
    Constants,
    attributes_of,
    copied,
    in_order,
    replace_nodes,
)

ASKED = "asked_positions"  # the new input, int64 [M]
AT_ASKED = "_at_asked"  # follows the name of the logits in that of the new output

# Operators with a constant matrix; they mix numbers within a row, never rows.
PRODUCTS = {
    *("MatMul", "Gemm", "FusedMatMul", "FusedGemm", "MatMulInteger", "MatMulIntegerToFloat"),
    *("MatMulNBits", "MatMulBnb4", "QLinearMatMul", "QGemm"),
}
# Operators that make each row from the same row of their inputs, constants aside.
_ROW_WISE = PRODUCTS | {
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Where", "QLinearAdd", "QLinearMul"),
    *("Cast", "Identity", "Dropout", "Sqrt", "Reciprocal", "Neg", "Abs", "Exp", "Log", "Clip"),
    *("Erf", "Tanh", "Sigmoid", "Relu", "LeakyRelu", "Elu", "Selu", "Softplus", "HardSigmoid"),
    *("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "Mish", "Swish", "HardSwish"),
    *("QuantizeLinear", "DequantizeLinear", "QLinearSigmoid"),
    *("LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"),
    *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "Split"),
}
_LAST_AXIS = {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "Split"}
_SEVERAL_OUTPUTS = {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Split"}
_REDUCE = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"}


def gather_asked(model: ModelProto, logits: str) -> ModelProto | None:
    """A copy of a graph that computes the logits of asked positions only.

    Weights may lie elsewhere. `logits` is the output [B, T, V]; the copy has the input `ASKED` and
    the one output `logits` + `AT_ASKED`, [M, V] (an axis of 1 may stand in front). None if no
    product with a constant stands between the output and what needs all positions.
    """
    result = copied(model)
    return result if _Rewriting(result.graph).apply(logits) else None


def last_state(model: ModelProto, logits: str) -> str | None:
    """The last hidden state, which the head reads; None if the projection is not found.

    The head is a vocabulary projection, mostly behind a dense layer of its own:

        last hidden state -> dense -> activation, norm -> projection -> logits

    Walking back from the logits, the first product is the projection, and from there the dense
    layer is the one product that all ways lead to. In a model without one the projection reads the
    encoder, whose residual connection opens another way to earlier products.
    """
    rows = _Rows(model.graph)
    projection = _only_product(rows, logits)
    if projection is None:
        return None
    dense = _only_product(rows, projection.input[0])
    return rows.constants.unquantized((dense or projection).input[0])


def _only_product(rows: _Rows, value: str) -> NodeProto | None:
    """The product with a constant that all ways back lead to first; None if there is none."""
    found: list[NodeProto] = []
    pending, seen = [value], set[str]()
    while pending:
        value = rows.constants.unquantized(pending.pop())
        if value in seen:
            continue
        seen.add(value)
        inputs, maker = rows.inputs(value), rows.makers.get(value)
        if inputs is None or maker is None:
            return None  # positions mix here, or the text itself comes in
        if maker.op_type not in PRODUCTS:
            pending += inputs
        elif maker not in found:
            found.append(maker)
    return found[0] if len(found) == 1 else None


class _Rows:
    """What the operators of one graph do to the positions of a text."""

    def __init__(self, graph: GraphProto) -> None:
        self.constants = Constants(graph)
        self.makers = self.constants.makers

    def inputs(self, value: str) -> list[str] | None:
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
        if node.op_type in _LAST_AXIS and attributes.get("axis", default) not in (-1, 2):
            return None
        if node.op_type in _REDUCE and not self._reduces_last(node, attributes):
            return None
        return rows

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


class _Rewriting:
    """One graph, changed in place."""

    def __init__(self, graph: GraphProto) -> None:
        self.graph, self.rows = graph, _Rows(graph)
        self.makers = self.rows.makers
        self.new: list[NodeProto] = []
        self.asked: dict[str, str] = {}  # value [B, T, ...] -> its rows that are asked
        self.whole: set[str] = set()  # values that are needed at all positions

    def apply(self, logits: str) -> bool:
        """Whether there was something to gain; the graph is then rewritten."""
        border: set[str] = set()
        if not self._find_border(logits, border, set()):
            return False
        # What the borders are made of is computed at all positions anyway.
        self.whole = border.union(*(node.output for node in in_order(self.graph.node, border)))
        if logits in self.whole:
            return False
        output = logits + AT_ASKED
        self.new.append(helper.make_node("Identity", [self._gathered(logits)], [output]))
        (whole,) = (own for own in self.graph.output if own.name == logits)
        kind = whole.type.tensor_type.elem_type
        del self.graph.output[:]
        self.graph.output.append(helper.make_tensor_value_info(output, kind, None))
        replace_nodes(self.graph, [*self.graph.node, *self.new])
        asked = helper.make_tensor_value_info(ASKED, TensorProto.INT64, ["asked"])
        self.graph.input.append(asked)
        return True

    def _find_border(self, value: str, border: set[str], seen: set[str]) -> int:
        """Collect where the asked rows must be taken; the number of products passed."""
        if value in seen:
            return 0
        seen.add(value)
        inputs = self.rows.inputs(value)
        if inputs is None:
            border.add(value)
            return 0
        passed = int(self.makers[value].op_type in PRODUCTS)
        return passed + sum(self._find_border(own, border, seen) for own in inputs)

    def _gathered(self, value: str) -> str:
        """The asked rows of a value, [M, ...]."""
        if value in self.asked:
            return self.asked[value]
        inputs = None if value in self.whole else self.rows.inputs(value)
        asked = f"{value}_at_asked_rows"
        self.asked[value] = asked
        if inputs is None:
            flat = f"{value}_by_row"  # of [B, T, ...] or [B * T, ...]
            self.new += [
                helper.make_node("Flatten", [value], [flat], axis=-1),
                helper.make_node("Gather", [flat, ASKED], [asked], axis=0),
            ]
            return asked
        node = self.makers[value]
        names = {name: self._gathered(name) for name in dict.fromkeys(inputs)}
        own = NodeProto()
        own.CopyFrom(node)
        own.name = ""
        own.input[:] = [names.get(name, name) for name in node.input]
        own.output[:] = [name and f"{name}_at_asked_rows" for name in node.output]
        self.asked.update((name, f"{name}_at_asked_rows") for name in node.output if name)
        for attribute in own.attribute:
            if attribute.name == "axis" and node.op_type in _LAST_AXIS:
                attribute.i = -1
        self.new.append(own)
        return asked
