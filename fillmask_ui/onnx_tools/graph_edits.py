"""Changed copies of a graph: with other outputs, or with some parts of another graph.

Two files of one model name and order things differently: parts are matched by the value that they
yield where those names were kept, else by the order in which the outputs need them, their kinds,
shapes and layers. A part in full precision is computed as in the baseline: its stored numbers and
the Cast and Transpose behind them are copied from there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
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
    copied,
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
    partners: dict[Part, Part] = {}

    def left() -> tuple[list[Part], list[Part]]:
        taken = {*partners.values()}
        here = [part for part in first if part not in partners]
        return here, [part for part in second if part not in taken]

    def match_by(key: Callable[[Part], object]) -> None:
        """Match what is left, where a single part of the second has a key."""
        here, there = left()
        alike = defaultdict[object, list[Part]](list)
        for part in there:
            alike[key(part)].append(part)
        for part in here:
            if len(own := alike.pop(key(part), [])) == 1:
                partners[part] = own[0]

    match_by(lambda part: (part.output, part.input_index, _key(part)))
    if len(partners) < _TRUSTED * min(len(first), len(second)):
        partners.clear()
    here, there = left()
    alignment = SequenceMatcher(None, [*map(_key, here)], [*map(_key, there)], autojunk=False)
    for a, b, size in alignment.get_matching_blocks():
        partners.update(zip(here[a : a + size], there[b : b + size], strict=True))
    match_by(_key)  # terms of a sum may stand in another order
    pairs = tuple(PartPair(part, partners[part]) for part in first if part in partners)
    return Matching(pairs, *map(tuple, left()))


def _key(part: Part) -> tuple[object, ...]:
    return part.kind, part.shape, part.layer


def with_outputs(model: ModelProto, values: Iterable[str]) -> ModelProto:
    """A copy of a graph with the outputs `values` alone."""
    result = copied(model)
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
    turned = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Transpose"
        and node.output[0] in constants.fixed
        and attributes_of(node).get("perm", [1, 0]) == [1, 0]
    }
    products = (own for own in graph.node if own.op_type == "MatMul" and own.input[1] in turned)
    for node in products:
        if node.output[0] not in constants.fixed:
            node.op_type, node.domain = "FusedMatMul", "com.microsoft"
            node.input[1] = turned[node.input[1]]
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
    result = copied(quantized)
    graph, own, other = result.graph, Constants(result.graph), Constants(baseline.graph)
    prefix = _COPIED
    while any(name.startswith(prefix) for name in (*own.stored, *own.makers)):
        prefix += _COPIED
    added = add_prefix(baseline, prefix).graph  # of which what is read will stay
    nodes = list(added.node)

    def new(operator: str, *inputs: str, **attributes: Any) -> str:
        """The output of a new operator."""
        output = f"{prefix}{len(nodes)}"
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    same: dict[str, str] = {}  # copied tensor -> an equal one of this graph, such as embeddings
    for pair in pairs:
        part, node, reader = pair.first, own.makers[pair.first.node], other.makers[pair.second.node]
        given = reader.input[pair.second.input_index]
        for name in filter(other.stored.get, other.roots(given)):
            if equal := _equal(other.stored[name], graph):
                same[prefix + name] = equal
        value, kind = prefix + given, other.required_kind(given)
        is_row = part.kind in ("bias", "norm")
        wanted = (
            own.required_kind(node.input[part.input_index])
            if is_row
            else Kind(TensorProto.FLOAT, kind.dims)
        )
        if kind.type != wanted.type:
            value = new("Cast", value, to=wanted.type)
        if kind.dims != wanted.dims:
            shape = f"{prefix}shape{len(wanted.dims)}_{len(nodes)}"
            added.initializer.append(numpy_helper.from_array(np.array(wanted.dims), shape))
            value = new("Reshape", value, shape)
        if is_row:
            node.input[part.input_index] = value
            continue
        if part.kind == "embedding":
            value = new("Gather", value, part.source)
        else:
            if attributes_of(reader).get("transB"):
                value = new("Transpose", value, perm=[1, 0])
            source = new("Cast", part.source, to=TensorProto.FLOAT) if part.half else part.source
            value = new("MatMul", source, value)
            place = _FUSED_BIAS.get(node.op_type, len(node.input))
            if any(node.input[place:]):
                value = new("Add", value, node.input[place])
        if part.half:
            new("Cast", value, to=TensorProto.FLOAT16)
        nodes[-1].output[0] = part.output
    for node in nodes:
        node.input[:] = [same.get(name, name) for name in node.input]
    replace_nodes(graph, [*graph.node, *nodes], added.initializer)  # the later maker of a value
    return result


def _equal(tensor: TensorProto, graph: GraphProto) -> str:
    """The name of a constant with the same numbers; "" if there is none."""
    alike = (
        own.name
        for own in graph.initializer
        if (own.data_type, own.dims) == (tensor.data_type, tensor.dims)
        and _numbers(own) == _numbers(tensor)
    )
    return next(alike, "")


def _numbers(tensor: TensorProto) -> bytes:
    return bytes(tensor.raw_data) or numpy_helper.to_array(tensor).tobytes()


def stored_bytes(model: ModelProto) -> int:
    """Size of all stored tensors of a graph."""
    constants = Constants(model.graph)
    return constants.size_bytes(*(tensor.name for tensor in model.graph.initializer))
