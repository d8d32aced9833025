"""Changed copies of a graph: with other outputs, or with some parts of another graph.

Two files of one model name and order things differently: parts are matched by the value that they
yield where those names were kept, else by the order in which the outputs need them, their kinds,
shapes and layers. A part in full precision is computed as in the baseline: its stored numbers and
the Cast and Transpose behind them are copied from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

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
class Pair:
    """One part in two graphs."""

    first: Part
    second: Part


@dataclass(frozen=True)
class Matching:
    """The parts of two graphs, side by side."""

    pairs: tuple[Pair, ...]  # in the order of the first graph
    only_first: tuple[Part, ...]  # without a partner
    only_second: tuple[Part, ...]


def match_parts(first: Sequence[Part], second: Sequence[Part]) -> Matching:
    """Match the parts of two graphs, each in the order of `find_parts`."""
    known = {(part.output, part.place, _key(part)): place for place, part in enumerate(second)}
    named = [(part.output, part.place, _key(part)) for part in first]
    partners = {place: known[key] for place, key in enumerate(named) if key in known}
    if len(partners) < _TRUSTED * min(len(first), len(second)):
        partners = {}
    left, right = _without(partners, first), _without(partners.values(), second)
    keys = [_key(first[place]) for place in left], [_key(second[place]) for place in right]
    for block in SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            partners[left[block.a + step]] = right[block.b + step]
    # Terms of a sum may stand in another order: those that nothing else looks like.
    alike: dict[object, list[int]] = defaultdict(list)
    for place in _without(partners.values(), second):
        alike[_key(second[place])].append(place)
    for place in _without(partners, first):
        if len(own := alike.pop(_key(first[place]), [])) == 1:
            partners[place] = own[0]
    return Matching(
        tuple(Pair(first[a], second[b]) for a, b in sorted(partners.items())),
        tuple(first[place] for place in _without(partners, first)),
        tuple(second[place] for place in _without(partners.values(), second)),
    )


def _without(taken: Iterable[int], parts: Sequence[Part]) -> list[int]:
    return sorted({*range(len(parts))}.difference(taken))


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
    quantized: ModelProto, baseline: ModelProto, pairs: Sequence[Pair]
) -> ModelProto:
    """A copy of a quantized graph with the parts of `pairs` computed as in the baseline.

    Both graphs have their weights inside. Unread constants are left out.
    """
    result = copied(quantized)
    grafting = _Grafting(result, baseline)
    for pair in pairs:
        grafting.restore(pair)
    grafting.finish()
    return result


def stored_bytes(model: ModelProto) -> int:
    """Size of all stored tensors of a graph."""
    constants = Constants(model.graph)
    return constants.size_bytes(*(tensor.name for tensor in model.graph.initializer))


class _Grafting:
    """One graph, changed in place by parts of another."""

    def __init__(self, model: ModelProto, baseline: ModelProto) -> None:
        self.model, self.baseline = model, Constants(baseline.graph)
        self.graph, self.own = model.graph, Constants(model.graph)
        self.front: dict[str, NodeProto] = {}  # copied nodes by the name of their output
        self.added: dict[str, TensorProto] = {}  # copied tensors by their new name
        self.names: dict[str, str] = {}  # value of the baseline -> its name here
        self.instead: dict[str, list[NodeProto]] = {}  # value -> the nodes that now compute it

    def restore(self, pair: Pair) -> None:
        """Compute one part as in the baseline."""
        part, other = pair.first, pair.second
        node, reader = self.own.makers[part.node], self.baseline.makers[other.node]
        kind = self.baseline.known(reader.input[other.place])
        value = self._copied(reader.input[other.place])
        if part.kind in ("bias", "norm"):
            own = self.own.known(node.input[part.place])
            node.input[part.place] = self._like(value, kind, own)
            return
        value = self._like(value, kind, Kind(TensorProto.FLOAT, kind.dims))
        if part.kind == "embedding":
            self._instead(part, [helper.make_node("Gather", [value, part.source], ["{}"])])
            return
        if attributes_of(reader).get("transB"):
            value = self._node("Transpose", [value], f"{value}/turned", perm=[1, 0])
        self._instead(part, self._product(node, part, value))

    def _product(self, node: NodeProto, part: Part, matrix: str) -> list[NodeProto]:
        """A product in float32; "{}" stands for the value that it gives."""
        nodes, source = [], part.source
        if part.half:
            source = f"{part.output}/source"
            nodes.append(helper.make_node("Cast", [part.source], [source], to=TensorProto.FLOAT))
        place = _FUSED_BIAS.get(node.op_type, len(node.input))
        bias = node.input[place] if place < len(node.input) else ""
        if not bias:
            return [*nodes, helper.make_node("MatMul", [source, matrix], ["{}"])]
        product = f"{part.output}/product"
        return [
            *nodes,
            helper.make_node("MatMul", [source, matrix], [product]),
            helper.make_node("Add", [product, bias], ["{}"]),
        ]

    def _instead(self, part: Part, nodes: list[NodeProto]) -> None:
        """Let nodes, of which the last gives "{}", compute what a part yields."""
        nodes[-1].output[0] = f"{part.output}/float32" if part.half else part.output
        if part.half:
            given = [nodes[-1].output[0]]
            nodes.append(helper.make_node("Cast", given, [part.output], to=TensorProto.FLOAT16))
        self.instead[part.output] = nodes

    def _like(self, value: str, kind: Kind, wanted: Kind) -> str:
        """A constant in another type and shape."""
        if kind.type != wanted.type:
            value = self._node("Cast", [value], f"{value}/{wanted.type}", to=wanted.type)
        if kind.dims != wanted.dims:
            shape = f"{value}/shape{len(wanted.dims)}"
            self.added[shape] = numpy_helper.from_array(np.array(wanted.dims), shape)
            value = self._node("Reshape", [value, shape], f"{value}/{len(wanted.dims)}")
        return value

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """The output of a new operator on constants, added once."""
        self.front.setdefault(output, helper.make_node(operator, inputs, [output], **attributes))
        return output

    def _copied(self, value: str) -> str:
        """A constant of the baseline in this graph."""
        for name in self.baseline.roots(value):
            if name in self.baseline.stored and name not in self.names:
                self.names[name] = self._stored(self.baseline.stored[name])
        for node in self.baseline.nodes(value):
            if node.output[0] not in self.names:
                copy = NodeProto()
                copy.CopyFrom(node)
                copy.input[:] = [self.names.get(name, name) for name in node.input]
                copy.output[:] = [self._free(name) for name in node.output]
                self.names.update(zip(node.output, copy.output, strict=True))
                self.front[copy.output[0]] = copy
        return self.names[value]

    def _stored(self, tensor: TensorProto) -> str:
        """The name of an equal tensor of this graph, such as word embeddings, or of a copy."""
        for own in self.graph.initializer:
            alike = own.data_type == tensor.data_type and own.dims == tensor.dims
            if alike and _numbers(own) == _numbers(tensor):
                return str(own.name)
        copy = TensorProto()
        copy.CopyFrom(tensor)
        copy.name = self._free(tensor.name)
        self.added[copy.name] = copy
        return str(copy.name)

    def _free(self, name: str) -> str:
        """A name that this graph does not use."""
        name = _COPIED + name
        while name in self.own.stored or name in self.own.makers:
            name = _COPIED + name
        return name

    def finish(self) -> None:
        """Put the new nodes in place and drop what nothing reads."""
        nodes = list(self.front.values())
        for node in self.graph.node:
            replaced = [name for name in node.output if name in self.instead]
            nodes += self.instead[replaced[0]] if replaced else [node]
        replace_nodes(self.graph, nodes, self.added.values())


def _numbers(tensor: TensorProto) -> bytes:
    return bytes(tensor.raw_data) or numpy_helper.to_array(tensor).tobytes()
