"""What an ONNX file says about itself before it runs; the only file here that imports onnx."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from fillmask_ui.errors import ModelError, opening
from fillmask_ui.models.onnx_files import GraphSource, Homes, find_homes
from fillmask_ui.models.runtime_model import TOLERANCE
from fillmask_ui.models.weights import read_header
from fillmask_ui.onnx_tools.asked_positions import gather_asked, last_state
from fillmask_ui.onnx_tools.external_weights import point_into
from fillmask_ui.onnx_tools.graph_edits import read_as_stored, with_outputs
from fillmask_ui.onnx_tools.layers import head_at_asked, layer_values

_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
_BYTES = (2, 3, 17, 18, 19, 20)  # (u)int8 and the float8 types
_HALF_BYTES = (21, 22)  # (u)int4
_BLOCK_OPS = ("MatMulNBits", "GatherBlockQuantized")  # several weights in a byte
_SCALED_BY_CALL = ("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QAttention")


@dataclass(frozen=True, eq=False)
class ParsedGraph:
    """An ONNX file of a model."""

    model: ModelProto  # without weights that lie elsewhere; changed by `source`
    homes: Homes

    @cached_property
    def size_bytes(self) -> int:
        """Of the file and of what it refers to in others, each piece once."""
        outside = sum(length for _, _, length in _pieces(self.model, self.homes.others))
        return self.homes.path.stat().st_size + outside

    @cached_property
    def source(self) -> GraphSource:
        """The graph with its large weights elsewhere, relative to the folder of all files."""
        graph, homes = self.model.graph, self.homes
        tensors = list(_tensors(graph))
        precision, size_bytes = _precision(graph, tensors), self.size_bytes
        sizes = (math.prod(tensor.dims) for tensor in tensors if tensor.data_type in _FLOATS)
        parameters = sum(size for size in sizes if size > 1)  # single numbers are part of the code
        for tensor in tensors:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = homes.target(homes.others[entry.value])
        with opening("ONNX", homes.path):  # an empty file is a graph without nodes
            point_into(self.model, homes.path, homes.target(homes.path))
        return GraphSource(
            files=homes.files,
            content=self.model.SerializeToString(),
            weights_folder=homes.folder,
            precision=precision,
            parameters=None if precision.startswith("int") else parameters,
            scales_by_call=any(node.op_type in _SCALED_BY_CALL for node in graph.node),
            size_bytes=size_bytes,
        )

    @property
    def tolerance(self) -> float:
        """Largest difference of a cut graph's logits, relative to the largest logit."""
        kinds = {tensor.name: tensor.data_type for tensor in self.model.graph.initializer}
        halves = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
        products = (node for node in self.model.graph.node if node.op_type in ("MatMul", "Gemm"))
        in_half = any(kinds.get(name) in halves for node in products for name in node.input)
        return TOLERANCE["float16" if in_half else "float32"]

    def cut(self, whole: GraphSource) -> GraphSource | None:
        """`gather_asked` of a source with known logits."""
        return _rewritten(whole, gather_asked(self.model, whole.logits))

    def states(self, known: GraphSource) -> GraphSource | None:
        """The output `last_state` of a source with known logits."""
        value = last_state(self.model, known.logits)
        return _rewritten(self.source, with_outputs(self.model, [value]) if value else None)

    def layers(self, known: GraphSource, ids: str) -> GraphSource | None:
        """The outputs of all layers, `layer_values`, of a source with known logits."""
        values = layer_values(self.model, ids, known.logits)
        return _rewritten(self.source, with_outputs(self.model, values) if values else None)

    def head(self, known: GraphSource, value: str, kind: np.dtype) -> GraphSource | None:
        """`head_at_asked` of a source with known logits, for the states of its last layer."""
        own = head_at_asked(
            self.model, value, onnx.helper.np_dtype_to_tensor_dtype(kind), known.logits
        )
        return _rewritten(self.source, own)


def _rewritten(whole: GraphSource, model: ModelProto | None) -> GraphSource | None:
    if model is None:
        return None
    read_as_stored(model)
    return replace(whole, content=model.SerializeToString(), logit_bytes=0)


def self_contained(source: GraphSource) -> bytes:
    """A graph with its weights inside, for runtimes that read one file."""
    model = onnx.load_from_string(source.content)
    for tensor in filter(uses_external_data, _tensors(model.graph)):
        own = ExternalDataInfo(tensor)
        with (source.weights_folder / own.location).open("rb") as file:
            file.seek(own.offset or 0)
            tensor.raw_data = file.read(own.length or -1)
        del tensor.external_data[:]
        tensor.data_location = TensorProto.DEFAULT
    return model.SerializeToString()


def read_graph(path: Path, root: Path, name: str) -> ParsedGraph:
    """Look into an ONNX file of a model, whose weights must be in the folder `root`.

    Raises:
        ModelError: if it cannot be read, or takes weights from outside the folder, or from a
            safetensors file that was written anew in another order.
    """
    with opening("ONNX", path):
        model = onnx.load(str(path), load_external_data=False)
        locations = {own.location for own in _outside(model)}  # refuses offsets that are no numbers
    homes = find_homes(path, root, locations, name)
    tensors = {
        location: read_header(home)
        for location, home in homes.others.items()
        if home.suffix == ".safetensors"
    }
    for location, offset, length in _pieces(model, homes.others):
        end, known = offset + length, tensors.get(location)
        if known and not any(own.start <= offset and end <= own.end for own in known):
            raise ModelError(
                f"{homes.others[location]} has no tensor at byte {offset:,}, and {path} takes "
                "weights from there: the two do not belong together; fetch both again"
            )
    return ParsedGraph(model, homes)


def external_locations(path: Path) -> set[str]:
    """Where an ONNX file says that its weights lie, relative to its own folder."""
    with opening("ONNX", path):
        model = onnx.load(str(path), load_external_data=False)
        return {own.location for own in _outside(model)}


def _pieces(model: ModelProto, homes: Mapping[str, Path]) -> set[tuple[str, int, int]]:
    """Location, first byte and length of what other files hold of a graph, each piece once."""
    pieces = set()
    for own in _outside(model):
        offset = own.offset or 0
        length = own.length or homes[own.location].stat().st_size - offset
        pieces.add((own.location, offset, length))
    return pieces


def _outside(model: ModelProto) -> Iterator[ExternalDataInfo]:
    return map(ExternalDataInfo, filter(uses_external_data, _tensors(model.graph)))


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """All constants of a graph, those of branches and loops too."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (attribute.g, *attribute.graphs):  # empty if there is none
                yield from _tensors(inner)


def _precision(graph: GraphProto, tensors: Iterable[TensorProto]) -> str:
    """The type of the stored weights; float32 if none has a known type."""
    for node in graph.node:
        if node.op_type in _BLOCK_OPS:
            return f"int{next((own.i for own in node.attribute if own.name == 'bits'), 4)}"
    sizes: Counter[int] = Counter()
    for tensor in tensors:
        sizes[tensor.data_type] += math.prod(tensor.dims)
    if any(sizes[kind] for kind in _HALF_BYTES):
        return "int4"
    if any(sizes[kind] > 1 for kind in _BYTES):
        return "int8"
    return _FLOATS[max(_FLOATS, key=lambda kind: sizes[kind])]
