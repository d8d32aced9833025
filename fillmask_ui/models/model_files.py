"""Which files make a model, in a folder on disk or on the hub, and what its `config.json` says."""

import importlib.util
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
_VARIANTS = [
    f"onnx/model_{own}.onnx" for own in ("fp16", "int8", "qdq", "int8_channel", "int8_tensor", "q4")
]
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

    The runtime `auto` takes the ONNX file if there is one: `onnx_file`, relative to the root or to
    `onnx/`, else `model.onnx`, the only one, or the nearest to full precision that `fillmask-ui
    quantize` wrote. A ModelError if there are no weights for the runtime, or only pickles; an
    OptionError if `onnx_file` is not there, or has to be given.

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
    if safetensors or graphs:
        own, other = ("no ONNX file", "torch") if safetensors else ("ONNX files alone", "onnx")
        raise ModelError(f"{name} has {own}: use the runtime {other}")
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
    parts = _read_object(index).get("weight_map")
    names = [str(part) for part in parts.values()] if isinstance(parts, dict) else []
    if not names or not all(name.endswith(".safetensors") for name in names):
        raise ModelError(f"{index} names no parts, or others than .safetensors: fetch it again")
    return set(names)


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


# Architectures that count positions from pad_token_id + 1, so that many rows of the position
# table are never reached: RoBERTa's 514 rows serve 512 tokens.
_POSITIONS_AFTER_PAD = re.compile(
    r"camembert|data2vec-text|esm|ibert|longformer|luke|mpnet|xmod"
    r"|roberta|roberta-prelayernorm|xlm-roberta|xlm-roberta-xl"
)
# Endings of the class names of models that predict the next token or write new text.
_OTHER_TASKS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


@dataclass(frozen=True)
class ModelConfig:
    """The part of a Hugging Face `config.json` that this project uses."""

    raw: dict[str, Any] = field(default_factory=dict)  # the whole file; empty if there is none

    def _count(self, key: str, least: int) -> int | None:
        value = self.raw.get(key)
        return value if isinstance(value, int) and value >= least else None

    @property
    def model_type(self) -> str:
        return str(self.raw.get("model_type") or "unknown")

    @property
    def architectures(self) -> tuple[str, ...]:
        names = self.raw.get("architectures")
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def is_masked_lm(self) -> bool:
        return any(name.endswith("ForMaskedLM") for name in self.architectures)

    @property
    def vocabulary_size(self) -> int | None:
        return self._count("vocab_size", 1)

    @property
    def first_position(self) -> int:
        """Position id of the first token of a text."""
        if not _POSITIONS_AFTER_PAD.fullmatch(self.model_type):
            return 0
        pad = self._count("pad_token_id", 0)
        return (1 if pad is None else pad) + 1  # 1 is the default of all these architectures

    @property
    def usable_positions(self) -> int | None:
        """Longest text in tokens that the position table serves; None if none is named."""
        rows = self._count("max_position_embeddings", self.first_position + 1)
        return None if rows is None else rows - self.first_position

    def refuse_other_tasks(self, name: str) -> None:
        """A ModelError for a model that was made for another task than filling masks."""
        for own in () if self.is_masked_lm else self.architectures:
            if own.endswith(_OTHER_TASKS) and "WithLMHead" not in own:
                raise ModelError(
                    f"{name} is not a masked language model: its config.json says {own}; choose a "
                    "model for fill-mask (...ForMaskedLM)"
                )


def read_config(*folders: Path) -> ModelConfig:
    """The first `config.json` in the folders; empty if none has one."""
    path = next(filter(Path.is_file, (folder / "config.json" for folder in folders)), None)
    if path is None:
        return ModelConfig()
    return ModelConfig(_read_object(path))


def _read_object(path: Path) -> dict[str, Any]:
    with opening("a model", path):
        values = json.loads(path.read_bytes())
    if not isinstance(values, dict):
        raise ModelError(f"{path} cannot be read as a model: it is not a JSON object")
    return values
