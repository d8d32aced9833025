"""Dynamic int8: weights quantized once, activations at run time, products in integers.

A product A W becomes

    DynamicQuantizeLinear(A) -> MatMulInteger with int8 W -> Cast -> Mul by both scales

the pattern that ONNX Runtime fuses into one kernel. The weights are symmetric, with one scale per
output column ("per channel") or one per matrix; activations get one scale per call.

Word embeddings W [V, H] that the vocabulary projection reads too, turned, are stored once. The
scales of its columns are those of their rows, so a lookup becomes

    Gather(int8 W, ids) -> Cast -> Mul by Unsqueeze(Gather(scale, ids))

Rivals: onnxruntime.quantization writes the same nodes, but leaves a matrix behind a Transpose, such
as word embeddings that are the decoder too, in full precision.

Source:
    Operators as in https://onnx.ai/onnx/operators/ (DynamicQuantizeLinear, MatMulInteger).
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from fillmask_ui.errors import ModelError


@dataclass(frozen=True)
class QuantizedWeight:
    """A weight matrix in int8: `values * scale` is about the original."""

    values: np.ndarray  # int8 [K, N]
    scale: np.ndarray  # float32 [N] per channel, else []


def quantize_weight(weight: np.ndarray, per_channel: bool) -> QuantizedWeight:
    """Symmetric int8, rounded to nearest.

    >>> q = quantize_weight(np.array([[1.0, -8.0], [0.5, 4.0]], np.float32), per_channel=True)
    >>> q.values.tolist()
    [[127, -127], [64, 64]]
    """
    largest = np.abs(weight).max(axis=0 if per_channel else None)
    scale = np.where(largest > 0, largest / 127, 1.0).astype(np.float32)
    values = np.clip(np.rint(weight / scale), -127, 127).astype(np.int8)
    return QuantizedWeight(values, scale)


@dataclass(frozen=True)
class Product:
    """A MatMul with a constant right side."""

    node: str  # name of the output of the MatMul, unique in the graph
    # Name in the model, as far as the graph tells it: exporters keep it in that of the bias that is
    # added. Runs of one layer share it, and so do layers with equal biases, which exporters merge.
    layer: str
    weight: np.ndarray  # float32 [K, N], the constant


def find_products(model: onnx.ModelProto) -> list[Product]:
    """All products that could be quantized, in the graph's order."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    matrices = {
        name: to_array(tensor)
        for name, tensor in constants.items()
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2
    }
    biases: dict[str, str] = {}  # name of a product -> name of the constant that is added to it
    for node in graph.node:
        if node.op_type == "Transpose" and node.input[0] in matrices:
            matrices[node.output[0]] = matrices[node.input[0]].T
        elif node.op_type == "Add":
            left, right = node.input
            biases |= {a: b for a, b in ((left, right), (right, left)) if b in constants}
    edges = [(node.output[0], node.input[1]) for node in graph.node if node.op_type == "MatMul"]
    return [
        Product(name, biases.get(name, "").removesuffix(".bias") or weight, matrices[weight])
        for name, weight in edges
        if weight in matrices
    ]


def quantize_dynamic(
    model: onnx.ModelProto,  # in float32 with its weights inside
    *,
    per_channel: bool = True,
    keep: Collection[str] = (),  # names of layers that stay in full precision
) -> onnx.ModelProto:
    """A copy of the graph with its constant products in int8.

    Raises:
        ModelError: if nothing is left to quantize, or a name in `keep` does not exist.
    """
    products = find_products(model)
    layers = {product.layer for product in products}
    missing = sorted(set(keep) - layers)
    if missing:
        raise ModelError(f"no layer {missing[0]!r} to keep; layers: {', '.join(sorted(layers))}")
    chosen = {product.node: product for product in products if product.layer not in keep}
    if not chosen:
        raise ModelError("the graph has no product with a constant matrix left to quantize")
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    tied = _looked_up(graph, {_content(product.weight) for product in chosen.values()})
    nodes: list[onnx.NodeProto] = []
    quantized_inputs: set[str] = set()
    stems: set[str] = set()  # what the names in place of one product begin with
    homes: dict[object, str] = {}  # content of a weight -> stem of its constants, written once
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] in tied.values():
            nodes += _lookup(node, per_channel)
            continue
        product = chosen.get(node.output[0])
        if product is None:
            nodes.append(node)
            continue
        source = node.input[0]
        if source not in quantized_inputs:
            quantized_inputs.add(source)
            outputs = [f"{source}_quantized", f"{source}_scale", f"{source}_zero_point"]
            nodes.append(helper.make_node("DynamicQuantizeLinear", [source], outputs))
        stem = product.layer if product.layer not in stems else f"{product.layer}.{len(stems)}"
        stems.add(stem)
        content = _content(product.weight)
        home = homes.setdefault(content, stem)
        matrix, name = f"{home}.weight_quantized", tied.get(content, f"{home}.weight")
        if home == stem:
            weight = quantize_weight(product.weight, per_channel)
            values = weight.values.T if content in tied else weight.values
            zero_point = np.zeros(weight.scale.shape, np.int8)
            graph.initializer.append(from_array(values, f"{name}_quantized"))
            graph.initializer.append(from_array(weight.scale, f"{name}_scale"))
            graph.initializer.append(from_array(zero_point, f"{name}_zero_point"))
            if content in tied:  # ONNX Runtime turns it when it opens the graph
                rows = [f"{name}_quantized"]
                nodes.append(helper.make_node("Transpose", rows, [matrix], perm=[1, 0]))
        nodes += _integer_product(source, product.node, stem, matrix, name)
    _keep_used(graph, nodes)
    return result


def _content(weight: np.ndarray) -> object:
    """Equal for equal matrices, which exporters write under other names for each that reads one."""
    return weight.shape, hashlib.sha256(weight.tobytes()).digest()


def _looked_up(graph: onnx.GraphProto, products: Collection[object]) -> dict[object, str]:
    """Constants of products, by content, that are embeddings turned -> names of the embeddings."""
    names = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    tables = [own for own in graph.initializer if own.name in names and len(own.dims) == 2]
    turned = {_content(to_array(own).T): own.name for own in tables}
    return {content: name for content, name in turned.items() if content in products}


def _lookup(gather: onnx.NodeProto, per_channel: bool) -> list[onnx.NodeProto]:
    """What stands in for the lookup of rows [..., H] of embeddings that are in int8."""
    (name, ids), rows = gather.input, gather.output[0]
    scale = f"{name}_scale"
    nodes = [
        helper.make_node("Gather", [f"{name}_quantized", ids], [f"{rows}.integer"]),
        helper.make_node("Cast", [f"{rows}.integer"], [f"{rows}.float"], to=TensorProto.FLOAT),
    ]
    if per_channel:
        scale, axis = f"{rows}.scale", f"{rows}.last_axis"
        nodes += [
            helper.make_node("Constant", [], [axis], value_ints=[-1]),
            helper.make_node("Gather", [f"{name}_scale", ids], [f"{rows}.scales"]),
            helper.make_node("Unsqueeze", [f"{rows}.scales", axis], [scale]),
        ]
    return [*nodes, helper.make_node("Mul", [f"{rows}.float", scale], [rows])]


def _integer_product(
    source: str, output: str, stem: str, matrix: str, weight: str
) -> list[onnx.NodeProto]:
    """What stands in for a MatMul; `stem` and `weight` begin the names of steps and scales."""
    values = [f"{source}_quantized", matrix]
    zero_points = [f"{source}_zero_point", f"{weight}_zero_point"]
    product, scales = f"{stem}.integer", f"{stem}.scales"
    return [
        helper.make_node("MatMulInteger", [*values, *zero_points], [product]),
        helper.make_node("Cast", [product], [f"{product}_float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{source}_scale", f"{weight}_scale"], [scales]),
        helper.make_node("Mul", [f"{product}_float", scales], [output]),
    ]


def _keep_used(graph: onnx.GraphProto, nodes: list[onnx.NodeProto]) -> None:
    """Make a graph of those nodes and of its constants that something reads."""
    read = {value.name for value in graph.output}
    used = []
    for node in reversed(nodes):  # readers come behind what they read
        if read.intersection(node.output):
            used.append(node)
            read.update(node.input)
    constants = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(used))
    graph.initializer.extend(constants)
