"""What an ONNX file says about itself before it runs; the only file here that imports onnx.

Weights may lie outside the graph's own file ("external data"). ONNX Runtime refuses those outside
the directory of the graph. In a model folder the graph may lie in `onnx/` and share the weights
of `model.safetensors` one level up: then the locations are rewritten relative to the folder, and
the graph is handed over as bytes. Nothing outside the folder is ever read.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, TensorProto

from fillmask_ui.errors import ModelError, first_line

_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
_BYTES = (2, 3, 17, 18, 19, 20)  # (u)int8 and the float8 kinds
_QUARTERS = (21, 22)  # (u)int4
_BLOCK_OPS = ("MatMulNBits", "GatherBlockQuantized")  # several weights in a byte
_QUANTIZED_OPS = re.compile(
    r"DequantizeLinear|DynamicQuantize(Linear|MatMul)|MatMulInteger(ToFloat)?"
    r"|Q(Attention|Gemm|LinearMatMul)"
)
# The hub's client puts a file of this name into the store that repositories of its cache share.
_STORE_MARK = ".huggingface-shared-blobs"


@dataclass(frozen=True)
class GraphSource:
    """An ONNX file, ready to be opened."""

    files: tuple[Path, ...]  # the file, then all others that hold its weights
    precision: str  # `float32`, `float16`, `bfloat16`, `int8` or `int4`, of the stored weights
    parameters: int | None  # number of weights; None for quantized graphs, where scales mix in
    content: bytes | None = None  # the graph, where it must not be opened by path
    weights_folder: Path | None = None  # what external locations in `content` are relative to


def read_graph(path: Path, root: Path, name: str) -> GraphSource:
    """Look into an ONNX file of a model, whose weights must be there and in the folder `root`."""
    model = _parse(path)
    tensors = list(_tensors(model.graph))
    external = [tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL]
    homes = {loc: _inside(path, root, loc, name) for loc in set(map(_location, external))}
    precision = _precision(model.graph, tensors)
    sizes = (math.prod(tensor.dims) for tensor in tensors if tensor.data_type in _FLOATS)
    parameters = sum(size for size in sizes if size > 1)  # single numbers are part of the code
    source = GraphSource(
        files=(path, *sorted(set(homes.values()))),
        precision=precision,
        parameters=None if precision.startswith("int") else parameters,
    )
    if not any(".." in Path(loc).parts or home.is_symlink() for loc, home in homes.items()):
        return source
    # ONNX Runtime follows links before it checks that a location is below the folder.
    real = {location: home.resolve() for location, home in homes.items()}
    folder = Path(os.path.commonpath([home.parent for home in real.values()]))
    for tensor in external:
        target = real[_location(tensor)].relative_to(folder).as_posix()
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = target
    return replace(source, content=model.SerializeToString(), weights_folder=folder)


def external_locations(path: Path) -> set[str]:
    """Where an ONNX file says that its weights lie, relative to its own folder."""
    tensors = _tensors(_parse(path).graph)
    return {_location(t) for t in tensors if t.data_location == TensorProto.EXTERNAL}


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


def _location(tensor: TensorProto) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _inside(path: Path, root: Path, location: str, name: str) -> Path:
    """Where an external location lies, if that is inside the model's folder."""
    relative = PurePosixPath(location.replace("\\", "/"))
    target, base = _without_dots(path.parent / relative), _without_dots(root)
    if (
        not location
        or relative.is_absolute()
        or not target.is_relative_to(base)
        or not (target.resolve().is_relative_to(base.resolve()) or _is_hub_blob(target, base))
    ):
        raise ModelError(
            f"{path} takes its weights from {location!r}, outside the folder of {name}: that is "
            "never read; put the weights into the model's folder and export again"
        )
    if not target.is_file():
        raise ModelError(
            f"{path} takes its weights from {location!r}, and that file is missing: copy it "
            f"together with the .onnx, into {target.parent}"
        )
    return root / target.relative_to(base)


def _without_dots(path: Path) -> Path:
    """The absolute path, `..` taken out by the names alone, before any link is followed."""
    return Path(os.path.normpath(path.absolute()))


def _is_hub_blob(path: Path, folder: Path) -> bool:
    """Whether a file of a snapshot in the hub's cache is kept where the client keeps it.

    That is in `blobs/` beside `snapshots/`. Newer clients keep one copy for all repositories in a
    marked store of the cache; what lies in `blobs/` is then itself a link.
    """
    if folder.parent.name != "snapshots":
        return False
    repository = folder.parent.parent
    blobs, store = repository / "blobs", repository.parent / "blobs"
    real = path.resolve()
    if real.is_relative_to(blobs.resolve()):
        return True
    if not path.is_symlink() or not (store / _STORE_MARK).is_file():
        return False
    first = _without_dots(path.parent / path.readlink())
    return first.parent.resolve() == blobs.resolve() and real.is_relative_to(store.resolve())


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
