"""Which models are at hand without network."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.assets import asset
from fillmask_ui.models.reference import onnx_names


@dataclass(frozen=True)
class AvailableModel:
    """A model that loads without network.

    Attributes:
        reference: what to give to `load_model`.
        runtimes: `onnx`, `torch` or both, the default first.
        size_bytes: of its weights on disk.
        where: `embedded` or `local cache`.
        note: what a reader should know; "" for nothing.
    """

    reference: str
    runtimes: tuple[str, ...]
    size_bytes: int
    where: str
    note: str = ""


def available_models() -> tuple[AvailableModel, ...]:
    """The embedded models, then those in the Hugging Face cache by name.

    >>> [model.reference for model in available_models()][:3]
    ['embedded', 'embedded:int8', 'embedded:torch']
    """
    from fillmask_ui.models.hub import cached_models

    cached = []
    for model in cached_models():
        has_weights = bool(list(model.folder.glob("*.safetensors")))
        runtimes = (
            *(("onnx",) if onnx_names(model.folder) else ()),
            *(("torch",) if has_weights else ()),
        )
        cached.append(
            AvailableModel(
                model.reference,
                runtimes,
                model.size_bytes,
                "local cache",
                "" if "onnx" in runtimes else _torch_note(),
            )
        )
    return (*_embedded(), *cached)


def _embedded() -> tuple[AvailableModel, ...]:
    from fillmask_ui.models.graph import read_graph

    folder = asset("model")
    weights, graph = folder / "model.safetensors", folder / "onnx" / "model.onnx"
    small = folder / "onnx" / "model_int8.onnx"
    return (
        AvailableModel(
            "embedded", ("onnx", "torch"), _size(weights, graph), "embedded", "full precision"
        ),
        AvailableModel(
            "embedded:int8",
            ("onnx",),
            _size(*read_graph(small, folder, "embedded:int8").files),
            "embedded",
            "smaller and faster; its numbers differ a little and may depend on the CPU",
        ),
        AvailableModel(
            "embedded:torch",
            ("torch",),
            _size(weights),
            "embedded",
            _torch_note() or "the same weights on PyTorch",
        ),
    )


def _size(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


def _torch_note() -> str:
    if importlib.util.find_spec("torch") is not None:
        return ""
    return "needs PyTorch: pip install 'fillmask-ui[torch]'"
