"""What identifies a model beyond its name: hash of the weights, versions, CPU features."""

from __future__ import annotations

import hashlib
import importlib
import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path

# Features that choose between kernels with different rounding or saturation.
_FEATURES = (
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512_bf16",
    "avx512_vnni",
    "amx_bf16",
    "amx_int8",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
)
_CPUINFO = Path("/proc/cpuinfo")


def weights_sha256(paths: Iterable[Path]) -> str:
    """Hash of one file, or of the sorted hashes of several.

    Read once per file and process as long as the file does not change.
    """
    states = ((path, path.stat()) for path in paths)
    hashes = sorted(_file_sha256(path, state.st_mtime_ns, state.st_size) for path, state in states)
    if len(hashes) == 1:
        return hashes[0]
    return hashlib.sha256("".join(hashes).encode("ascii")).hexdigest()


@lru_cache(maxsize=256)
def _file_sha256(path: Path, _mtime_ns: int, _size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def total_bytes(paths: Iterable[Path]) -> int:
    """Size of files on disk."""
    return sum(path.stat().st_size for path in paths)


@cache
def cpu_features() -> tuple[str, ...]:
    """What this CPU can do that changes results, in a fixed order.

    Linux tells in /proc/cpuinfo; elsewhere the name of the architecture stands in.
    """
    text = _CPUINFO.read_text(encoding="utf-8", errors="replace") if _CPUINFO.is_file() else ""
    line = re.search(r"^(?:flags|Features)\s*:(.*)", text, re.MULTILINE)
    flags = line[1].split() if line else []
    found = tuple(name for name in _FEATURES if name in flags)
    return found or (platform.machine() or "unknown",)


def versions(*packages: str) -> Mapping[str, str]:
    """Installed versions of packages, this one among them."""
    from fillmask_ui import __version__

    return {"fillmask-ui": __version__, **{name: _version(name) for name in packages}}


def _version(package: str) -> str:
    # Slow to import, and `--help` imports this module.
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # onnxruntime-gpu and the like bring the same module
        return str(importlib.import_module(package).__version__)
