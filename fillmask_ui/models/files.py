"""Which files make a model: the same names in a folder on disk and in a repository on the hub."""

import importlib.util
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.errors import ModelError, OptionError, opening, unknown

# Known layouts. Names are relative to the root of the folder or repository.
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
ONNX = re.compile(r"(onnx/)?[^/]+\.onnx")
TOKENIZER = re.compile(
    r"(tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json"
    r"|vocab\.(txt|json)|merges\.txt|[^/]+\.model)"
)
TOKENIZER_MARKS = {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json"}
# Variants that `fillmask-ui quantize` writes, nearest to full precision first.
_VARIANTS = [f"onnx/model_{own}.onnx" for own in ("fp16", "qdq", "int8_channel", "int8", "q4")]
_PICKLE = re.compile(r"[^/]+\.(bin|pt|pth|ckpt|pkl|h5|msgpack)")


@dataclass(frozen=True)
class ModelFiles:
    """The files of one model on disk."""

    name: str  # of the model in signatures and messages
    folder: Path  # root that everything lies in; nothing outside is ever read as weights
    weights: tuple[Path, ...]  # the ONNX file, or the safetensors files that PyTorch loads
    tokenizer: Path | None  # folder of the tokenizer, None if it still has to be named
    commit: str = ""  # of the repository, if it came from the hub

    @property
    def runtime(self) -> str:
        """What runs these weights: `onnx` or `torch`."""
        return "onnx" if self.weights[0].suffix == ".onnx" else "torch"


def files_in_folder(
    name: str, folder: Path, runtime: str = "auto", onnx_file: str | None = None
) -> ModelFiles:
    """What a folder in Hugging Face layout holds for a runtime; errors as of `pick_weights`."""
    names = names_in(folder)
    weights = {pick_weights(name, names, runtime, onnx_file)}
    if INDEX in weights:
        weights = index_parts(folder / INDEX)
        if missing := sorted(weights.difference(names)):
            raise ModelError(
                f"{folder / INDEX} names parts that are not in its folder: {', '.join(missing)}"
            )
    paths = tuple(folder / weight for weight in sorted(weights))
    return ModelFiles(name, folder, paths, folder if has_tokenizer(folder) else None)


def names_in(folder: Path) -> list[str]:
    """Files in the root and in `onnx/`, as paths relative to the folder."""
    found = (*folder.glob("*"), *folder.glob("onnx/*"))
    return sorted(path.relative_to(folder).as_posix() for path in found if path.is_file())


def has_tokenizer(folder: Path) -> bool:
    """Whether files of a tokenizer lie in a folder."""
    return any((folder / file).is_file() for file in TOKENIZER_MARKS)


def pick_weights(name: str, names: Sequence[str], runtime: str, onnx_file: str | None) -> str:
    """Which of the files to load: an ONNX file, `model.safetensors`, or the index of its parts.

    The runtime `auto` takes the ONNX file if there is one. `onnx_file` says which of several,
    relative to the root or to `onnx/`. If it is not given: `model.onnx`, the only one, or of the
    variants of `fillmask-ui quantize` the one nearest to full precision.

    Raises:
        ModelError: if there are no weights for the runtime, or only pickles.
        OptionError: if `onnx_file` is not there, or has to be given.

    >>> names = ["model.safetensors", "onnx/model.onnx", "onnx/model_int8.onnx"]
    >>> pick_weights("m", names, "auto", None), pick_weights("m", names, "torch", None)
    ('onnx/model.onnx', 'model.safetensors')
    >>> pick_weights("m", ["onnx/model_int8.onnx", "onnx/model_qdq.onnx"], "auto", None)
    'onnx/model_qdq.onnx'
    """
    graphs = [file for file in names if ONNX.fullmatch(file)]
    safetensors = next((file for file in (WEIGHTS, INDEX) if file in names), None)
    if runtime != "torch" and (graphs or onnx_file is not None):
        stem = "model" if onnx_file is None else onnx_file.removesuffix(".onnx")
        for choice in (f"{stem}.onnx", f"onnx/{stem}.onnx"):
            if choice in graphs:
                return choice
        if onnx_file is not None:
            raise OptionError(unknown(f"ONNX file of {name}", onnx_file, graphs))
        if len(graphs) == 1:
            return graphs[0]
        if {*graphs}.issubset(_VARIANTS):
            return min(graphs, key=_VARIANTS.index)
        raise OptionError(
            f"{name} has several ONNX files and none is called model.onnx; choose one with "
            f"--onnx-file (onnx_file=): {', '.join(graphs)}"
        )
    if safetensors and runtime != "onnx":
        return safetensors
    if safetensors:
        raise ModelError(f"{name} has no ONNX file: use the runtime torch, or export one")
    if graphs:
        raise ModelError(
            f"{name} has ONNX files alone, no .safetensors for PyTorch: use the runtime onnx"
        )
    if pickles := sorted(file for file in names if _PICKLE.fullmatch(file)):
        raise ModelError(
            f"{name} has its weights only in {', '.join(pickles[:3])}: loading such a file can run "
            "any code, so only .safetensors and .onnx are read; look for a converted revision"
        )
    raise ModelError(
        f"{name} holds no weights: model.safetensors, model.onnx or onnx/model.onnx is wanted "
        "beside config.json and the tokenizer"
    )


def index_parts(index: Path) -> set[str]:
    """Names of the safetensors files that an index of parts names, at least one."""
    with opening("a model", index):
        parts = set(json.loads(index.read_bytes())["weight_map"].values())
    if not parts or not all(str(part).endswith(".safetensors") for part in parts):
        raise ModelError(f"{index} names no parts, or others than .safetensors: fetch it again")
    return parts


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def need_torch(name: str) -> None:
    """A ModelError that says how to install PyTorch, if it is not."""
    if not has_torch():
        raise ModelError(
            f"{name} runs on PyTorch, which is not installed: "
            "pip install 'fillmask-ui[torch]', or choose a model with an ONNX file"
        )
