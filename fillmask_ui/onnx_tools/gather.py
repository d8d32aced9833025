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

from onnx import GraphProto, ModelProto, NodeProto, helper

from fillmask_ui.onnx_tools.by_row import ASKED, LAST_AXIS, PRODUCTS, ByRow, end_in, read_by, taken

__all__ = ["ASKED", "AT_ASKED", "gather_asked"]

AT_ASKED = "_at_asked"  # follows the name of the logits in that of the new output


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
    result = ModelProto()
    result.CopyFrom(model)
    rewriting = _Rewriting(result.graph, deep)
    return result if rewriting.apply(logits) else None


class _Rewriting:
    """One graph, changed in place."""

    def __init__(self, graph: GraphProto, deep: bool) -> None:
        self.graph, self.deep = graph, deep
        self.by_row = ByRow(graph)
        self.makers = self.by_row.makers
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
                pending += read_by(maker) if maker is not None else []
        if logits in self.whole:
            return False
        asked = self._gathered(logits)
        self.new.append(helper.make_node("Identity", [asked], [logits + AT_ASKED]))
        kind = next(
            out.type.tensor_type.elem_type for out in self.graph.output if out.name == logits
        )
        end_in(self.graph, self.new, logits + AT_ASKED, kind)
        return True

    def _find_border(self, value: str, border: set[str], seen: set[str]) -> int:
        """Collect where the rows that are asked must be taken; the number of products passed."""
        if value in seen:
            return 0
        seen.add(value)
        rows = self.by_row.rows(value)
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
        rows = None if value in self.whole else self.by_row.rows(value)
        asked = f"{value}_at_asked_rows"
        self.asked[value] = asked
        if rows is None:
            self.new += taken(value, asked)
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
