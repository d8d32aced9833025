"""Which files make a model, in a folder on disk or on the hub, and what its `config.json` says."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fillmask_ui.errors import ModelError, opening
from fillmask_ui.models.runtimes import INDEX, pick_weights

TOKENIZER = re.compile(
    r"(tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json"
    r"|vocab\.(txt|json)|merges\.txt|[^/]+\.model)"
)
# One of these shows that a tokenizer lies there; the last is the name of a sentencepiece file.
TOKENIZER_MARK = re.compile(r"tokenizer(_config)?\.json|vocab\.(txt|json)|[^/]+\.model")
# What transformers reads beside the weights, by the endings of all its classes' files.
_READ_BESIDE = re.compile(r".+\.(codes|jinja|json|model|spm|tokenizer|txt)")
# The hub's client puts a file of this name into the store that repositories of its cache share.
_STORE_MARK = ".huggingface-shared-blobs"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class ModelFiles:
    """The files of one model on disk."""

    name: str  # of the model in signatures and messages
    folder: Path  # root that everything lies in; nothing outside is ever read as weights
    runtime: str  # what runs these weights, a key of `RUNTIMES`
    weights: tuple[Path, ...]  # the file, or all that an index names
    tokenizer: Path | None  # folder of the tokenizer, None if it still has to be named
    commit: str = ""  # of the repository, if it came from the hub


def files_in_folder(
    name: str, folder: Path, runtime: str = "auto", onnx_file: str | None = None
) -> ModelFiles:
    """The files of a folder in Hugging Face layout for a runtime.

    Errors as of `pick_weights` and `refuse_foreign`.
    """
    refuse_foreign(name, folder)
    names = names_in(folder)
    picked = pick_weights(name, names, runtime, onnx_file)
    weights = index_parts(folder / picked.file) or {picked.file}
    if missing := sorted(weights.difference(names)):
        raise ModelError(
            f"{folder / picked.file} names parts that are not in its folder: {', '.join(missing)}"
        )
    paths = tuple(folder / weight for weight in sorted(weights))
    for path in paths:
        refuse_pointer(path)
    tokenizer = folder if has_tokenizer(folder) else None
    return ModelFiles(name, folder, picked.runtime, paths, tokenizer)


def names_in(folder: Path) -> list[str]:
    """Files in the root and in `onnx/`, as paths relative to the folder."""
    paths = (*folder.glob("*"), *folder.glob("onnx/*"))
    return sorted(path.relative_to(folder).as_posix() for path in paths if path.is_file())


def has_tokenizer(folder: Path) -> bool:
    """Whether files of a tokenizer lie in a folder."""
    return any(map(TOKENIZER_MARK.fullmatch, names_in(folder)))


def refuse_foreign(name: str, folder: Path) -> None:
    """A ModelError if a file of the config or tokenizer leads out of the folder or is a pointer."""
    names = names_in(folder)
    if not has_tokenizer(folder):  # a folder of other things, with an ONNX file among them
        names = [file for file in names if file == "config.json"]
    for file in filter(_READ_BESIDE.fullmatch, names):
        path = folder / file
        if file != INDEX and not is_inside(path, folder):  # which goes with its weights
            raise ModelError(
                f"{path} is a link that leads out of the folder of {name}, and such links are not "
                "followed: put the file itself into the model's folder"
            )
        refuse_pointer(path)


def refuse_pointer(path: Path) -> None:
    """A ModelError for what a clone without Git LFS leaves instead of a large file."""
    with opening("a model", path, ModelError), path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) != _LFS_POINTER:
            return
    raise ModelError(
        f"{path} is a pointer of Git LFS, not the file itself: run git lfs pull in its "
        "repository, or name the model by its hub id"
    )


def is_inside(path: Path, root: Path) -> bool:
    """Whether a file lies in a model's folder `root`, links followed.

    In a snapshot of the hub's cache the files are links to where the client keeps their content:
    `blobs/` beside `snapshots/`, or a marked store that all repositories share.
    """
    with opening("a model", path, ModelError):
        real, base = path.resolve(strict=True), root.resolve()
    allowed = [base]
    if base.parent.name == "snapshots":
        repository = base.parent.parent
        allowed.append(repository / "blobs")
        shared_store = repository.parent / "blobs"
        if (shared_store / _STORE_MARK).is_file():
            allowed.append(shared_store)
    return any(real.is_relative_to(folder.resolve()) for folder in allowed)


def index_parts(path: Path) -> set[str]:
    """Names of the safetensors files that an index of parts names; none for any other file."""
    if path.name != INDEX:
        return set()
    parts = _read_object(path).get("weight_map")
    names = [str(part) for part in parts.values()] if isinstance(parts, dict) else []
    if not names or not all(name.endswith(".safetensors") for name in names):
        raise ModelError(f"{path} does not name .safetensors files alone: fetch it again")
    return set(names)


def is_rounded_up(width: int, size: int) -> bool:
    """Whether a model this wide may be one of `size` tokens, rounded up for speed.

    >>> is_rounded_up(30_528, 30_522), is_rounded_up(30_720, 30_522)
    (True, False)
    """
    return any(width == -(-size // multiple) * multiple for multiple in (8, 16, 32, 64, 128))


# Architectures that count positions from pad_token_id + 1, so that many rows of the position
# table are never reached: RoBERTa's 514 rows serve 512 tokens.
_POSITIONS_AFTER_PAD = re.compile(
    r"camembert|data2vec-text|esm|ibert|longformer|luke|mpnet|xmod"
    r"|roberta|roberta-prelayernorm|xlm-roberta|xlm-roberta-xl"
)
# Keys of config.json that shape no number.
_WRITERS = {"_name_or_path", "name_or_path", "transformers_version"}
# Endings of the class names of models that predict the next token or write new text.
_OTHER_TASKS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


@dataclass(frozen=True)
class ModelConfig:
    """The part of a Hugging Face `config.json` that this project uses."""

    raw: dict[str, Any] = field(default_factory=dict)  # the whole file; empty without one

    def _count(self, key: str, least: int) -> int | None:
        value = self.raw.get(key)
        return value if isinstance(value, int) and value >= least else None

    @property
    def model_type(self) -> str:
        return str(self.raw.get("model_type") or "unknown")

    @property
    def architectures(self) -> list[str]:
        names = self.raw.get("architectures")
        return [*map(str, names)] if isinstance(names, list) else []

    @property
    def is_masked_lm(self) -> bool:
        return any(name.endswith("ForMaskedLM") for name in self.architectures)

    @property
    def vocabulary_size(self) -> int | None:
        return self._count("vocab_size", 1)

    @property
    def layers(self) -> int | None:
        return self._count("num_hidden_layers", 1) or self._count("n_layers", 1)

    @property
    def first_position(self) -> int:
        """Position id of the first token of a text."""
        if not _POSITIONS_AFTER_PAD.fullmatch(self.model_type):
            return 0
        pad = self._count("pad_token_id", 0)
        return (1 if pad is None else pad) + 1  # 1 is the default of all these architectures

    @property
    def usable_positions(self) -> int | None:
        """Longest text in tokens that the position table serves, if it has a size."""
        rows = self._count("max_position_embeddings", self.first_position + 1)
        return None if rows is None else rows - self.first_position

    @property
    def sha256(self) -> str:
        """Hash of its values, in any order, but for those that say who wrote the file."""
        values = {key: value for key, value in self.raw.items() if key not in _WRITERS}
        return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()

    def refuse_other_tasks(self, name: str) -> None:
        """A ModelError for a model that was made for another task than filling masks."""
        if self.is_masked_lm:
            return
        for architecture in self.architectures:
            if architecture.endswith(_OTHER_TASKS) and "WithLMHead" not in architecture:
                raise ModelError(
                    f"{name} is not a masked language model: its config.json says {architecture}; "
                    "choose a model for fill-mask (...ForMaskedLM)"
                )


def read_config(*folders: Path, file: str = "config.json") -> ModelConfig:
    """The first file of that name in the folders; empty if none has one."""
    path = next(filter(Path.is_file, (folder / file for folder in folders)), None)
    return ModelConfig() if path is None else ModelConfig(_read_object(path))


def transformers_config(folder: Path) -> Any:
    """config.json as transformers reads it, but for a kernel and outputs that it may choose."""
    import transformers

    return transformers.AutoConfig.from_pretrained(
        folder,
        local_files_only=True,
        trust_remote_code=False,
        # It refuses a kernel together with attentions, before they can be taken out.
        attn_implementation=None,
        output_attentions=False,
    )


def _read_object(path: Path) -> dict[str, Any]:
    with opening("a model", path, ModelError):
        values = json.loads(path.read_bytes())
    if not isinstance(values, dict):
        raise ModelError(f"{path} cannot be read as a model: it is not a JSON object")
    return values
