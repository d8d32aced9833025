"""A graph with all its weights inside, in float32, as the quantizers of ONNX Runtime want it.

They look for constants in front of a product. Files hold the weights elsewhere, in half precision
behind a Cast, or behind a Transpose; all that is worked out here. What two products read in
different order, such as word embeddings that are the vocabulary projection too, stays one constant
and a Transpose, so that it is stored once: `split_ties` makes two of it.

Rivals: ONNX Runtime writes the graph that it has optimised, but makes a copy of such a matrix,
refuses weights outside the graph's folder and forgets what the weights are called.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from onnx.external_data_helper import ExternalDataInfo
from onnx.numpy_helper import from_array, to_array

from fillmask_ui.errors import ModelError
from fillmask_ui.onnx_tools.by_row import read_by
from fillmask_ui.onnx_tools.sharing import MINIMUM_ELEMENTS

_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def make_whole(model: ModelProto, files: Mapping[str, Path], name: str) -> None:
    """Bring the weights into a graph, in place.

    Args:
        model: as read without its external data.
        files: location of external data, as the graph says it, to the file.
        name: of the model, for messages.

    Raises:
        ModelError: if the graph computes in half precision.
    """
    inline_weights(model, files)
    _fold(model.graph)
    _tie(model.graph)
    _name_nodes(model.graph)
    if any(t.data_type in _HALVES and np.prod(t.dims) > 1 for t in model.graph.initializer):
        raise ModelError(
            f"{name} computes in half precision: give the model in float32, which is where every "
            "scheme starts"
        )


def inline_weights(model: ModelProto, files: Mapping[str, Path]) -> None:
    """Bring the weights into a graph that is else left as it is, in place; as `make_whole`."""
    for tensor in model.graph.initializer:
        _inline(tensor, files)


def _inline(tensor: TensorProto, files: Mapping[str, Path]) -> None:
    if tensor.data_location != TensorProto.EXTERNAL:
        return
    place = ExternalDataInfo(tensor)
    with files[place.location].open("rb") as file:
        file.seek(place.offset or 0)
        tensor.raw_data = file.read(place.length or -1)
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _fold(graph: GraphProto) -> None:
    """Work out what only converts, turns or passes on constants."""
    _take_constants(graph)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    readers = _readers(graph)
    stems: dict[str, str] = {}  # what was worked out -> the constant it was made of
    nodes = []
    for node in graph.node:  # each stands behind what it reads
        source = constants.get(node.input[0]) if node.input else None
        made = None
        if source is not None and node.op_type in ("Cast", "Identity", "Transpose"):
            stem = stems.get(source.name, source.name)
            # A matrix that is read in both orders is stored in one.
            if node.op_type != "Transpose" or readers[source.name] == 1:
                made = from_array(_worked_out(node, to_array(source)), node.output[0])
        if source is None or made is None:
            nodes.append(node)
            continue
        constants[made.name] = made
        stems[made.name] = stem
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    readers = _readers(graph)
    used = {name: tensor for name, tensor in constants.items() if readers[name]}
    # A weight keeps the name it had in the file, if it is left alone with it.
    shared = Counter(stems.get(name, name) for name in used)
    renamed = {name: stem for name, stem in stems.items() if name in used and shared[stem] == 1}
    for name, tensor in used.items():
        tensor.name = renamed.get(name, name)
    _rename(graph, renamed)
    graph.initializer.extend(used.values())


def _take_constants(graph: GraphProto) -> None:
    """Nodes that hold a tensor become constants of the graph."""
    held = [n for n in graph.node if n.op_type == "Constant" and n.attribute[0].name == "value"]
    for node in held:
        tensor = node.attribute[0].t
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
        graph.node.remove(node)


def _worked_out(node: NodeProto, values: np.ndarray) -> np.ndarray:
    attributes = {own.name: helper.get_attribute_value(own) for own in node.attribute}
    if node.op_type == "Cast":
        return values.astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))
    if node.op_type == "Transpose":
        return np.ascontiguousarray(values.transpose(attributes.get("perm")))
    return values


def _readers(graph: GraphProto) -> Counter[str]:
    """How many read each value, the graph's own outputs among them."""
    read = Counter(name for node in graph.node for name in read_by(node))
    read.update(output.name for output in graph.output)
    return read


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename(inner, names)


def _tie(graph: GraphProto) -> None:
    """Store the word embeddings once where the vocabulary projection is a turned copy of them."""
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    matrices = [
        tensor
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT
        and len(tensor.dims) == 2
        and np.prod(tensor.dims) >= MINIMUM_ELEMENTS
    ]
    tables = {_digest(to_array(t).T): t.name for t in matrices if t.name in looked_up}
    shapes = {tuple(t.dims)[::-1] for t in matrices if t.name in looked_up}
    for tensor in matrices:
        if tensor.name in looked_up or tuple(tensor.dims) not in shapes:
            continue
        table = tables.get(_digest(to_array(tensor)))
        if table is not None:
            turn = helper.make_node("Transpose", [table], [tensor.name], perm=[1, 0])
            graph.initializer.remove(tensor)
            graph.node.insert(0, turn)


def _digest(values: np.ndarray) -> bytes:
    shape = str(values.shape).encode()
    return hashlib.sha256(shape + np.ascontiguousarray(values).tobytes()).digest()


def copied(model: ModelProto) -> ModelProto:
    """A copy, for tools that change what they are given."""
    result = ModelProto()
    result.CopyFrom(model)
    return result


def turned_constants(model: ModelProto) -> dict[str, NodeProto]:
    """What stands behind a Transpose of a constant, and that Transpose."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return {
        node.output[0]: node
        for node in model.graph.node
        if node.op_type == "Transpose" and node.input[0] in constants
    }


def split_ties(model: ModelProto, exclude: Collection[str] | None = None) -> ModelProto:
    """A copy in which constants that are read in both orders are two.

    Args:
        model: a whole graph.
        exclude: names of nodes; only what one of these and another node read is split. None for
            all there are.
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


def _name_nodes(graph: GraphProto) -> None:
    """Give every node a name of its own, by which it can be left out."""
    taken: set[str] = set()
    for node in graph.node:
        if not node.name or node.name in taken:
            node.name = f"{node.op_type}:{node.output[0]}"
        taken.add(node.name)
