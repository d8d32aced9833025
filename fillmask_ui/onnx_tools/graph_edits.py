"""Changed copies of a graph: with other outputs, or with some parts of another graph.

Two files of one model name and order things differently: parts are matched by the value that they
yield where those names were kept, else by the order in which the outputs need them, their kinds,
shapes and layers. A part in full precision is computed as in the baseline: its stored numbers and
the Cast and Transpose behind them are copy_model from there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from onnx.compose import add_prefix

from fillmask_ui.onnx_tools.constant_folding import (
    Constants,
    Kind,
    attributes_of,
    copy_model,
    replace_nodes,
)
from fillmask_ui.onnx_tools.graph_parts import Part

_TRUSTED = 0.5  # least share of the parts with equal names and keys for names to be trusted
_FUSED_BIAS = {"Gemm": 2, "MatMulNBits": 5}  # the input with the bias
_COPIED = "full_precision/"  # begins the names of copies from the baseline


@dataclass(frozen=True)
class PartPair:
    """One part in two graphs."""

    first: Part
    second: Part


@dataclass(frozen=True)
class Matching:
    """The parts of two graphs, side by side."""

    pairs: tuple[PartPair, ...]  # in the order of the first graph
    only_first: tuple[Part, ...]  # without a partner
    only_second: tuple[Part, ...]


def match_parts(first: Sequence[Part], second: Sequence[Part]) -> Matching:
    """Match the parts of two graphs, each in the order of `find_parts`."""
    partners = _match_by_key(
        first, second, lambda part: (part.output, part.input_index, _key(part))
    )
    if len(partners) < _TRUSTED * min(len(first), len(second)):
        partners = {}
    first_left, second_left = _unmatched(first, second, partners)
    keys = [_key(part) for part in first_left], [_key(part) for part in second_left]
    for block in SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            partners[first_left[block.a + offset]] = second_left[block.b + offset]
    # Terms of a sum may stand in another order.
    partners |= _match_by_key(*_unmatched(first, second, partners), _key)
    first_left, second_left = _unmatched(first, second, partners)
    pairs = tuple(PartPair(part, partners[part]) for part in first if part in partners)
    return Matching(pairs, tuple(first_left), tuple(second_left))


def _unmatched(
    first: Iterable[Part], second: Iterable[Part], partners: Mapping[Part, Part]
) -> tuple[list[Part], list[Part]]:
    matched = set(partners.values())
    return (
        [part for part in first if part not in partners],
        [part for part in second if part not in matched],
    )


def _match_by_key(
    first: Iterable[Part], second: Iterable[Part], key: Callable[[Part], object]
) -> dict[Part, Part]:
    """Partners in `second`, where a single part there has a key; a key is used once."""
    candidates = defaultdict[object, list[Part]](list)
    for part in second:
        candidates[key(part)].append(part)
    partners = {}
    for part in first:
        same_key = candidates.pop(key(part), [])
        if len(same_key) == 1:
            partners[part] = same_key[0]
    return partners


def _key(part: Part) -> tuple[object, ...]:
    return part.kind, part.shape, part.layer


def with_outputs(model: ModelProto, values: Iterable[str]) -> ModelProto:
    """A copy of a graph with the outputs `values` alone."""
    result = copy_model(model)
    del result.graph.output[:]
    result.graph.output.extend(map(helper.make_empty_tensor_value_info, dict.fromkeys(values)))
    replace_nodes(result.graph, [*result.graph.node])
    return result


def read_as_stored(model: ModelProto) -> None:
    """Let products read their matrices in the order in which they are stored, in place.

        MatMul(A, Transpose(W)) becomes FusedMatMul(A, W, transB=1)

    for a constant W. Exporters write weights of PyTorch, [out, in], with a Transpose, which ONNX
    Runtime folds when it opens the graph: a third of that time, and a copy of what something else
    reads too, such as word embeddings. The product packs its matrix in either order, so it is as
    fast afterwards.
    """
    graph, constants = model.graph, Constants(model.graph)
    transposes = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Transpose"
        and node.output[0] in constants.fixed
        and attributes_of(node).get("perm", [1, 0]) == [1, 0]
    }
    for node in graph.node:
        reads_transpose = node.op_type == "MatMul" and node.input[1] in transposes
        if reads_transpose and node.output[0] not in constants.fixed:
            node.op_type, node.domain = "FusedMatMul", "com.microsoft"
            node.input[1] = transposes[node.input[1]]
            node.attribute.append(helper.make_attribute("transB", 1))
    replace_nodes(graph, [*graph.node])  # ONNX Runtime would also fold an unread constant
    fused = any(node.domain == "com.microsoft" for node in graph.node)
    if fused and "com.microsoft" not in {entry.domain for entry in model.opset_import}:
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def in_full_precision(
    quantized: ModelProto, baseline: ModelProto, pairs: Sequence[PartPair]
) -> ModelProto:
    """A copy of a quantized graph with the parts of `pairs` computed as in the baseline.

    Both graphs have their weights inside. Unread constants are left out.
    """
    result = copy_model(quantized)
    graph = result.graph
    constants, baseline_constants = Constants(graph), Constants(baseline.graph)
    prefix = _COPIED
    while any(name.startswith(prefix) for name in (*constants.stored, *constants.makers)):
        prefix += _COPIED
    copy = add_prefix(baseline, prefix).graph  # of which what is read will stay
    nodes = list(copy.node)

    def add_node(operator: str, *inputs: str, **attributes: Any) -> str:
        """The output of a new node."""
        output = f"{prefix}{len(nodes)}"
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    equal: dict[str, str] = {}  # copied tensor -> an equal one of this graph, such as embeddings
    in_norms = {pair.first.source: constants.smoothing(pair.first.source) for pair in pairs}
    for pair in pairs:
        part, index = pair.first, pair.first.input_index
        node = constants.makers[part.node]
        baseline_node = baseline_constants.makers[pair.second.node]
        baseline_value = baseline_node.input[pair.second.input_index]
        for name in baseline_constants.roots(baseline_value):
            tensor = baseline_constants.stored.get(name)
            if tensor is not None and (equal_name := _find_equal(tensor, graph)):
                equal[prefix + name] = equal_name
        value = prefix + baseline_value
        kind = baseline_constants.required_kind(baseline_value)
        is_row = part.kind in ("bias", "norm")
        expected = Kind(TensorProto.FLOAT, kind.dims)
        if is_row:
            expected = constants.required_kind(node.input[index])
        if kind.type != expected.type:
            value = add_node("Cast", value, to=expected.type)
        if kind.dims != expected.dims:
            shape = f"{prefix}shape{len(expected.dims)}_{len(nodes)}"
            copy.initializer.append(numpy_helper.from_array(np.array(expected.dims), shape))
            value = add_node("Reshape", value, shape)
        if is_row:
            if part.smoothing:
                value = add_node("Mul", value, part.smoothing)
            node.input[index] = value
            continue
        if part.kind == "embedding":
            value = add_node("Gather", value, part.source)
        else:
            if attributes_of(baseline_node).get("transB"):
                value = add_node("Transpose", value, perm=[1, 0])
            source = part.source
            if smoothing := in_norms[source]:
                source = add_node("Div", source, smoothing)
            if part.half:
                source = add_node("Cast", source, to=TensorProto.FLOAT)
            value = add_node("MatMul", source, value)
            bias_index = _FUSED_BIAS.get(node.op_type, len(node.input))
            if any(node.input[bias_index:]):
                value = add_node("Add", value, node.input[bias_index])
        if part.half:
            add_node("Cast", value, to=TensorProto.FLOAT16)
        nodes[-1].output[0] = part.output
    for node in nodes:
        node.input[:] = [equal.get(name, name) for name in node.input]
    replace_nodes(graph, [*graph.node, *nodes], copy.initializer)  # the later maker of a value
    return result


def _find_equal(tensor: TensorProto, graph: GraphProto) -> str:
    """The name of a constant with the same numbers; "" if there is none."""
    for candidate in graph.initializer:
        same_kind = (candidate.data_type, candidate.dims) == (tensor.data_type, tensor.dims)
        if same_kind and _numbers(candidate) == _numbers(tensor):
            return str(candidate.name)
    return ""


def _numbers(tensor: TensorProto) -> bytes:
    return bytes(tensor.raw_data) or numpy_helper.to_array(tensor).tobytes()


def stored_bytes(model: ModelProto) -> int:
    """Size of all stored tensors of a graph."""
    constants = Constants(model.graph)
    return constants.size_bytes(*(tensor.name for tensor in model.graph.initializer))
