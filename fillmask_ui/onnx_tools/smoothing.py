"""SmoothQuant: outliers of activations move into weights before both are rounded to 8 bits.

A product A W of activations [T, K] and a matrix [K, N] equals (A / s) (s W) for any s [K]. A few
channels of A are far larger than the others, and one scale for all then leaves these few steps;
each column of W has a scale of its own anyway. With the largest values on calibration texts,

    s = max |A|^alpha / max |W|^(1 - alpha)

Products that read the same activations or the same matrix share s. Their alpha is the one, of a
few, whose rounding changes their outputs on these texts least; if none helps they stay as they are.

The graph stores 1 / s. It multiplies the scale and the bias of the norm in front, where these
products alone read it, which ONNX Runtime computes when it opens the graph:

    LayerNormalization(X, Mul(scale, 1 / s), Mul(bias, 1 / s)) -> MatMul with s W

and the activations themselves elsewhere. What the head reads, the last hidden state, stays. Where
the matrix is that of the word embeddings too, looked-up rows are multiplied back.

Source:
    Xiao et al. 2022, "SmoothQuant", arXiv:2211.10438, section 4, where one alpha is for all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from fillmask_ui.errors import DataError
from fillmask_ui.onnx_tools.constant_folding import (
    SMOOTHING,
    UNSMOOTHING,
    Constants,
    copy_model,
    replace_nodes,
)
from fillmask_ui.onnx_tools.dynamic_int8 import quantize_matrix
from fillmask_ui.onnx_tools.float32_graph import transposed_constants
from fillmask_ui.onnx_tools.graph_edits import with_outputs
from fillmask_ui.onnx_tools.graph_parts import Part, find_parts

_ALPHAS = (0.5, 0.6, 0.7)
_MOST_TEXTS = 128
_ROWS = 8  # of each text, whose outputs are compared
_COLUMNS = 1024  # of each matrix, about so many
_WORTH = 0.95  # of the error without smoothing, at most, for a Mul to be worth its time
_LEAST = 1e-3  # of the largest channel: a channel that is silent on the texts may speak later


def smoothed(
    model: ModelProto, feeds: Sequence[Mapping[str, np.ndarray]], *, exclude: Collection[str] = ()
) -> ModelProto:
    """A copy of a whole float32 graph that computes the same, ready for `dynamic_int8`.

    Args:
        model: the graph, see `float32_graph`.
        feeds: its inputs by name, a text each.
        exclude: names of nodes that stay in full precision.

    Raises:
        DataError: if there is no text.
    """
    result = copy_model(model)
    graph, constants = result.graph, Constants(model.graph)
    groups = _groups(model, constants, exclude)
    if not groups:
        return result
    if not feeds:
        raise DataError(
            "int8 measures activations on texts, and there are none: give some sentences, one a "
            "line, with --calibration FILE; int8-channel needs none"
        )
    activations = _measure(
        model, {product.part.source for group in groups for product in group}, feeds
    )
    stored = {tensor.name: tensor for tensor in graph.initializer}
    nodes = {node.output[0]: node for node in graph.node}
    outputs = {output.name for output in graph.output}
    added_nodes: list[NodeProto] = []
    added: list[TensorProto] = []
    for group in groups:
        sources = list(dict.fromkeys(product.part.source for product in group))
        texts = [text for source in sources for text in activations[source]]
        tensors = {product.part.constant: stored[product.part.constant] for product in group}
        tables = {product.part.constant for product in group if product.is_table}
        matrices = {
            name: to_array(tensor).T if name in tables else to_array(tensor)
            for name, tensor in tensors.items()
        }
        factors = _choose_factors(texts, list(matrices.values()))
        if factors is None:
            continue
        inverse = sources[0] + SMOOTHING
        added.append(from_array(1 / factors, inverse))
        for name, matrix in matrices.items():
            larger = matrix * factors[:, None]
            tensors[name].CopyFrom(from_array(larger.T if name in tables else larger, name))
        for node in graph.node:
            if node.op_type == "Gather" and node.input[0] in tables:
                rows = node.output[0]
                node.output[0] = f"{rows}_scaled"
                added_nodes.append(_multiply(f"{rows}_scaled", rows + UNSMOOTHING, rows))
                added.append(from_array(1 / factors, rows + UNSMOOTHING))
        products = {product.part.node: nodes[product.part.node] for product in group}
        in_layers = all(product.part.layer is not None for product in group)
        for source in sources:
            readers = {node.output[0] for node in constants.readers[source]}
            feeds_others = source in outputs or not readers.issubset(products)
            norm = nodes.get(source)
            if norm and norm.op_type == "LayerNormalization" and in_layers and not feeds_others:
                for index in range(1, len(norm.input)):
                    number = _multiply(norm.input[index], inverse, f"{source}_{index}_smoothed")
                    norm.input[index] = number.output[0]
                    added_nodes.append(number)
                continue
            added_nodes.append(_multiply(source, inverse, f"{source}_smoothed"))
            for node in products.values():
                if node.input[0] == source:
                    node.input[0] = f"{source}_smoothed"
    replace_nodes(graph, [*graph.node, *added_nodes], added)
    return result


def _multiply(value: str, inverse: str, output: str) -> NodeProto:
    return helper.make_node("Mul", [value, inverse], [output], name=f"Mul:{output}")


@dataclass(frozen=True)
class _Product:
    part: Part
    is_table: bool  # whether the matrix is stored transposed, [N, K], for lookups


def _groups(
    model: ModelProto, constants: Constants, exclude: Collection[str]
) -> list[list[_Product]]:
    """The products in 8 bits; those that share a source or a matrix are together."""
    transposed = transposed_constants(model)
    products = [
        _Product(part, is_table=constants.makers[part.node].input[1] in transposed)
        for part in find_parts(model)
        if part.kind in ("product", "projection")
        and constants.makers[part.node].op_type == "MatMul"
        and constants.makers[part.node].name not in exclude
    ]
    names = {product.part.node for product in products}
    lookups = {node.output[0] for node in model.graph.node if node.op_type == "Gather"}
    groups: list[list[_Product]] = []
    for product in products:
        part, matrix = product.part, constants.makers[product.part.node].input[1]
        readers = {node.output[0] for node in constants.readers[part.constant]}
        if product.is_table:
            readers |= {node.output[0] for node in constants.readers[matrix]}
            readers -= {matrix, *lookups}
        if not readers.issubset(names):
            continue
        joined = [product]
        for group in groups:
            if any(
                part.source == other.part.source or part.constant == other.part.constant
                for other in group
            ):
                joined += group
        groups = [group for group in groups if group[0] not in joined] + [joined]
    return groups


@dataclass(frozen=True)
class _Seen:
    """What stands before a product in one text, [T, K]."""

    low: np.ndarray  # float32 [K], the smallest of each channel
    high: np.ndarray  # float32 [K]
    rows: np.ndarray  # float32 [R, K], some of the rows


def _measure(
    model: ModelProto, sources: Collection[str], feeds: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, list[_Seen]]:
    """The activations of a float32 graph, text by text."""
    names = sorted(sources)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    session = ort.InferenceSession(
        with_outputs(model, names).SerializeToString(), settings, ["CPUExecutionProvider"]
    )
    seen: dict[str, list[_Seen]] = {name: [] for name in names}
    for text in feeds[:_MOST_TEXTS]:
        for name, values in zip(names, session.run(names, dict(text)), strict=True):
            rows = values.reshape(-1, values.shape[-1])
            some = rows[:: max(1, len(rows) // _ROWS)][:_ROWS]
            seen[name].append(_Seen(rows.min(axis=0), rows.max(axis=0), some.copy()))
    return seen


def _choose_factors(texts: Sequence[_Seen], matrices: Sequence[np.ndarray]) -> np.ndarray | None:
    """The factors s, float32 [K], of the best alpha; None if none is worth it."""
    low, high = (np.stack([getattr(text, end) for text in texts]) for end in ("low", "high"))
    largest = np.maximum(-low.min(axis=0), high.max(axis=0))
    weights = np.max([np.abs(matrix).max(axis=1) for matrix in matrices], axis=0)
    if not largest.max() or not weights.max():
        return None
    largest = np.maximum(largest, _LEAST * largest.max())
    weights = np.maximum(weights, _LEAST * weights.max())
    rows = np.concatenate([text.rows for text in texts])
    text_of_row = np.repeat(np.arange(len(texts)), [len(text.rows) for text in texts])
    matrices = [matrix[:, :: max(1, matrix.shape[1] // _COLUMNS)] for matrix in matrices]
    exact = [rows @ matrix for matrix in matrices]

    def error(factors: np.ndarray) -> float:
        """Of all outputs, with both sides rounded as `dynamic_int8` does."""
        zero = np.zeros(len(texts), np.float32)
        bottom = np.minimum((low / factors).min(axis=1), zero)[text_of_row, None]
        top = np.maximum((high / factors).max(axis=1), zero)[text_of_row, None]
        step = np.maximum((top - bottom) / 255, np.finfo(np.float32).tiny)
        point = np.rint(-bottom / step)
        rounded = (np.clip(np.rint(rows / factors / step) + point, 0, 255) - point) * step
        total = 0.0
        for matrix, outputs in zip(matrices, exact, strict=True):
            integers, scale = quantize_matrix(matrix * factors[:, None], 0)
            noisy = rounded @ (integers * scale)
            total += float(((outputs - noisy).astype(np.float64) ** 2).sum())
        return total

    choices = [largest**alpha / weights ** (1 - alpha) for alpha in _ALPHAS]
    errors = [error(factors) for factors in choices]
    best = int(np.argmin(errors))
    return choices[best] if errors[best] < _WORTH * error(np.ones_like(largest)) else None
