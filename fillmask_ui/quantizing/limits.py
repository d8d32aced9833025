"""What a model may take before work on it begins."""

from __future__ import annotations

from fillmask_ui.errors import ModelError

_GRAPH_BYTES = (1 << 31) - (1 << 20)  # protobuf, in which graphs are written, ends at 2 GiB


def check_memory(name: str, parameters: int | None) -> None:
    """Stop with a ModelError for a model that is too large to be worked on here."""
    full = 4 * (parameters or 0)
    if full > _GRAPH_BYTES:
        raise ModelError(
            f"{name} has {full / 1e9:.1f} GB of weights in float32, and a graph that "
            f"onnxruntime's tools can write holds {_GRAPH_BYTES / 1e9:.1f} GB at most: take a "
            "smaller model"
        )
