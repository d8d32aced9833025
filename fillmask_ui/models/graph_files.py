"""Where the weights of an ONNX file lie, and the graph as it is handed to ONNX Runtime.

Weights may lie outside the graph's own file ("external data"). ONNX Runtime refuses those outside
the directory of the graph. In a model folder the graph may lie in `onnx/` and share the weights
of `model.safetensors` one level up: then the locations are rewritten relative to the folder, and
the graph is handed over as bytes. Nothing outside the folder is ever read.

A graph that was cut down to the asked positions is kept in the user's cache, without its weights,
which stay where they are; a model that was loaded once loads again without being parsed.
"""

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fillmask_ui.errors import ModelError
from fillmask_ui.models.cache import read_entry, write_entry
from fillmask_ui.models.weights import header_of, weights_sha256

# The hub's client puts a file of this name into the store that repositories of its cache share.
_STORE_MARK = ".huggingface-shared-blobs"
_CUT_VERSION = "3"  # raised when graphs are cut in another way


@dataclass(frozen=True)
class GraphSource:
    """An ONNX file, ready to be opened."""

    files: tuple[Path, ...]  # the file, then all others that hold its weights
    precision: str  # `float32`, `float16`, `bfloat16`, `int8` or `int4`, of the stored weights
    parameters: int | None  # number of weights; None for quantized graphs, where scales mix in
    scales_by_call: bool  # whether activations are quantized by what happens to be in a call
    size_bytes: int  # of the file, and of what it refers to in others
    content: bytes | None = None  # the graph, where it must not be opened by path
    weights_folder: Path | None = None  # what external locations in `content` are relative to
    single: bool = False  # whether it takes one text at a time without saying so
    logits: str = ""  # name of the output, once that is known: [B, T, V], of a cut graph [M, V]
    width: int = 0  # V, once that is known
    logit_bytes: int = 0  # of one logit, where those of all positions are computed

    @property
    def where(self) -> str:
        """Its files, for messages."""
        return " with ".join(map(str, self.files))


@dataclass(frozen=True)
class Homes:
    """The files that hold a graph's weights."""

    path: Path  # the graph's own file
    others: Mapping[str, Path]  # location of external data, as the graph says it -> the file
    folder: Path  # that all of them are in, links followed

    @property
    def files(self) -> tuple[Path, ...]:
        """The graph's own file, then the others."""
        return (self.path, *sorted(set(self.others.values())))

    @property
    def targets(self) -> dict[str, str]:
        """Each location, "" for the graph's own file -> its path in `folder`."""
        homes = {"": self.path, **self.others}
        return {
            key: home.resolve().relative_to(self.folder).as_posix() for key, home in homes.items()
        }

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of the file at each location."""
        return {location: file.stat().st_size for location, file in self.others.items()}

    @property
    def layout(self) -> dict[str, list[int]]:
        """Of the file at each location its bytes, and a checksum of where its tensors lie."""
        return {
            location: [
                size,
                zlib.crc32(header_of(home)) if home.suffix == ".safetensors" else 0,
            ]
            for (location, home), size in zip(self.others.items(), self.sizes.values(), strict=True)
        }

    @property
    def refused(self) -> bool:
        """Whether ONNX Runtime would not read the locations as they stand in the file."""
        return any(
            ".." in Path(loc).parts or home.is_symlink() for loc, home in self.others.items()
        )


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
    entry = read_entry("graphs", _CUT_VERSION, weights_sha256([path]), *key)
    if entry is None:
        return None
    header, _, content = entry.partition(b"\n")
    known = json.loads(header)
    targets, layout = known.pop("targets"), known.pop("layout")
    homes = find_homes(path, root, [location for location in targets if location], name)
    # The same graph, its weights under other names or at other places.
    if homes.targets != targets or homes.layout != layout:
        return None
    return GraphSource(homes.files, **known, content=content, weights_folder=homes.folder)


def keep_cut(source: GraphSource, homes: Homes, key: tuple[str, ...]) -> None:
    """Put a cut graph into the cache."""
    names = ("precision", "parameters", "scales_by_call", "size_bytes", "single", "logits", "width")
    header = {name: getattr(source, name) for name in names} | {
        "targets": homes.targets,
        "layout": homes.layout,
    }
    entry = json.dumps(header).encode() + b"\n" + (source.content or b"")
    write_entry(entry, "graphs", _CUT_VERSION, weights_sha256([homes.path]), *key)


def _inside(path: Path, root: Path, location: str, name: str) -> Path:
    """Where an external location lies, if that is inside the model's folder."""
    relative = PurePosixPath(location.replace("\\", "/"))
    target, base = _without_dots(path.parent / relative), _without_dots(root)
    try:
        is_inside = (
            location
            and not relative.is_absolute()
            and target.is_relative_to(base)
            and (target.resolve().is_relative_to(base.resolve()) or _is_hub_blob(target, base))
        )
        is_there = target.is_file()
    except (OSError, RuntimeError, ValueError):  # too long, a link to itself, a zero byte
        is_inside, is_there = True, False
    if not is_inside:
        link = ", a link" if location and target.is_symlink() else ""
        raise ModelError(
            f"{path} takes its weights from {location!r}{link}, outside the folder of {name}: that "
            "is never read; put the weights themselves into the model's folder"
        )
    if not is_there:
        raise ModelError(
            f"{path} takes its weights from {location[:200]!r}, and no file is there: copy it "
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
