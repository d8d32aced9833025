"""The attention weights inside an ONNX graph.

    scores [B, A, T, T] -> Softmax -> weights [B, A, T, T] -> MatMul with values [B, A, T, H / A]

The weights are the output of a Softmax that is multiplied by a value that depends on the text.
Operators that quantize, reshape, or replace NaN in rows without any token may lie between the two.
"""

from onnx import ModelProto

from fillmask_ui.errors import ModelError
from fillmask_ui.onnx_tools.constant_folding import Constants, nodes_for

# Operators through which weights reach the product with the values.
_PASS_ON = {
    *("Cast", "Identity", "Dropout", "Mul", "Reshape", "Transpose", "Where", "IsNaN"),
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
}
_PRODUCTS = ("MatMul", "MatMulInteger", "MatMulIntegerToFloat", "Einsum")  # ends of the names


def attention_values(model: ModelProto, logits: str) -> tuple[str, ...]:
    """Names of the attention weights in the order of the layers; `logits` is an output.

    Raises:
        ModelError: if the graph computes attention in one step, or has none.
    """
    constants, nodes = Constants(model.graph), list(nodes_for(model.graph.node, [logits]))
    fused = [node.op_type for node in nodes if node.op_type.endswith("Attention")]
    values = tuple(
        node.output[0]
        for node in nodes
        if node.op_type == "Softmax" and _weighs_values(constants, node.output[0])
    )
    if fused or not values:
        reason = f"it is fused ({fused[0]})" if fused else "it has no softmax over tokens"
        raise ModelError(
            f"this ONNX graph does not show its attention: {reason}; choose the embedded model, "
            "or one that runs on PyTorch"
        )
    return values


def _weighs_values(constants: Constants, weights: str) -> bool:
    """Whether a value is multiplied by one that is not the same for every text."""
    pending, seen = [weights], set[str]()
    while pending:
        name = pending.pop()
        seen.add(name)
        for node in constants.readers.get(name, []):
            if node.op_type.endswith(_PRODUCTS):
                if len(set(node.input) - constants.fixed) > 1:
                    return True
            elif node.op_type in _PASS_ON:
                pending += {*node.output} - seen
    return False
