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

from onnx import ModelProto, NodeProto, TensorProto, helper

from fillmask_ui.onnx_tools.constant_folding import (
    Constants,
    attributes_of,
    copy_model,
    nodes_for,
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
    result = copy_model(model)
    graph, constants = result.graph, Constants(result.graph)
    inputs: dict[str, list[str] | None] = {}  # value -> what its rows are made of
    pending = [logits]
    while pending:
        if (value := pending.pop()) not in inputs:
            inputs[value] = _row_inputs(constants, value)
            pending += inputs[value] or ()
    # Where asked rows must be taken; what these values are made of has all positions anyway.
    border = [value for value, row_inputs in inputs.items() if row_inputs is None]
    whole = {*border}.union(*(node.output for node in nodes_for(graph.node, border)))
    by_row = {
        id(node): node for value, node in constants.makers.items() if inputs.get(value) is not None
    }
    gains = any(node.op_type in PRODUCTS for node in by_row.values())
    if not gains or logits in whole:
        return None

    output = logits + AT_ASKED
    nodes = [*graph.node, helper.make_node("Identity", [_asked_rows(logits)], [output])]
    for value in whole.intersection(inputs):  # of [B, T, ...] or [B * T, ...]
        flat = f"{value}_by_row"
        nodes.append(helper.make_node("Flatten", [value], [flat], axis=-1))
        nodes.append(helper.make_node("Gather", [flat, ASKED], [_asked_rows(value)], axis=0))
    for node in by_row.values():
        if whole.isdisjoint(node.output):
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.name = ""
            copy.input[:] = [_asked_rows(name) if name in inputs else name for name in node.input]
            copy.output[:] = [name and _asked_rows(name) for name in node.output]
            for attribute in copy.attribute:
                if attribute.name == "axis" and node.op_type in _LAST_AXIS:
                    attribute.i = -1
            nodes.append(copy)
    kinds = {value.name: value.type.tensor_type.elem_type for value in graph.output}
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(output, kinds[logits], None))
    replace_nodes(graph, nodes)
    graph.input.append(helper.make_tensor_value_info(ASKED, TensorProto.INT64, ["asked"]))
    return result


def _asked_rows(value: str) -> str:
    """The name of a value's rows at the asked positions, [M, ...]."""
    return f"{value}_at_asked_rows"


def last_state(model: ModelProto, logits: str) -> str | None:
    """The last hidden state, which the head reads; None if the projection is not found.

    The head is a vocabulary projection, mostly behind a dense layer of its own:

        last hidden state -> dense -> activation, norm -> projection -> logits

    Walking back from the logits, the first product is the projection, and from there the dense
    layer is the one product that all ways lead to. In a model without one the projection reads the
    encoder, whose residual connection opens another way to earlier products.
    """
    constants = Constants(model.graph)
    projection = _only_product(constants, logits)
    if projection is None:
        return None
    dense = _only_product(constants, projection.input[0])
    return constants.unsmoothed(constants.unquantized((dense or projection).input[0]))


def _only_product(constants: Constants, value: str) -> NodeProto | None:
    """The product with a constant that all ways back lead to first; None if there is none."""
    products: list[NodeProto] = []
    pending, seen = [value], set[str]()
    while pending:
        value = constants.unquantized(pending.pop())
        if value in seen:
            continue
        seen.add(value)
        inputs, maker = _row_inputs(constants, value), constants.makers.get(value)
        if inputs is None or maker is None:
            return None  # positions mix here, or the text itself comes in
        if maker.op_type not in PRODUCTS:
            pending += inputs
        elif maker not in products:
            products.append(maker)
    return products[0] if len(products) == 1 else None


def _row_inputs(constants: Constants, value: str) -> list[str] | None:
    """The inputs of a value that have a row per position; None if it mixes positions."""
    node = constants.makers.get(value)
    if node is None or node.op_type not in _ROW_WISE or value in constants.fixed:
        return None
    rows = [name for name in node.input if name and not _is_small(constants, name)]
    attributes = attributes_of(node)
    axes, default = attributes.get("axes"), 0 if node.op_type == "Split" else -1
    if axes is None and node.op_type in _REDUCE and len(node.input) > 1:
        axes = constants.kind(node.input[1]) and constants.value(node.input[1]).tolist()
    mixes = (
        not rows
        or attributes.get("transA")
        or (value != node.output[0] and node.op_type not in _SEVERAL_OUTPUTS)
        # The product of two activations is attention.
        or (node.op_type in PRODUCTS and rows != [node.input[0]])
        or (node.op_type in _LAST_AXIS and attributes.get("axis", default) not in (-1, 2))
        or (node.op_type in _REDUCE and (axes != [-1] or attributes.get("keepdims", 1) != 1))
    )
    return None if mixes else rows


def _is_small(constants: Constants, value: str) -> bool:
    """Whether it is constant, or one scale for all positions."""
    node = constants.makers.get(value)
    if node is None or value in constants.fixed:
        return value in constants.fixed
    if node.op_type == "DynamicQuantizeLinear":
        return value != node.output[0]
    return node.op_type in ("Mul", "Cast") and all(
        _is_small(constants, name) for name in node.input
    )
