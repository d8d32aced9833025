"""What an ONNX file says about itself before it runs; the only file here that imports onnx."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from fillmask_ui.errors import ModelError, first_line
from fillmask_ui.models.graph_files import GraphSource, Homes, find_homes
from fillmask_ui.models.runtime import TOLERANCE
from fillmask_ui.models.weights import tensor_ranges
from fillmask_ui.onnx_tools.external import point_into
from fillmask_ui.onnx_tools.gather import AT_ASKED, gather_asked
from fillmask_ui.onnx_tools.states import states_at_asked
from fillmask_ui.onnx_tools.stored import read_as_stored

_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
_BYTES = (2, 3, 17, 18, 19, 20)  # (u)int8 and the float8 kinds
_QUARTERS = (21, 22)  # (u)int4
_BLOCK_OPS = ("MatMulNBits", "GatherBlockQuantized")  # several weights in a byte
_QUANTIZED_OPS = re.compile(
    r"DequantizeLinear|DynamicQuantize(Linear|MatMul)|MatMulInteger(ToFloat)?"
    r"|Q(Attention|Gemm|LinearMatMul)"
)
_OFFSET = re.compile(r"[0-9]{1,19}")  # of 64 bits
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
_SCALED_BY_CALL = ("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QAttention")


@dataclass(frozen=True, eq=False)
class ParsedGraph:
    """An ONNX file of a model, looked into."""

    model: ModelProto  # without weights that lie elsewhere; changed when it is cut
    homes: Homes

    @cached_property
    def source(self) -> GraphSource:
        """The graph as it is, ready to be opened."""
        graph = self.model.graph
        tensors = list(_tensors(graph))
        precision = _precision(graph, tensors)
        sizes = (math.prod(tensor.dims) for tensor in tensors if tensor.data_type in _FLOATS)
        parameters = sum(size for size in sizes if size > 1)  # single numbers are part of the code
        source = GraphSource(
            files=self.homes.files,
            precision=precision,
            parameters=None if precision.startswith("int") else parameters,
            scales_by_call=any(node.op_type in _SCALED_BY_CALL for node in graph.node),
            size_bytes=self.size_bytes,
        )
        if not self.homes.refused:
            return source
        content = self._light.SerializeToString()
        return replace(source, content=content, weights_folder=self.homes.folder)

    @cached_property
    def size_bytes(self) -> int:
        """Of the file and of what it refers to in others, each piece once."""
        pieces, sizes = _pieces(self.model), self.homes.sizes
        outside = sum(own.length or sizes[own.location] - own.offset for own in pieces)
        return self.homes.path.stat().st_size + outside

    @property
    def tolerance(self) -> float:
        """How far logits of a cut graph may be from those of the whole, relative to the largest."""
        kinds = {tensor.name: tensor.data_type for tensor in self.model.graph.initializer}
        halves = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
        products = (node for node in self.model.graph.node if node.op_type in ("MatMul", "Gemm"))
        in_half = any(kinds.get(name) in halves for node in products for name in node.input)
        return TOLERANCE["float16" if in_half else "float32"]

    def cut(self, whole: GraphSource, *, deep: bool) -> GraphSource | None:
        """`onnx_tools.gather.gather_asked`, ready to be opened; its weights stay where they are."""
        cut = gather_asked(self._light, whole.logits, deep=deep)
        return None if cut is None else self._rewritten(cut, whole)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(output.name for output in self.model.graph.output)

    def logits_name(self, source: GraphSource) -> str:
        """What this file calls the logits of a graph that may have been cut out of it."""
        return source.logits.removesuffix(AT_ASKED)

    def states(self, source: GraphSource) -> GraphSource | None:
        """`onnx_tools.states.states_at_asked`, ready to be opened, for one that gives logits."""
        ending = states_at_asked(self._light, self.logits_name(source))
        return None if ending is None else self._rewritten(ending, source)

    def _rewritten(self, model: ModelProto, source: GraphSource) -> GraphSource:
        read_as_stored(model)
        return replace(
            source,
            content=model.SerializeToString(),
            weights_folder=self.homes.folder,
            logits=model.graph.output[0].name,
            logit_bytes=0,
        )

    @cached_property
    def _light(self) -> ModelProto:
        """The graph with all its large weights elsewhere, relative to the folder of all files."""
        targets = self.homes.targets
        for tensor in _tensors(self.model.graph):
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = targets[entry.value]
        point_into(self.model, self.homes.path, targets[""])
        return self.model


@dataclass(frozen=True)
class _Piece:
    """Of a file that holds weights."""

    location: str  # as the graph says it
    offset: int  # bytes from the start of the file
    length: int  # bytes; 0 for all that follow
    is_told: bool = True  # whether both were numbers; else ONNX Runtime refuses the graph


def read_graph(path: Path, root: Path, name: str) -> ParsedGraph:
    """Look into an ONNX file of a model, whose weights must be there and in the folder `root`."""
    model = _parse(path)
    if drawing := _RANDOM.intersection(node.op_type for node in _nodes(model.graph)):
        raise ModelError(
            f"{path} draws random numbers ({', '.join(sorted(drawing))}), so that its answers "
            "differ from call to call: export the model in evaluation mode (model.eval())"
        )
    homes = find_homes(path, root, _locations(model), name)
    _refuse_torn(path, homes, _pieces(model))
    return ParsedGraph(model, homes)


def _refuse_torn(path: Path, homes: Homes, pieces: Iterable[_Piece]) -> None:
    """A `ModelError` for weights beyond the end of a file, or across two tensors of one."""
    ranges: dict[Path, list[tuple[int, int]]] = {}
    for own in pieces:
        home, end = homes.others[own.location], own.offset + own.length
        takes = f"{path} takes weights from it"
        if end > (size := homes.sizes[own.location]):
            raise ModelError(
                f"{home} has {size:,} bytes, and {takes} up to byte {end:,}: it is cut short or of "
                "another model; fetch both again"
            )
        if home.suffix == ".safetensors" and own.length and own.is_told:
            starts = ranges.setdefault(home, tensor_ranges(home))
            place = bisect_right(starts, (own.offset, math.inf)) - 1
            if place < 0 or end > starts[place][1]:
                raise ModelError(
                    f"{home} has no tensor at bytes {own.offset:,} to {end:,}, and {takes} there: "
                    "the two do not belong together; fetch both again"
                )


def external_locations(path: Path) -> set[str]:
    """Where an ONNX file says that its weights lie, relative to its own folder."""
    return _locations(_parse(path))


def _locations(model: ModelProto) -> set[str]:
    return {piece.location for piece in _pieces(model)}


def _parse(path: Path) -> ModelProto:
    try:
        model = onnx.load(str(path), load_external_data=False)
        if not model.graph.node or not model.graph.output:
            raise ValueError("no graph in it")
    except (DecodeError, ValueError, OSError) as error:
        raise ModelError(
            f"{path} cannot be read as ONNX ({first_line(error, 200)}): the file is empty, "
            "damaged, cut short or no ONNX model; fetch or export it again"
        ) from error
    return model


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """All constants of a graph, those of branches and loops too."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (attribute.g, *attribute.graphs):  # empty where there is none
                yield from _tensors(inner)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """All nodes of a graph, those of branches and loops too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):  # empty where there is none
                yield from _nodes(inner)


def _pieces(model: ModelProto) -> set[_Piece]:
    """Of other files, that hold constants of a graph."""
    outside = TensorProto.EXTERNAL
    return {_piece(own) for own in _tensors(model.graph) if own.data_location == outside}


def _piece(tensor: TensorProto) -> _Piece:
    told = {entry.key: entry.value for entry in tensor.external_data}
    said = [told.get(key, "") for key in ("offset", "length")]
    offset, length = (int(own) if _OFFSET.fullmatch(own) else 0 for own in said)
    is_told = all(_OFFSET.fullmatch(own) for own in said if own)
    return _Piece(told.get("location", ""), offset, length, is_told)


def _precision(graph: GraphProto, tensors: Sequence[TensorProto]) -> str:
    """The type of the stored weights; float32 where none is of a known type."""
    for node in graph.node:
        if node.op_type in _BLOCK_OPS:
            return f"int{next((own.i for own in node.attribute if own.name == 'bits'), 4)}"
    sizes: Counter[int] = Counter()
    for tensor in tensors:
        sizes[tensor.data_type] += math.prod(tensor.dims)
    if any(sizes[kind] for kind in _QUARTERS):
        return "int4"
    is_quantized = any(_QUANTIZED_OPS.fullmatch(node.op_type) for node in graph.node)
    if is_quantized and any(sizes[kind] > 1 for kind in _BYTES):
        return "int8"
    return _FLOATS[max(_FLOATS, key=lambda kind: sizes[kind])]
