"""Files of weights: hash, size, precision, and whether they fit their config."""

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open

from fillmask_ui.errors import ModelError, opening

# Types of safetensors -> as signatures call them.
_FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_NAMES = _FLOATS | {"F8_E4M3": "float8", "F8_E5M2": "float8", "I8": "int8", "U8": "int8"}


def weights_sha256(paths: Iterable[Path]) -> str:
    """Hash of one file, or of the sorted hashes of several."""
    states = [(path, path.stat()) for path in paths]
    hashes = sorted(_file_sha256(path, state.st_mtime_ns, state.st_size) for path, state in states)
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


@lru_cache(maxsize=256)
def _file_sha256(path: Path, _mtime_ns: int, _size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Tensor(NamedTuple):
    """One entry in the header of a safetensors file."""

    start: int  # its first byte in the file
    end: int
    name: str
    kind: str  # `F16`, `I8`, ...
    shape: tuple[int, ...]


def read_header(path: Path) -> list[Tensor]:
    """The tensors of a safetensors file, in the order of their bytes."""
    # `safe_open` checks the header, but does not say where the bytes of a tensor are.
    with opening("a model", path, ModelError), safe_open(path, "numpy"), path.open("rb") as file:
        content = file.read(int.from_bytes(file.read(8), "little"))
        header, first = json.loads(content), 8 + len(content)
    header.pop("__metadata__", None)
    tensors = []
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        tensors.append(Tensor(first + start, first + end, name, entry["dtype"], shape))
    return sorted(tensors)


def tensor_names(paths: Iterable[Path]) -> list[str]:
    """Names of the tensors in some safetensors files."""
    return [tensor.name for path in paths for tensor in read_header(path)]


def stored_precision(paths: Iterable[Path]) -> str:
    """The type of most weights; float32 if none has a known type."""
    sizes = Counter[str]()
    for path in paths:
        for tensor in read_header(path):
            if tensor.kind in _NAMES:
                sizes[_NAMES[tensor.kind]] += math.prod(tensor.shape)
    return max(sizes, key=lambda kind: sizes[kind], default="float32")


def refuse_unlike(name: str, model: Any, info: Mapping[str, Any]) -> None:
    """A ModelError if a model of transformers does not compute what its weights were made for.

    Those are weights of other shapes than config.json says, or of parts that the model does not
    have. `info` is the loading report.
    """
    for tensor, stored, expected in info["mismatched_keys"]:
        raise ModelError(
            f"the weights of {name} do not have the shapes of its config.json, such as {tensor}: "
            f"{list(stored)}, expected {list(expected)}; fetch both from the same repository"
        )
    if unused := _unused(model, sorted(info["unexpected_keys"])):
        raise ModelError(
            f"{name} has {len(unused)} weights that a {type(model).__name__} does not use, such as "
            f"{', '.join(unused[:3])}: its answers would be those of another model. Check "
            "config.json, such as its number of layers, or choose a model that this version of "
            "transformers computes in full"
        )
    positions = getattr(model.config.get_text_config(), "position_embedding_type", None)
    has_rotary = any("rotary" in name for name, _ in model.named_modules())
    if positions not in (None, "absolute") and not has_rotary:
        raise ModelError(
            f'config.json of {name} asks for "position_embedding_type": "{positions}", which a '
            f"{type(model).__name__} of this version of transformers does not compute: its answers "
            "would be those of another model; choose a model with absolute positions"
        )


def _unused(model: Any, unexpected: Iterable[str]) -> list[str]:
    """Those unexpected tensors that belong to the encoder or to the masked-LM head."""
    modules: dict[str, list[str]] = {}  # paths of all modules with weights, by their first part
    for tensor in model.state_dict():
        path = tensor.split(".")[:-1]
        modules.setdefault(path[0] if path else "", []).append("/".join(path))
    # In BERT's `cls` there are several heads, of which `cls.predictions` is in use.
    roots = tuple(f"{os.path.commonpath(paths)}/" for top, paths in modules.items() if top)
    # What is computed from the config alone was stored by earlier versions.
    computed = {"position_ids"} | {buffer.split(".")[-1] for buffer, _ in model.named_buffers()}
    if not getattr(model.config, "position_biased_input", True):
        computed.add("position_embeddings")  # of DeBERTa: absolute ones, stored but not read
    unused = []
    for tensor in unexpected:
        path = tensor.split(".")
        if path[0] not in modules and hasattr(model.base_model, path[0]):
            path = [model.base_model_prefix, *path]  # stored as the encoder alone
        is_inside = "/".join(path).startswith(roots)
        if is_inside and "pooler" not in path and computed.isdisjoint(path[-2:]):
            unused.append(tensor)
    return unused


def refuse_missing(
    name: str, kind: str, missing: Sequence[str], stored: Iterable[str] = ()
) -> None:
    """A ModelError if weights of a class are missing, which transformers draws at random.

    `stored` are the names of those in the files.
    """
    if not missing:
        return
    if any(tensor.startswith("lm_predictions.") for tensor in stored):
        raise ModelError(
            f"the masked-LM head of {name} has DeBERTa's own layout, lm_predictions: write "
            '"legacy": false into its config.json'
        )
    raise ModelError(
        f"{name} lacks {len(missing)} weights of a {kind}, such as {', '.join(missing[:3])}: "
        "without them its answers would be random numbers; choose a checkpoint with its "
        "masked-LM head, or train one: fillmask-ui train --init"
    )
