"""A graph with all its weights inside, in float32, as the quantizers of ONNX Runtime want it.

They look for constants in front of a product; files hold weights elsewhere, behind a Cast or a
Transpose, which is folded here. A matrix that is read in both orders, such as word embeddings that
are the vocabulary projection too, stays one constant; `split_ties` makes two of it. ONNX Runtime
writes its optimised graph too, but copies such a matrix and forgets the names of the weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from onnx.external_data_helper import ExternalDataInfo
from onnx.numpy_helper import from_array, to_array

from fillmask_ui.errors import ModelError
from fillmask_ui.onnx_tools.constant_folding import (
    HALVES,
    Constants,
    attributes_of,
    copied,
    read_by,
    replace_nodes,
    run_nodes,
)
from fillmask_ui.onnx_tools.external_weights import MINIMUM_ELEMENTS, content
from fillmask_ui.onnx_tools.graph_parts import Part


def make_whole(model: ModelProto, files: Mapping[str, Path], name: str) -> None:
    """Bring the weights into a graph and fold them, in place.

    `files` maps locations of external data, as the graph says them, to files; `name` is for
    messages. A ModelError if the graph computes in half precision.
    """
    inline_weights(model, files)
    _fold(model.graph)
    _store_once(model.graph)
    names: set[str] = set()
    for node in model.graph.node:  # a name of its own, by which it can be excluded
        if not node.name or node.name in names:
            node.name = f"{node.op_type}:{node.output[0]}"
        names.add(node.name)
    if any(t.data_type in HALVES and np.prod(t.dims) > 1 for t in model.graph.initializer):
        raise ModelError(
            f"{name} computes in half precision: give the model in float32, which is where every "
            "scheme starts"
        )


def inline_weights(model: ModelProto, files: Mapping[str, Path]) -> None:
    """Bring the weights into a graph, in place; arguments as of `make_whole`."""
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            place = ExternalDataInfo(tensor)
            with files[place.location].open("rb") as file:
                file.seek(place.offset or 0)
                tensor.raw_data = file.read(place.length or -1)
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]


def _fold(graph: GraphProto) -> None:
    """Fold what only converts, transposes or passes on constants."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    readers = _readers(graph)
    stems: dict[str, str] = {}  # folded constant -> the one it was made of
    nodes = []
    for node in graph.node:  # each behind what it reads
        made = None
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            made = node.attribute[0].t
            made.name = node.output[0]
        elif node.op_type in ("Cast", "Identity", "Transpose") and node.input[0] in constants:
            source = constants[node.input[0]]
            # A matrix that is read in both orders is stored in one.
            if node.op_type != "Transpose" or readers[source.name] == 1:
                made = from_array(_worked_out(node, to_array(source)), node.output[0])
                stems[made.name] = stems.get(source.name, source.name)
        if made is None:
            nodes.append(node)
        else:
            constants[made.name] = made
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    readers = _readers(graph)
    used = {name: tensor for name, tensor in constants.items() if readers[name]}
    # A weight keeps the name it had in the file if nothing else was made of it.
    shared = Counter(stems.get(name, name) for name in used)
    renamed = {name: stem for name, stem in stems.items() if name in used and shared[stem] == 1}
    for name, tensor in used.items():
        tensor.name = renamed.get(name, name)
    _rename(graph, renamed)
    graph.initializer.extend(used.values())


def _worked_out(node: NodeProto, values: np.ndarray) -> np.ndarray:
    attributes = attributes_of(node)
    if node.op_type == "Cast":
        return values.astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))
    if node.op_type == "Transpose":
        return np.ascontiguousarray(values.transpose(attributes.get("perm")))
    return values


def _readers(graph: GraphProto) -> Counter[str]:
    """Number of readers of each value, the graph's outputs among them."""
    read = Counter(name for node in graph.node for name in read_by(node))
    read.update(output.name for output in graph.output)
    return read


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename(inner, names)


def _store_once(graph: GraphProto) -> None:
    """Store equal matrices once, also word embeddings whose transpose is the projection."""
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    matrices = [
        tensor
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT
        and len(tensor.dims) == 2
        and np.prod(tensor.dims) >= MINIMUM_ELEMENTS
    ]
    tables = {content(to_array(t).T): t.name for t in matrices if t.name in looked_up}
    first: dict[bytes, str] = {}
    same: dict[str, str] = {}
    turns: dict[str, NodeProto] = {}
    for tensor in matrices:
        own = content(to_array(tensor))
        if tensor.name not in looked_up and own in tables:
            turn = helper.make_node("Transpose", [tables[own]], [tensor.name], perm=[1, 0])
            turns[tensor.name] = turn
        elif first.setdefault(own, tensor.name) != tensor.name:
            same[tensor.name] = first[own]
    _rename(graph, same)
    kept = [own for own in graph.initializer if own.name not in same.keys() | turns.keys()]
    del graph.initializer[:]
    replace_nodes(graph, [*turns.values(), *graph.node], kept)


def turned_constants(model: ModelProto) -> dict[str, NodeProto]:
    """Transposed constants, and the Transpose of each."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return {
        node.output[0]: node
        for node in model.graph.node
        if node.op_type == "Transpose" and node.input[0] in constants
    }


def split_ties(model: ModelProto, exclude: Collection[str] | None = None) -> ModelProto:
    """A copy of a whole graph in which constants that are read in both orders are two.

    With `exclude`, names of nodes, only constants that both one of these and another node read.
    """
    result = copied(model)
    graph = result.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for value, turn in turned_constants(result).items():
        readers = {
            node.name
            for node in graph.node
            if node is not turn and {value, turn.input[0]}.intersection(node.input)
        }
        if exclude is not None and readers.intersection(exclude) in (set(), readers):
            continue
        values = _worked_out(turn, to_array(constants[turn.input[0]]))
        graph.initializer.append(from_array(values, value))
        graph.node.remove(turn)
    return result


def dequantized(model: ModelProto, part: Part) -> np.ndarray:
    """A part's numbers as float32 of `part.shape`; weights must be in the graph."""
    constants = Constants(model.graph)
    node = constants.makers[part.node]
    if node.op_type == "MatMulNBits" and part.place == 1:
        return _computed(constants, node, 0, np.eye(part.shape[0]))
    if node.op_type == "GatherBlockQuantized":
        return _computed(constants, node, 1, np.arange(constants.known(node.input[0]).dims[0]))
    values = constants.value(node.input[part.place])
    if part.scales and node.op_type != "MatMulNBits":
        return _scaled(constants, part, values.astype(np.float32))
    if attributes_of(node).get("transB") and part.place == 1:
        values = values.T
    return values.astype(np.float32).reshape(part.shape)


def _scaled(constants: Constants, part: Part, values: np.ndarray) -> np.ndarray:
    """(values - zero point) * scale; both are one number, or one for each column or row."""
    for name in part.scales:
        kind = constants.kind(name)
        if kind is not None and not kind.is_float:
            values = values - constants.value(name).astype(np.float32)
    for name in part.scales:
        kind = constants.kind(name)
        if kind is not None and kind.is_float:
            scale = constants.value(name).astype(np.float32)
            by_row = part.kind == "embedding" and scale.shape == values.shape[:1]
            values = values * (scale[:, None] if by_row else scale)
    return values


def _computed(constants: Constants, node: NodeProto, place: int, given: np.ndarray) -> np.ndarray:
    """The float32 output of a block operator for an array in place of one of its inputs."""
    own = NodeProto()
    own.CopyFrom(node)
    del own.input[5:]  # the bias of a product
    own.input[place], own.output[0] = "given", "result"
    for attribute in [one for one in own.attribute if one.name == "accuracy_level"]:
        own.attribute.remove(attribute)  # products with rounded activations
    kind = constants.known(node.input[2]).type  # of the scales
    if place == 0:
        given = given.astype(helper.tensor_dtype_to_np_dtype(kind))
    given_kind = helper.np_dtype_to_tensor_dtype(given.dtype)
    inputs = [helper.make_tensor_value_info("given", given_kind, None)]
    output = helper.make_tensor_value_info("result", kind, None)
    stored = [constants.stored[name] for name in own.input if name in constants.stored]
    graph = helper.make_graph([own], "blocks", inputs, [output], stored)
    return run_nodes(graph, given=given).astype(np.float32)
