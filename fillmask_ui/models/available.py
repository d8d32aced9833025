"""Which models are at hand without network."""

from dataclasses import dataclass
from functools import cache

from fillmask_ui.files import asset
from fillmask_ui.models.files import ONNX, has_torch, names_in

# What each embedded variant is loaded from, and the runtimes that load it, the default one first.
_EMBEDDED = {
    "embedded": (("onnx", "torch"), "onnx/model.onnx"),
    "embedded:int8": (("onnx",), "onnx/model_int8.onnx"),
    "embedded:torch": (("torch",), "model.safetensors"),
}
_INT8_NOTE = "smaller and faster; its numbers differ a little and may depend on the CPU"


@dataclass(frozen=True)
class AvailableModel:
    """A model that loads without network."""

    reference: str  # what to give to `load_model`
    runtimes: tuple[str, ...]  # `onnx`, `torch` or both, the default first
    size_bytes: int  # on disk: of the weights that it reads, of a cached one of all its files
    where: str  # `embedded` or `local cache`
    note: str = ""  # what a reader should know; "" for nothing


def available_models() -> tuple[AvailableModel, ...]:
    """The embedded models, then those in the Hugging Face cache by name.

    >>> [model.reference for model in available_models()][:3]
    ['embedded', 'embedded:int8', 'embedded:torch']
    """
    from fillmask_ui.models.hub import cached_models

    torch_note = "" if has_torch() else "needs PyTorch: pip install 'fillmask-ui[torch]'"
    notes = ("float16 weights", _INT8_NOTE, torch_note or "the same weights on PyTorch")
    models = [
        AvailableModel(reference, runtimes, _embedded_bytes(file), "embedded", note)
        for (reference, (runtimes, file)), note in zip(_EMBEDDED.items(), notes, strict=True)
    ]
    for reference, revision in cached_models().items():
        names = names_in(revision.snapshot_path)
        kinds = {"onnx": ".onnx", "torch": ".safetensors"}
        runtimes = tuple(
            own for own, ending in kinds.items() if any(name.endswith(ending) for name in names)
        )
        note = "" if "onnx" in runtimes else torch_note
        size = revision.size_on_disk
        models.append(AvailableModel(reference, runtimes, size, "local cache", note))
    return tuple(models)


@cache
def _embedded_bytes(file: str) -> int:
    """Of the weights that a file of the embedded model holds or refers to."""
    from fillmask_ui.models.graph import read_graph

    folder = asset("model")
    if not ONNX.fullmatch(file):
        return (folder / file).stat().st_size
    return read_graph(folder / file, folder, "embedded").size_bytes
