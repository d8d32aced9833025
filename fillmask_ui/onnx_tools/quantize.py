"""Dynamic int8: weights quantized once, activations at run time, products in integers.

A product A W becomes

    DynamicQuantizeLinear(A) -> MatMulInteger with int8 W -> Cast -> Mul by both scales

the pattern that ONNX Runtime fuses into one kernel. The weights are symmetric, scale by output
column ("per channel") or one scale a matrix; activations get one scale a call.

Source:
    Operators as in https://onnx.ai/onnx/operators/ (DynamicQuantizeLinear, MatMulInteger).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fillmask_ui.errors import ModelError


@dataclass(frozen=True)
class QuantizedWeight:
    """A weight matrix in int8: `values * scale` is about the original.

    Attributes:
        values: int8 [K, N].
        scale: float32 [N] per channel, else [].
    """

    values: np.ndarray
    scale: np.ndarray


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
    """A MatMul with a constant right side.

    Attributes:
        node: name of the output of the MatMul, unique in the graph.
        weight: name of the constant.
        bias: name of the constant that is added to the product, "" if none; exporters keep the
            model's own name here, so it says which layer this is. Runs of one layer share it, and
            so do layers with equal biases, which exporters merge.
        shape: [K, N].
    """

    node: str
    weight: str
    bias: str
    shape: tuple[int, int]

    @property
    def layer(self) -> str:
        """The layer's name in the model, as far as the graph tells it."""
        return self.bias.removesuffix(".bias") or self.weight


def _constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """Matrices of a graph by the name under which a MatMul sees them."""
    plain = {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2
    }
    found = {name: numpy_helper.to_array(tensor) for name, tensor in plain.items()}
    for node in graph.node:
        if node.op_type == "Transpose" and node.input[0] in plain:
            found[node.output[0]] = numpy_helper.to_array(plain[node.input[0]]).T
    return found


def find_products(model: onnx.ModelProto) -> list[Product]:
    """All products that could be quantized, in the graph's order."""
    graph = model.graph
    constants = _constants(graph)
    names = {tensor.name for tensor in graph.initializer}
    added = {
        product: bias
        for node in graph.node
        if node.op_type == "Add"
        for product, bias in (list(node.input), list(node.input)[::-1])
        if bias in names
    }
    return [
        Product(
            node.output[0],
            node.input[1],
            added.get(node.output[0], ""),
            constants[node.input[1]].shape,
        )
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in constants
    ]


def quantize_dynamic(
    model: onnx.ModelProto, *, per_channel: bool = True, keep: Collection[str] = ()
) -> onnx.ModelProto:
    """A copy of the graph with its constant products in int8.

    Args:
        model: float32 graph with its weights inside.
        per_channel: one scale an output column, or one a matrix.
        keep: `Product.layer` names that stay in full precision.

    Raises:
        ModelError: if nothing is left to quantize, or a name in `keep` does not exist.
    """
    products = find_products(model)
    layers = {product.layer for product in products}
    missing = sorted(set(keep) - layers)
    if missing:
        raise ModelError(f"no layer {missing[0]!r} to keep; layers: {', '.join(sorted(layers))}")
    chosen = {p.node: p for p in products if p.layer not in keep}
    if not chosen:
        raise ModelError("the graph has no product with a constant matrix left to quantize")
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    constants = _constants(graph)
    nodes: list[onnx.NodeProto] = []
    added: list[TensorProto] = []
    quantized_inputs: set[str] = set()
    taken: set[str] = set()
    homes: dict[object, str] = {}  # weight -> stem of its constants, written once
    for node in graph.node:
        if node.op_type != "MatMul" or node.output[0] not in chosen:
            nodes.append(node)
            continue
        source, weight = node.input
        if source not in quantized_inputs:
            quantized_inputs.add(source)
            nodes.append(
                helper.make_node(
                    "DynamicQuantizeLinear",
                    [source],
                    [f"{source}_quantized", f"{source}_scale", f"{source}_zero_point"],
                )
            )
        layer = chosen[node.output[0]].layer
        stem = layer if layer not in taken else f"{layer}.{len(taken)}"
        taken.add(stem)
        # By content: exporters write the weight of a layer that runs again under other names.
        key = _fingerprint(constants[weight])
        if key not in homes:
            homes[key] = stem
            added += _stored(stem, quantize_weight(constants[weight], per_channel))
        nodes += _integer_product(source, node.output[0], stem, homes[key])
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(added)
    _drop_unused(graph)
    return result


def _fingerprint(weight: np.ndarray) -> object:
    return weight.shape, hashlib.sha256(np.ascontiguousarray(weight)).digest()


def _stored(stem: str, weight: QuantizedWeight) -> list[TensorProto]:
    return [
        numpy_helper.from_array(values, f"{stem}.{suffix}")
        for suffix, values in (
            ("weight_quantized", weight.values),
            ("weight_scale", weight.scale),
            ("weight_zero_point", np.zeros(weight.scale.shape, np.int8)),
        )
    ]


def _integer_product(source: str, output: str, stem: str, home: str) -> list[onnx.NodeProto]:
    """The nodes that stand in for a MatMul.

    Args:
        source: name of its left side, which is quantized by now.
        output: name of its output.
        stem: what the names in between begin with, unique in the graph.
        home: what the names of the weight's constants begin with.
    """
    product = f"{stem}.integer"
    return [
        helper.make_node(
            "MatMulInteger",
            [
                f"{source}_quantized",
                f"{home}.weight_quantized",
                f"{source}_zero_point",
                f"{home}.weight_zero_point",
            ],
            [product],
        ),
        helper.make_node("Cast", [product], [f"{product}_float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{source}_scale", f"{home}.weight_scale"], [f"{stem}.scales"]),
        helper.make_node("Mul", [f"{product}_float", f"{stem}.scales"], [output]),
    ]


def _drop_unused(graph: onnx.GraphProto) -> None:
    """Remove nodes and constants that nothing reads any more."""
    while True:
        read = {name for node in graph.node for name in node.input}
        read |= {value.name for value in graph.output}
        nodes = [node for node in graph.node if any(name in read for name in node.output)]
        if len(nodes) == len(graph.node):
            break
        del graph.node[:]
        graph.node.extend(nodes)
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
