"""The last hidden state at the asked positions, in place of the logits.

The head of a masked language model is a vocabulary projection, mostly behind a dense layer of its
own:

    last hidden state -> dense -> activation, norm -> projection -> logits

Walking back from the logits, the first product is the projection. From there on, the dense layer of
a head is the one product that all ways lead to. In a model without one the projection reads the
encoder, whose residual connection opens another way, past the last product, to those before.
"""

from onnx import ModelProto, NodeProto, TensorProto, helper

from fillmask_ui.onnx_tools.by_row import PRODUCTS, ByRow, end_in, taken

STATES = "states_at_asked"  # the output, float32 [M, H]

# Operators of quantized graphs whose first output stands for their first input.
_SAME = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Identity"}


def states_at_asked(model: ModelProto, logits: str) -> ModelProto | None:
    """A copy of a graph that ends in the last hidden state, the input of the head.

    Args:
        model: its weights may lie elsewhere; they are not read.
        logits: name of the output [B, T, V].

    Returns:
        With the input `ASKED` of `onnx_tools.by_row` and the one output `STATES`. None if the
        vocabulary projection is not found.
    """
    result = ModelProto()
    result.CopyFrom(model)
    walk = _Walk(ByRow(result.graph))
    projection = walk.only_product(logits)
    if projection is None:
        return None
    dense = walk.only_product(projection.input[0])
    states = walk.unquantized((dense or projection).input[0])
    cast = helper.make_node("Cast", ["states_as_stored"], [STATES], to=TensorProto.FLOAT)
    end_in(result.graph, [*taken(states, "states_as_stored"), cast], STATES, TensorProto.FLOAT)
    return result


class _Walk:
    """From a value back to what it is made of."""

    def __init__(self, by_row: ByRow) -> None:
        self.by_row = by_row

    def only_product(self, value: str) -> NodeProto | None:
        """The product with a constant that all ways back lead to first; None if there is none."""
        found: list[NodeProto] = []
        pending, seen = [value], set[str]()
        while pending:
            value = self.unquantized(pending.pop())
            if value in seen:
                continue
            seen.add(value)
            rows, maker = self.by_row.rows(value), self.by_row.makers.get(value)
            if rows is None or maker is None:
                return None  # positions mix here, or the text itself comes in
            if maker.op_type not in PRODUCTS:
                pending += rows
            elif maker not in found:
                found.append(maker)
        return found[0] if len(found) == 1 else None

    def unquantized(self, value: str) -> str:
        """What a value was quantized from, the value itself where it was not."""
        maker = self.by_row.makers.get(value)
        while maker is not None and maker.op_type in _SAME and maker.output[0] == value:
            value = maker.input[0]
            maker = self.by_row.makers.get(value)
        return value
