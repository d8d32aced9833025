"""Where the weights of an ONNX file lie, and the graph as it is handed to ONNX Runtime.

Weights may lie outside the graph's own file ("external data"), also one folder up.
ONNX Runtime refuses those outside the directory of the graph, so it gets the graph as bytes, with
locations relative to a folder. Nothing outside the model's folder is read.

A graph cut to the asked positions is kept in the user's cache, without its weights, so that the
next load neither parses the file nor imports onnx.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, ModelError
from fillmask_ui.files import finished_file, user_folder
from fillmask_ui.models.model_files import is_inside, refuse_pointer
from fillmask_ui.models.weights import weights_sha256

_CUT_VERSION = "7"  # raised when graphs are cut or stored in another way


@dataclass(frozen=True)
class GraphFiles:
    """The files that hold a graph's weights."""

    path: Path  # the graph's own file
    external: Mapping[str, Path]  # location of external data, as the graph says it -> the file
    folder: Path  # that all of them are in, links followed

    @property
    def all_paths(self) -> tuple[Path, ...]:
        return (self.path, *sorted(set(self.external.values())))

    def target(self, path: Path) -> str:
        """A file's path relative to `folder`."""
        return path.resolve().relative_to(self.folder).as_posix()

    def state(self) -> dict[str, list[Any]]:
        """Location -> path in `folder`, size and time of the last change; "" for the graph."""
        states = {}
        for location, path in {"": self.path, **self.external}.items():
            stat = path.stat()
            states[location] = [self.target(path), stat.st_size, stat.st_mtime_ns]
        return states


@dataclass(frozen=True)
class GraphSource:
    """An ONNX graph, ready to be opened."""

    files: GraphFiles
    content: bytes  # external locations in it are relative to the folder of `files`
    precision: str  # `float32`, `float16`, `bfloat16`, `int8` or `int4`, of the stored weights
    parameters: int | None  # number of weights; None for quantized graphs, where scales mix in
    scales_by_call: bool  # whether the scales of activations depend on all that is in a call
    size_bytes: int  # of the file, and of what it refers to in others
    logits: str = ""  # name of the output with the logits, once known
    width: int = 0  # V, once known
    sharing: str = ""  # which texts share a call, a key of `runtime_model.SHARING`, once known
    logit_bytes: int = 0  # of one logit, where those of all positions are computed


@dataclass(frozen=True)
class GraphValue:
    """An input or output of a graph."""

    name: str
    type: str  # of its numbers, such as `int64`
    shape: tuple[int | str | None, ...]  # sizes, names of sizes, or None for any


@dataclass(frozen=True)
class GraphFacts:
    """An ONNX graph without its numbers."""

    inputs: tuple[GraphValue, ...]
    outputs: tuple[GraphValue, ...]
    opsets: Mapping[str, int]  # domain, `ai.onnx` for the standard's -> version
    operators: Mapping[str, int]  # name, behind its domain if it has one -> count; most first
    stored_numbers: int  # weights, scales and other constants of more than one number
    quantized_numbers: int  # of these, stored in 8 bits or fewer

    @property
    def quantized_share(self) -> float:
        """In [0, 1], of the stored numbers."""
        return self.quantized_numbers / self.stored_numbers if self.stored_numbers else 0.0


@dataclass(frozen=True)
class PortableGraph:
    """A graph for another runtime, and how it is called."""

    content: bytes  # the ONNX file, its weights inside
    inputs: dict[str, tuple[str, str]]  # name -> role, `input_ids` or the like, and type
    output: str  # logits, [M, V] of a cut graph, else [B, T, V]
    is_cut: bool  # whether it also takes the asked positions, int64 [M], counted in [B * T]
    first_position: int | None  # where positions of a text begin; None for 0


def find_graph_files(path: Path, root: Path, locations: Iterable[str], name: str) -> GraphFiles:
    """Where the external locations of a graph lie, all inside the model's folder `root`."""
    external = {
        location: _external_path(path, root, location, name) for location in sorted(locations)
    }
    # ONNX Runtime follows links before it checks that a location is below the folder.
    parents = [file.resolve().parent for file in (path, *external.values())]
    return GraphFiles(path, external, Path(os.path.commonpath(parents)))


def read_cut(path: Path, root: Path, name: str, key: tuple[str, ...]) -> GraphSource | None:
    """The cached cut graph of an ONNX file, its weights and a runtime with its options, `key`."""
    try:
        stored = _cut_path(path, key).read_bytes()
    except (OSError, DataError):
        return None
    digest, entry = stored[:32], stored[32:]
    if hashlib.sha256(entry).digest() != digest:  # half written when the power failed
        return None
    header, _, content = entry.partition(b"\n")
    values = json.loads(header)
    state = values.pop("state")
    files = find_graph_files(path, root, filter(None, state), name)
    if files.state() != state:
        return None
    return GraphSource(files, content, **values)


def store_cut(source: GraphSource, key: tuple[str, ...]) -> None:
    """Put a cut graph into the user's cache, if that can be written."""
    header: dict[str, Any] = {"state": source.files.state()}
    for field in fields(source):
        if field.name not in ("files", "content"):
            header[field.name] = getattr(source, field.name)
    entry = json.dumps(header).encode() + b"\n" + source.content
    with suppress(OSError, DataError):
        path = _cut_path(source.files.path, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with finished_file(path) as draft:
            draft.write_bytes(hashlib.sha256(entry).digest() + entry)


def _cut_path(graph: Path, key: tuple[str, ...]) -> Path:
    parts = (_CUT_VERSION, weights_sha256([graph]), *key)
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return user_folder("cache") / "graphs" / name


def _external_path(path: Path, root: Path, location: str, name: str) -> Path:
    """Where an external location lies, if that is inside the model's folder."""
    # `..` is resolved by the names alone, before any link is followed.
    base = Path(os.path.normpath(root.absolute()))
    target = Path(os.path.normpath(path.parent.absolute() / location.replace("\\", "/")))
    if target.is_relative_to(base) and is_inside(target, root):
        refuse_pointer(target)
        return root / target.relative_to(base)
    raise ModelError(
        f"{path} takes its weights from {location!r}, outside the folder of {name}: that is "
        "never read; put the weights themselves into the model's folder"
    )
