"""Where the weights of an ONNX file lie, and the graph as it is handed to ONNX Runtime.

Weights may lie outside the graph's own file ("external data"), such as in the `model.safetensors`
one level above `onnx/`. ONNX Runtime refuses those outside the directory of the graph, so it gets
the graph as bytes, with locations relative to a folder. Nothing outside the model's folder is ever
read.

A graph that was cut down to the asked positions is kept in the user's cache, without its weights,
which stay where they are; a model that was loaded once loads again without being parsed.
"""

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, ModelError, opening
from fillmask_ui.files import finished_file, user_folder
from fillmask_ui.models.weights import tensor_ranges, weights_sha256

# The hub's client puts a file of this name into the store that repositories of its cache share.
_STORE_MARK = ".huggingface-shared-blobs"
_CUT_VERSION = "4"  # raised when graphs are cut or kept in another way
_KEPT = ("precision", "parameters", "scales_by_call", "size_bytes", "logits", "width")


@dataclass(frozen=True)
class GraphSource:
    """An ONNX graph, ready to be opened."""

    files: tuple[Path, ...]  # the file, then all others that hold its weights
    content: bytes
    weights_folder: Path  # what external locations in `content` are relative to
    precision: str  # `float32`, `float16`, `bfloat16`, `int8` or `int4`, of the stored weights
    parameters: int | None  # number of weights; None for quantized graphs, where scales mix in
    scales_by_call: bool  # whether activations are quantized by what happens to be in a call
    size_bytes: int  # of the file, and of what it refers to in others
    logits: str = ""  # what the file calls the output with the logits, once that is known
    width: int = 0  # V, once that is known
    logit_bytes: int = 0  # of one logit, where those of all positions are computed


@dataclass(frozen=True)
class Homes:
    """The files that hold a graph's weights."""

    path: Path  # the graph's own file
    others: Mapping[str, Path]  # location of external data, as the graph says it -> the file
    folder: Path  # that all of them are in, links followed

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path, *sorted(set(self.others.values())))

    def target(self, home: Path) -> str:
        """A file's path in `folder`."""
        return home.resolve().relative_to(self.folder).as_posix()

    def layout(self) -> dict[str, Any]:
        """Of each file the path in `folder`, bytes, a checksum of where its tensors lie."""
        homes = {"": self.path, **self.others}
        sums = {key: zlib.crc32(repr(tensors_in(home)).encode()) for key, home in homes.items()}
        return {
            key: [self.target(home), home.stat().st_size, sums[key]] for key, home in homes.items()
        }


def tensors_in(path: Path) -> list[tuple[int, int]]:
    """First byte and end of each tensor in a safetensors file; nothing of files of other kinds."""
    return tensor_ranges(path) if path.suffix == ".safetensors" else []


def find_homes(path: Path, root: Path, locations: Iterable[str], name: str) -> Homes:
    """Where the external locations of a graph lie, all inside the model's folder `root`."""
    others = {location: _inside(path, root, location, name) for location in sorted(locations)}
    # ONNX Runtime follows links before it checks that a location is below the folder.
    parents = [home.resolve().parent for home in (path, *others.values())]
    return Homes(path, others, Path(os.path.commonpath(parents)))


def read_cut(path: Path, root: Path, name: str, key: tuple[str, ...]) -> GraphSource | None:
    """The cut graph of an ONNX file from the cache, None if there is none that fits.

    `key` is what else shapes it: versions and options of the runtime.
    """
    entry = read_entry(weights_sha256([path]), *key)
    if entry is None:
        return None
    header, _, content = entry.partition(b"\n")
    known = json.loads(header)
    layout = known.pop("layout")
    homes = find_homes(path, root, filter(None, layout), name)
    # The same graph, its weights under other names or at other places.
    if homes.layout() != layout:
        return None
    return GraphSource(homes.files, content, homes.folder, **known)


def keep_cut(source: GraphSource, homes: Homes, key: tuple[str, ...]) -> None:
    """Put a cut graph into the cache."""
    header = {name: getattr(source, name) for name in _KEPT} | {"layout": homes.layout()}
    entry = json.dumps(header).encode() + b"\n" + source.content
    write_entry(entry, weights_sha256([homes.path]), *key)


def read_entry(*key: str) -> bytes | None:
    """What the user's cache holds under a key; None for nothing, or for a torn file."""
    try:
        stored = _entry_path(key).read_bytes()
    except (OSError, DataError):
        return None
    digest, content = stored[:32], stored[32:]
    return content if hashlib.sha256(content).digest() == digest else None


def write_entry(content: bytes, *key: str) -> None:
    """Keep something, if the cache folder can be written."""
    with contextlib.suppress(OSError, DataError):
        path = _entry_path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with finished_file(path) as draft:
            draft.write_bytes(hashlib.sha256(content).digest() + content)


def _entry_path(key: tuple[str, ...]) -> Path:
    name = hashlib.sha256("\0".join((_CUT_VERSION, *key)).encode()).hexdigest()[:32]
    return user_folder("cache") / "graphs" / name


def _inside(path: Path, root: Path, location: str, name: str) -> Path:
    """Where an external location lies, if that is inside the model's folder."""
    # `..` is taken out by the names alone, before any link is followed.
    base = Path(os.path.normpath(root.absolute()))
    target = Path(os.path.normpath(path.parent.absolute() / location.replace("\\", "/")))
    if target.is_relative_to(base):
        with opening("a model", target):
            target.stat()
            real = target.resolve()
        if real.is_relative_to(base.resolve()) or _is_hub_blob(target, base):
            return root / target.relative_to(base)
    raise ModelError(
        f"{path} takes its weights from {location!r}, outside the folder of {name}: that is "
        "never read; put the weights themselves into the model's folder"
    )


def _is_hub_blob(path: Path, folder: Path) -> bool:
    """Whether a file of a snapshot in the hub's cache is where the client keeps it.

    That is in `blobs/` beside `snapshots/`; what lies there may be a link into a marked store that
    all repositories share.
    """
    if folder.parent.name != "snapshots":
        return False
    repository = folder.parent.parent
    own, store = repository / "blobs", repository.parent / "blobs"
    real = path.resolve()
    if real.is_relative_to(own.resolve()):
        return True
    if not path.is_symlink() or not (store / _STORE_MARK).is_file():
        return False
    first = Path(os.path.normpath(path.parent.absolute() / path.readlink()))
    return first.parent.resolve() == own.resolve() and real.is_relative_to(store.resolve())
