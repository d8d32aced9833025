"""Dynamic int8: weights quantized once, activations at run time, products in integers.

A product A W becomes

    DynamicQuantizeLinear(A) -> MatMulInteger with int8 W -> Cast -> Mul by both scales

by onnxruntime.quantization, with symmetric weights, one scale a column ("per channel"), and one
scale a call for activations. That tool leaves a matrix behind a Transpose in full
precision, such as word embeddings W [V, H] that are the vocabulary projection too. Here they become
one int8 matrix for both, with a scale a row, so a lookup becomes

    Gather(int8 W, ids) -> Cast -> Mul by Unsqueeze(Gather(scale, ids))

Source:
    Operators as in https://onnx.ai/onnx/operators/ (DynamicQuantizeLinear, MatMulInteger).
"""

import contextlib
import logging
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from fillmask_ui.onnx_tools.constant_folding import replace_nodes
from fillmask_ui.onnx_tools.float32_graph import split_ties, transposed_constants


def dynamic_int8(model: ModelProto, *, exclude: Collection[str] = ()) -> ModelProto:
    """A copy of a whole graph with its constant products in int8, except the excluded nodes."""
    from onnxruntime.quantization import quantize_dynamic

    with quiet_tools(), TemporaryDirectory(prefix="fillmask-ui-") as scratch:
        path = Path(scratch) / "model.onnx"
        quantize_dynamic(
            split_ties(model, exclude),
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            nodes_to_exclude=sorted(exclude),
        )
        result = onnx.load(path)
    _quantize_ties(result, exclude)
    return result


@contextlib.contextmanager
def quiet_tools() -> Iterator[None]:
    """Without the tools' messages for developers, and without the log handler they install."""
    root, silent = logging.getLogger(), logging.NullHandler()
    before = logging.root.manager.disable
    root.addHandler(silent)  # with any handler, `basicConfig` does nothing
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        root.removeHandler(silent)


def quantize_matrix(matrix: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """A float matrix as int8, -127 to 127, and its float32 scales, one for all along the axis."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest / 127, 1.0).astype(np.float32)
    values = np.clip(np.rint(matrix / scale), -127, 127).astype(np.int8)
    return values, scale.ravel()


def _quantize_ties(model: ModelProto, exclude: Collection[str]) -> None:
    """Store embeddings that are the transposed matrix of a product in int8, in place."""
    graph = model.graph
    tables = {
        value: transpose.input[0]
        for value, transpose in transposed_constants(model).items()
        if any(
            node.op_type == "MatMul" and node.input[1] == value and node.name not in exclude
            for node in graph.node
        )
    }
    stored = {tensor.name: tensor for tensor in graph.initializer if tensor.name in tables.values()}
    added: list[TensorProto] = []
    for name, tensor in stored.items():
        values, scale = quantize_matrix(to_array(tensor), 1)
        added += [
            from_array(values, f"{name}_quantized"),
            from_array(scale, f"{name}_scale"),
            from_array(np.zeros(scale.shape, np.int8), f"{name}_zero_point"),
        ]
    nodes: list[NodeProto] = []
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] in stored:
            nodes += _lookup(node)
        elif node.op_type == "MatMul" and node.input[1] in tables:
            nodes += _product(node, tables[node.input[1]])
        else:
            nodes.append(node)
    for value, name in tables.items():  # ONNX Runtime transposes it when it opens the graph
        transpose = helper.make_node(
            "Transpose", [f"{name}_quantized"], [f"{value}_quantized"], perm=[1, 0]
        )
        nodes.append(transpose)
    replace_nodes(graph, nodes, added)


def _lookup(gather: NodeProto) -> list[NodeProto]:
    """The lookup of rows [..., H] in int8 embeddings."""
    (name, ids), rows = gather.input, gather.output[0]
    return [
        helper.make_node("Gather", [f"{name}_quantized", ids], [f"{rows}.integer"]),
        helper.make_node("Cast", [f"{rows}.integer"], [f"{rows}.float"], to=TensorProto.FLOAT),
        helper.make_node("Constant", [], [f"{rows}.last_axis"], value_ints=[-1]),
        helper.make_node("Gather", [f"{name}_scale", ids], [f"{rows}.scales"]),
        helper.make_node("Unsqueeze", [f"{rows}.scales", f"{rows}.last_axis"], [f"{rows}.scale"]),
        helper.make_node("Mul", [f"{rows}.float", f"{rows}.scale"], [rows]),
    ]


def _product(matmul: NodeProto, table: str) -> list[NodeProto]:
    (source, matrix), output = matmul.input, matmul.output[0]
    quantized, scale = f"{output}.source", f"{output}.source_scale"
    zero_point = f"{output}.source_zero_point"
    factors = [quantized, f"{matrix}_quantized", zero_point, f"{table}_zero_point"]
    return [
        helper.make_node("DynamicQuantizeLinear", [source], [quantized, scale, zero_point]),
        helper.make_node("MatMulInteger", factors, [f"{output}.integer"]),
        helper.make_node("Cast", [f"{output}.integer"], [f"{output}.float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [scale, f"{table}_scale"], [f"{output}.scales"]),
        helper.make_node("Mul", [f"{output}.float", f"{output}.scales"], [output]),
    ]
