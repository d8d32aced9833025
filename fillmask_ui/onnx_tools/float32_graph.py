"""A graph with all its weights inside, in float32, as the quantizers of ONNX Runtime want it.

They look for constants in front of a product; files hold weights elsewhere, behind a Cast or a
Transpose, which is folded here. A matrix that is read in both orders, such as word embeddings that
are the vocabulary projection too, stays one constant; `split_ties` makes two of it. ONNX Runtime
writes its optimised graph too, but copies such a matrix and forgets the names of the weights.
"""

from collections import Counter
from collections.abc import Collection

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from fillmask_ui.errors import ModelError
from fillmask_ui.onnx_tools.constant_folding import (
    HALVES,
    Constants,
    attributes_of,
    copy_model,
    nodes_for,
    rename,
    run_nodes,
    values_read,
)
from fillmask_ui.onnx_tools.external_weights import Stored, content_hash, remember, reuse
from fillmask_ui.onnx_tools.graph_parts import Part


def make_whole(model: ModelProto, name: str) -> None:
    """Fold the constants of a graph, in place; its weights must be in it.

    A ModelError if it computes in half precision; `name` is for its message.
    """
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


def _fold(graph: GraphProto) -> None:
    """Fold what only converts, transposes or passes on constants."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    readers = _readers(graph)
    stems: dict[str, str] = {}  # folded constant -> the one it was made of
    nodes = []
    for node in graph.node:  # each behind what it reads
        folded = None
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            folded = node.attribute[0].t
            folded.name = node.output[0]
        elif node.op_type in ("Cast", "Identity", "Transpose") and node.input[0] in constants:
            source = constants[node.input[0]]
            # A matrix that is read in both orders is stored in one.
            if node.op_type != "Transpose" or readers[source.name] == 1:
                folded = from_array(_compute(node, to_array(source)), node.output[0])
                stems[folded.name] = stems.get(source.name, source.name)
        if folded is None:
            nodes.append(node)
        else:
            constants[folded.name] = folded
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    readers = _readers(graph)
    used = {name: tensor for name, tensor in constants.items() if readers[name]}
    # A weight keeps the name it had in the file if nothing else was made of it.
    shared = Counter(stems.get(name, name) for name in used)
    renamed = {name: stem for name, stem in stems.items() if name in used and shared[stem] == 1}
    for name, tensor in used.items():
        tensor.name = renamed.get(name, name)
    rename(graph, renamed)
    graph.initializer.extend(used.values())


def _compute(node: NodeProto, values: np.ndarray) -> np.ndarray:
    attributes = attributes_of(node)
    if node.op_type == "Cast":
        return values.astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))
    if node.op_type == "Transpose":
        return np.ascontiguousarray(values.transpose(attributes.get("perm")))
    return values


def _readers(graph: GraphProto) -> Counter[str]:
    """Number of readers of each value, the graph's outputs among them."""
    read = Counter(name for node in graph.node for name in values_read(node))
    read.update(output.name for output in graph.output)
    return read


def _store_once(graph: GraphProto) -> None:
    """Store equal matrices once, also word embeddings whose transpose is the projection."""
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    floats = (tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT)
    matrices = [tensor for tensor in floats if len(tensor.dims) == 2]
    stored: dict[bytes, Stored] = {}
    for tensor in sorted(matrices, key=lambda matrix: matrix.name not in looked_up):
        values = to_array(tensor)
        if tensor.name in looked_up:
            remember(stored, values, tensor)
        else:
            stored.setdefault(content_hash(values), Stored(tensor))
    reuse(graph, stored)


def transposed_constants(model: ModelProto) -> dict[str, NodeProto]:
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
    result = copy_model(model)
    graph = result.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for value, transpose in transposed_constants(result).items():
        readers = {
            node.name
            for node in graph.node
            if node is not transpose and {value, transpose.input[0]}.intersection(node.input)
        }
        if exclude is not None and readers.intersection(exclude) in (set(), readers):
            continue
        values = _compute(transpose, to_array(constants[transpose.input[0]]))
        graph.initializer.append(from_array(values, value))
        graph.node.remove(transpose)
    return result


def dequantize(model: ModelProto, part: Part) -> np.ndarray:
    """A part's numbers, as before smoothing, float32 of `part.shape`; weights must be inside."""
    constants = Constants(model.graph)
    node = constants.makers[part.node]
    if part.kind == "embedding":
        return _run_part(constants, part, np.arange(constants.required_kind(node.input[0]).dims[0]))
    if node.op_type == "MatMulNBits" and part.input_index == 1:
        scale = constants.required_kind(node.input[2])
        return _run_part(constants, part, np.eye(part.shape[0], dtype=scale.dtype))
    values = constants.value(node.input[part.input_index]).astype(np.float32)
    if node.op_type == "MatMulInteger":  # (values - zero points) * scales, of columns or of all
        for name in sorted(part.scales, key=lambda name: constants.required_kind(name).is_float):
            scale_or_zero = constants.value(name).astype(np.float32)
            if constants.required_kind(name).is_float:
                values = values * scale_or_zero
            else:
                values = values - scale_or_zero
    elif part.input_index == 1 and attributes_of(node).get("transB"):
        values = values.T
    values = values.reshape(part.shape)
    if not part.smoothing:
        return values
    factors = constants.value(part.smoothing)  # 1 / s
    return values / factors if part.kind == "norm" else values * factors[:, None]


def _run_part(constants: Constants, part: Part, source: np.ndarray) -> np.ndarray:
    """What a part yields, in float32, for an array in place of its source."""
    behind_source = [node for node in constants.makers.values() if part.source not in node.output]
    nodes = []
    for node in nodes_for(behind_source, [part.output]):
        copy = NodeProto()
        copy.CopyFrom(node)
        if node.op_type == "MatMulNBits":
            del copy.input[5:]  # the bias
            for attribute in node.attribute:
                if attribute.name == "accuracy_level":  # products with rounded activations
                    copy.attribute.remove(attribute)
        nodes.append(copy)
    read = {name for node in nodes for name in node.input}
    kind = helper.np_dtype_to_tensor_dtype(source.dtype)
    inputs = [helper.make_tensor_value_info(part.source, kind, None)]
    output = helper.make_empty_tensor_value_info(part.output)
    stored = [tensor for name, tensor in constants.stored.items() if name in read]
    graph = helper.make_graph(nodes, "part", inputs, [output], stored)
    return run_nodes(graph, **{part.source: source}).astype(np.float32)
