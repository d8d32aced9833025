"""Logits at the asked positions alone: a Gather in front of the vocabulary projection.

    hidden states [B, T, H] -> MatMul -> logits [B, T, V]

becomes

    hidden states [B, T, H] -> Flatten -> [B * T, H] -> Gather -> [M, H] -> MatMul -> [M, V]

with a new input of M flat positions, b * T + t. The Gather moves further up through all that treats
each position by itself, such as the feed-forward part of the last layer, to where every position
is needed: the keys and values of attention. In a dynamically quantized graph it stays behind
DynamicQuantizeLinear, whose scale is that of all positions.

Exporters write the same model in many ways, so the rewriting reasons about operators, not about
patterns, and whoever uses the result compares it with the whole graph on a probe.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

ASKED = "asked_positions"  # the new input, int64 [M]

# Operators with a constant matrix; they mix what stands in one row, never rows.
_PRODUCTS = {
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
_BY_ROW = _PRODUCTS | {
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
_LAST_AXIS = {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "Split"}
_SEVERAL_OUTPUTS = {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Split"}
_REDUCE = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"}


def gather_asked(model: ModelProto, logits: str, *, deep: bool = True) -> ModelProto | None:
    """A copy of a graph that computes the logits of asked positions only.

    Args:
        model: its weights may lie elsewhere; they are not read.
        logits: name of the output [B, T, V].
        deep: move the Gather up as far as it goes; else just in front of the last product.

    Returns:
        With the input `ASKED` and the one output `logits`, now [M, V] (an axis of 1 may stand in
        front). None if no product with a constant stands between the output and what needs all
        positions, so that nothing would be gained.
    """
    result = ModelProto()
    result.CopyFrom(model)
    rewriting = _Rewriting(result.graph, deep)
    return result if rewriting.apply(logits) else None


class _Rewriting:
    """One graph, changed in place."""

    def __init__(self, graph: GraphProto, deep: bool) -> None:
        self.graph, self.deep = graph, deep
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.constants = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self.fixed = set(self.constants)  # values that are the same for every text
        for node in graph.node:  # each stands behind what it reads
            if all(name in self.fixed for name in _read(node)):
                self.fixed.update(node.output)
        self.new: list[NodeProto] = []
        self.asked: dict[str, str] = {}  # value [B, T, ...] -> its rows that are asked
        self.whole: set[str] = set()  # values that are needed at all positions

    def apply(self, logits: str) -> bool:
        """Whether there was something to gain; the graph is then rewritten."""
        border: set[str] = set()
        products = self._find_border(logits, border, set())
        if not products:
            return False
        # What the borders are made of is there at all positions anyway.
        pending = list(border)
        while pending:
            value = pending.pop()
            if value not in self.whole:
                self.whole.add(value)
                maker = self.makers.get(value)
                pending += _read(maker) if maker is not None else []
        if logits in self.whole:
            return False
        asked = self._gathered(logits)
        self.new.append(helper.make_node("Identity", [asked], [f"{logits}_at_asked"]))
        nodes = [*self.graph.node, *self.new]
        used = _used(nodes, f"{logits}_at_asked")
        kind = next(
            out.type.tensor_type.elem_type for out in self.graph.output if out.name == logits
        )
        del self.graph.node[:], self.graph.output[:]
        self.graph.node.extend(used)
        read = {name for node in used for name in _read(node)}
        constants = [tensor for tensor in self.graph.initializer if tensor.name in read]
        del self.graph.initializer[:]
        self.graph.initializer.extend(constants)
        self.graph.input.append(helper.make_tensor_value_info(ASKED, TensorProto.INT64, ["asked"]))
        output = helper.make_tensor_value_info(f"{logits}_at_asked", kind, None)
        self.graph.output.append(output)
        return True

    def _find_border(self, value: str, border: set[str], seen: set[str]) -> int:
        """Collect where the rows that are asked must be taken; the number of products passed."""
        if value in seen:
            return 0
        seen.add(value)
        rows = self._rows(value)
        if rows is None:
            border.add(value)
            return 0
        maker = self.makers[value]
        passed = int(maker.op_type in _PRODUCTS)
        if maker.op_type == "DynamicQuantizeMatMul" or (passed and not self.deep):
            border.update(rows)
            return passed
        return passed + sum(self._find_border(row, border, seen) for row in rows)

    def _rows(self, value: str) -> list[str] | None:
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
        if node.op_type in _PRODUCTS and rows != [node.input[0]]:
            return None  # the product of two activations is attention
        default = 0 if node.op_type == "Split" else -1
        if node.op_type in _LAST_AXIS and attributes.get("axis", default) not in (-1, 2):
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
        if node.op_type in _PRODUCTS:
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
            if node.op_type in _PRODUCTS and node.input[0] == value:
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

    def _gathered(self, value: str) -> str:
        """The asked rows of a value, [M, ...]."""
        if value in self.asked:
            return self.asked[value]
        rows = None if value in self.whole else self._rows(value)
        asked = f"{value}_at_asked_rows"
        self.asked[value] = asked
        if rows is None:
            flat = f"{value}_by_row"
            self.new.append(helper.make_node("Flatten", [value], [flat], axis=-1))
            self.new.append(helper.make_node("Gather", [flat, ASKED], [asked], axis=0))
            return asked
        node = self.makers[value]
        if node.op_type == "Reshape":  # rows are rows, however they are arranged
            self.asked[value] = self._gathered(node.input[0])
            return self.asked[value]
        if node.op_type == "DynamicQuantizeMatMul":
            return self._quantized_product(node, asked)
        names = {name: self._gathered(name) for name in dict.fromkeys(rows)}
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

    def _quantized_product(self, node: NodeProto, asked: str) -> str:
        """DynamicQuantizeMatMul in its two parts: the scale of all positions, the asked rows."""
        source, weight, scale, zero, bias = [*node.input, "", ""][:5]
        parts = [f"{asked}_{part}" for part in ("quantized", "scale", "zero_point", "flat", "rows")]
        values, own_scale, own_zero, flat, rows = parts
        inputs = [rows, weight, own_scale, scale, own_zero, zero, bias]
        while not inputs[-1]:
            inputs.pop()
        self.new += [
            helper.make_node("DynamicQuantizeLinear", [source], [values, own_scale, own_zero]),
            helper.make_node("Flatten", [values], [flat], axis=-1),
            helper.make_node("Gather", [flat, ASKED], [rows], axis=0),
            helper.make_node("MatMulIntegerToFloat", inputs, [asked], domain="com.microsoft"),
        ]
        return asked


def _read(node: NodeProto) -> Iterator[str]:
    """All values that a node reads, those of its inner graphs too."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _read(inner)
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
            pending += [(makers[name], False) for name in _read(node) if name in makers]
    return ordered
