"""What a model may take before work on it begins."""

from __future__ import annotations

import re
from pathlib import Path

from fillmask_ui.errors import ModelError

_MEMINFO = Path("/proc/meminfo")
_GRAPH_BYTES = (1 << 31) - (1 << 20)  # protobuf, in which graphs are written, ends at 2 GiB
_COPIES = 3  # the graph, what a tool makes of it, and the session that checks it


def available_bytes() -> int | None:
    """Memory that can be used without swapping, as Linux tells it; elsewhere None."""
    text = _MEMINFO.read_text(encoding="ascii") if _MEMINFO.is_file() else ""
    found = re.search(r"^MemAvailable:\s*(\d+) kB", text, re.MULTILINE)
    return int(found[1]) << 10 if found else None


def check_memory(name: str, parameters: int | None) -> None:
    """Stop with a ModelError for a model that is too large to be worked on here."""
    full = 4 * (parameters or 0)
    if full > _GRAPH_BYTES:
        raise ModelError(
            f"{name} has {full / 1e9:.1f} GB of weights in float32, and a graph that "
            f"onnxruntime's tools can write holds {_GRAPH_BYTES / 1e9:.1f} GB at most: take a "
            "smaller model"
        )
    wanted, available = _COPIES * full, available_bytes()
    if available is not None and wanted > available:
        raise ModelError(
            f"{name} needs about {wanted / 1e9:.1f} GB of memory while it is worked on, and "
            f"{available / 1e9:.1f} GB are free: close other programs, or take a machine with more"
        )
