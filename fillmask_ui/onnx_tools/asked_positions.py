"""Graphs that end at asked positions: in the logits, or in the last hidden state.

    hidden states [B, T, H] -> MatMul -> logits [B, T, V]

becomes

    hidden states [B, T, H] -> Flatten -> [B * T, H] -> Gather -> [M, H] -> MatMul -> [M, V]

with a new input of M flat positions, b * T + t. The Gather moves further up through all that treats
each position by itself, such as the feed-forward part of the last layer, to where every position
is needed: the keys and values of attention. In a dynamically quantized graph it stays behind
DynamicQuantizeLinear, whose scale is that of all positions.

Exporters write the same model in many ways, so the rewriting reasons about operators, not about
patterns, and the result must be compared with the whole graph on a probe.

Source:
    Operators as in https://onnx.ai/onnx/operators/ and, for the domain com.microsoft, in
    docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from fillmask_ui.onnx_tools.constant_folding import copied, read_by
from fillmask_ui.onnx_tools.row_wise import (
    ASKED,
    LAST_AXIS,
    PRODUCTS,
    RowWise,
    asked_rows,
    end_in,
)

__all__ = ["ASKED", "AT_ASKED", "STATES", "gather_asked", "states_at_asked"]

AT_ASKED = "_at_asked"  # follows the name of the logits in that of the new output
STATES = "states_at_asked"  # the output of `states_at_asked`, float32 [M, H]


def gather_asked(model: ModelProto, logits: str, *, deep: bool = True) -> ModelProto | None:
    """A copy of a graph that computes the logits of asked positions only.

    Args:
        model: its weights may lie elsewhere; they are not read.
        logits: name of the output [B, T, V].
        deep: move the Gather up as far as it goes; else just in front of the last product.

    Returns:
        With the input `ASKED` and the one output `logits` + `AT_ASKED`, [M, V] (an axis of 1 may
        stand in front). None if no product with a constant stands between the output and what
        needs all positions, so that nothing would be gained.
    """
    result = copied(model)
    return result if _Rewriting(result.graph, deep).apply(logits) else None


def states_at_asked(model: ModelProto, logits: str) -> ModelProto | None:
    """A copy of a graph that ends in the last hidden state, the input of the head.

    The head is a vocabulary projection, mostly behind a dense layer of its own:

        last hidden state -> dense -> activation, norm -> projection -> logits

    Walking back from the logits, the first product is the projection, and from there the dense
    layer is the one product that all ways lead to. In a model without one the projection reads the
    encoder, whose residual connection opens another way to earlier products.

    Args:
        model: its weights may lie elsewhere; they are not read.
        logits: name of the output [B, T, V].

    Returns:
        With the input `ASKED` and the one output `STATES`. None if the vocabulary projection is
        not found.
    """
    result = copied(model)
    row_wise = RowWise(result.graph)
    projection = _only_product(row_wise, logits)
    if projection is None:
        return None
    dense = _only_product(row_wise, projection.input[0])
    states = row_wise.unquantized((dense or projection).input[0])
    cast = helper.make_node("Cast", ["states_as_stored"], [STATES], to=TensorProto.FLOAT)
    new = [*asked_rows(states, "states_as_stored"), cast]
    end_in(result.graph, new, STATES, TensorProto.FLOAT)
    return result


def _only_product(row_wise: RowWise, value: str) -> NodeProto | None:
    """The product with a constant that all ways back lead to first; None if there is none."""
    found: list[NodeProto] = []
    pending, seen = [value], set[str]()
    while pending:
        value = row_wise.unquantized(pending.pop())
        if value in seen:
            continue
        seen.add(value)
        rows, maker = row_wise.rows(value), row_wise.makers.get(value)
        if rows is None or maker is None:
            return None  # positions mix here, or the text itself comes in
        if maker.op_type not in PRODUCTS:
            pending += rows
        elif maker not in found:
            found.append(maker)
    return found[0] if len(found) == 1 else None


class _Rewriting:
    """One graph, changed in place."""

    def __init__(self, graph: GraphProto, deep: bool) -> None:
        self.graph, self.deep = graph, deep
        self.row_wise = RowWise(graph)
        self.makers = self.row_wise.makers
        self.new: list[NodeProto] = []
        self.asked: dict[str, str] = {}  # value [B, T, ...] -> its rows that are asked
        self.whole: set[str] = set()  # values that are needed at all positions

    def apply(self, logits: str) -> bool:
        """Whether there was something to gain; the graph is then rewritten."""
        border: set[str] = set()
        if not self._find_border(logits, border, set()):
            return False
        # What the borders are made of is computed at all positions anyway.
        pending = list(border)
        while pending:
            value = pending.pop()
            if value not in self.whole:
                self.whole.add(value)
                maker = self.makers.get(value)
                pending += read_by(maker) if maker is not None else []
        if logits in self.whole:
            return False
        output = logits + AT_ASKED
        self.new.append(helper.make_node("Identity", [self._gathered(logits)], [output]))
        (kind,) = (
            out.type.tensor_type.elem_type for out in self.graph.output if out.name == logits
        )
        end_in(self.graph, self.new, output, kind)
        return True

    def _find_border(self, value: str, border: set[str], seen: set[str]) -> int:
        """Collect where the rows that are asked must be taken; the number of products passed."""
        if value in seen:
            return 0
        seen.add(value)
        rows = self.row_wise.rows(value)
        if rows is None:
            border.add(value)
            return 0
        maker = self.makers[value]
        passed = int(maker.op_type in PRODUCTS)
        if maker.op_type == "DynamicQuantizeMatMul" or (passed and not self.deep):
            border.update(rows)
            return passed
        return passed + sum(self._find_border(row, border, seen) for row in rows)

    def _gathered(self, value: str) -> str:
        """The asked rows of a value, [M, ...]."""
        if value in self.asked:
            return self.asked[value]
        rows = None if value in self.whole else self.row_wise.rows(value)
        asked = f"{value}_at_asked_rows"
        self.asked[value] = asked
        if rows is None:
            self.new += asked_rows(value, asked)
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
            if attribute.name == "axis" and node.op_type in LAST_AXIS:
                attribute.i = -1
        self.new.append(own)
        return asked

    def _quantized_product(self, node: NodeProto, asked: str) -> str:
        """DynamicQuantizeMatMul in its two parts: the scale of all positions, the asked rows."""
        source, weight, scale, zero, bias = [*node.input, "", ""][:5]
        parts = [f"{asked}_{part}" for part in ("quantized", "scale", "zero_point", "rows")]
        values, own_scale, own_zero, rows = parts
        inputs = [rows, weight, own_scale, scale, own_zero, zero, bias]
        while not inputs[-1]:
            inputs.pop()
        self.new += [
            helper.make_node("DynamicQuantizeLinear", [source], [values, own_scale, own_zero]),
            *asked_rows(values, rows),
            helper.make_node("MatMulIntegerToFloat", inputs, [asked], domain="com.microsoft"),
        ]
        return asked
