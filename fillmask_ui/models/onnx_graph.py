"""What an ONNX file says about itself before it runs; the only file here that imports onnx."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from fillmask_ui.errors import ModelError, opening
from fillmask_ui.models.onnx_files import (
    GraphFacts,
    GraphSource,
    GraphValue,
    find_graph_files,
)
from fillmask_ui.models.runtime_model import TOLERANCE
from fillmask_ui.models.weights import read_header
from fillmask_ui.onnx_tools.asked_positions import gather_asked, last_state
from fillmask_ui.onnx_tools.constant_folding import HALVES, attributes_of
from fillmask_ui.onnx_tools.external_weights import point_into
from fillmask_ui.onnx_tools.graph_edits import read_as_stored, with_outputs
from fillmask_ui.onnx_tools.layers import SAME_IDS, head_at_asked, layer_values

# A graph and the name of its logits -> names of values inside it.
ValueFinder = Callable[[ModelProto, str], Sequence[str]]

_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
_BYTES = (2, 3, 17, 18, 19, 20)  # (u)int8 and the float8 types
_HALF_BYTES = (21, 22)  # (u)int4
_BLOCK_OPS = ("MatMulNBits", "GatherBlockQuantized")  # several weights in a byte
_SCALED_BY_CALL = ("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QAttention")


def read_graph(path: Path, root: Path, name: str) -> GraphSource:
    """An ONNX file of a model, whose weights must be in the folder `root`.

    Raises:
        ModelError: if it cannot be read, or takes weights from outside the folder, or from a
            safetensors file that was written anew in another order.
    """
    with opening("ONNX", path, ModelError):
        model = onnx.load(str(path), load_external_data=False)
        references = list(_external_references(model))  # refuses offsets that are no numbers
    files = find_graph_files(path, root, {reference.location for reference in references}, name)
    headers = {file: read_header(file) for file in files.all_paths if file.suffix == ".safetensors"}
    byte_ranges = set()
    for reference in references:
        file, start = files.external[reference.location], reference.offset or 0
        end = start + (reference.length or file.stat().st_size - start)
        byte_ranges.add((reference.location, start, end))
        if file in headers and not any(
            tensor.start <= start and end <= tensor.end for tensor in headers[file]
        ):
            raise ModelError(
                f"{file} has no tensor at byte {start:,}, and {path} takes "
                "weights from there: the two do not belong together; fetch both again"
            )
    graph, tensors = model.graph, [*_tensors(model)]
    precision = _precision(graph, tensors)
    sizes = (math.prod(tensor.dims) for tensor in tensors if tensor.data_type in _FLOATS)
    parameters = sum(size for size in sizes if size > 1)  # single numbers are part of the code
    for tensor in tensors:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = files.target(files.external[entry.value])
    with opening("ONNX", path, ModelError):  # an empty file is a graph without nodes
        point_into(model, path, files.target(path))
    return GraphSource(
        files,
        model.SerializeToString(),
        precision=precision,
        parameters=None if precision.startswith("int") else parameters,
        scales_by_call=any(node.op_type in _SCALED_BY_CALL for node in graph.node),
        size_bytes=path.stat().st_size + sum(end - start for _, start, end in byte_ranges),
    )


# Parts of a graph whose logits have that name; None if it does not show them.


def cut_at_asked(whole: GraphSource) -> GraphSource | None:
    """`gather_asked` of a graph."""
    return _changed(whole, gather_asked(parsed(whole), whole.logits))


def encoder(whole: GraphSource, logits: str) -> GraphSource | None:
    """Up to the `last_state` of a graph."""
    model = parsed(whole)
    value = last_state(model, logits)
    return _changed(whole, with_outputs(model, [value]) if value else None)


def encoder_layers(whole: GraphSource, logits: str, ids: str) -> GraphSource | None:
    """Up to the outputs of all layers, `layer_values`."""
    model = parsed(whole)
    values = layer_values(model, ids, logits)
    return _changed(whole, with_outputs(model, values) if values else None)


def head(whole: GraphSource, logits: str, value: str, kind: np.dtype) -> GraphSource | None:
    """`head_at_asked` of a graph, for the states of its last layer."""
    number = onnx.helper.np_dtype_to_tensor_dtype(kind)
    return _changed(whole, head_at_asked(parsed(whole), value, number, logits))


def inner_part(whole: GraphSource, logits: str, find: ValueFinder) -> GraphSource:
    """Up to the values that `find` names."""
    model = parsed(whole)
    return _written(whole, with_outputs(model, find(model, logits)))


def _changed(whole: GraphSource, model: ModelProto | None) -> GraphSource | None:
    return None if model is None else _written(whole, model)


def _written(whole: GraphSource, model: ModelProto) -> GraphSource:
    read_as_stored(model)
    return replace(whole, content=model.SerializeToString(), logit_bytes=0)


def tolerance(whole: GraphSource) -> float:
    """Largest difference of a cut graph's logits, relative to the largest logit."""
    graph = parsed(whole).graph
    halves = {tensor.name for tensor in graph.initializer if tensor.data_type in HALVES}
    products = (node for node in graph.node if node.op_type in ("MatMul", "Gemm"))
    in_half = any(not halves.isdisjoint(node.input) for node in products)
    return TOLERANCE["float16" if in_half else "float32"]


def parsed(source: GraphSource) -> ModelProto:
    """A graph without the weights that lie elsewhere."""
    return onnx.load_from_string(source.content)


def self_contained(source: GraphSource) -> ModelProto:
    """A graph with its weights inside."""
    model = parsed(source)
    for tensor in filter(uses_external_data, _tensors(model)):
        reference = ExternalDataInfo(tensor)
        with (source.files.folder / reference.location).open("rb") as file:
            file.seek(reference.offset or 0)
            tensor.raw_data = file.read(reference.length or -1)
        del tensor.external_data[:]
        tensor.ClearField("data_location")
    return model


def reads_types_as_words(source: GraphSource, inputs: Mapping[str, tuple[str, Any]]) -> bool:
    """Whether token types are looked up in the table of the words; `inputs`: name -> role, type."""
    roles = {name: role for name, (role, _) in inputs.items()}  # also of values made of inputs
    tables: dict[str, set[str]] = {"input_ids": set(), "token_type_ids": set()}
    for node in parsed(source).graph.node:
        if node.op_type in {*SAME_IDS, "Slice"} and node.input[0] in roles:
            roles.update(dict.fromkeys(node.output, roles[node.input[0]]))
        if node.op_type == "Gather" and (role := roles.get(node.input[1])) in tables:
            tables[role].add(node.input[0])
    return not tables["input_ids"].isdisjoint(tables["token_type_ids"])


def graph_facts(source: GraphSource) -> GraphFacts:
    """What a graph takes, gives and consists of, its branches, loops and functions included."""
    model = parsed(source)
    nodes = [*_nodes(model.graph.node)]
    for function in model.functions:
        nodes += _nodes(function.node)
    packed = {}  # constants that hold several numbers in a byte -> how many
    for node in nodes:
        if node.op_type in _BLOCK_OPS:
            weights = node.input[1] if node.op_type == "MatMulNBits" else node.input[0]
            packed[weights] = 8 // int(attributes_of(node).get("bits", 4))
    stored = quantized = 0
    for tensor in _tensors(model):
        numbers = math.prod(tensor.dims) * packed.get(tensor.name, 1)
        if tensor.data_type in _FLOATS and numbers > 1:
            stored += numbers
        elif tensor.data_type in (*_BYTES, *_HALF_BYTES) and numbers > 1:
            stored, quantized = stored + numbers, quantized + numbers
    counts = Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in nodes)
    return GraphFacts(
        inputs=tuple(map(_graph_value, model.graph.input)),
        outputs=tuple(map(_graph_value, model.graph.output)),
        opsets={entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        operators=dict(counts.most_common()),
        stored_numbers=stored,
        quantized_numbers=quantized,
    )


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Operators, those of branches and loops too."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner.node)


def _graph_value(value: onnx.ValueInfoProto) -> GraphValue:
    tensor = value.type.tensor_type
    name = TensorProto.DataType.Name(tensor.elem_type).lower()
    sizes = tuple(
        size.dim_value if size.HasField("dim_value") else size.dim_param or None
        for size in tensor.shape.dim
    )
    return GraphValue(value.name, {"float": "float32"}.get(name, name), sizes)


def external_locations(path: Path) -> set[str]:
    """Where an ONNX file says that its weights lie, relative to its own folder."""
    with opening("ONNX", path, ModelError):
        model = onnx.load(str(path), load_external_data=False)
        return {reference.location for reference in _external_references(model)}


def _external_references(model: ModelProto) -> Iterator[ExternalDataInfo]:
    return map(ExternalDataInfo, filter(uses_external_data, _tensors(model)))


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    """All constants of a model, those of its functions too."""
    yield from _constants(model.graph)
    for function in model.functions:
        yield from _in_attributes(function.node)


def _constants(graph: GraphProto) -> Iterator[TensorProto]:
    """All constants of a graph, those of branches and loops too."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _in_attributes(graph.node)


def _in_attributes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    """The constants in the attributes of nodes; attributes that are not set are empty."""
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            for inner in (attribute.g, *attribute.graphs):
                yield from _constants(inner)


def _precision(graph: GraphProto, tensors: Iterable[TensorProto]) -> str:
    """The type of the stored weights; float32 if none has a known type."""
    for node in graph.node:
        if node.op_type in _BLOCK_OPS:
            return f"int{attributes_of(node).get('bits', 4)}"
    sizes: Counter[int] = Counter()
    for tensor in tensors:
        sizes[tensor.data_type] += math.prod(tensor.dims)
    if any(sizes[kind] for kind in _HALF_BYTES):
        return "int4"
    if any(sizes[kind] > 1 for kind in _BYTES):
        return "int8"
    return _FLOATS[max(_FLOATS, key=lambda kind: sizes[kind])]
