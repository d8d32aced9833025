"""What a user calls a model, and which files that means."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.errors import ModelError, OptionError, unknown

# Shipped variants: what follows `embedded:` -> runtime and ONNX file it stands for.
EMBEDDED_VARIANTS = {
    "": ("auto", None),
    "int8": ("onnx", "onnx/model_int8.onnx"),
    "torch": ("torch", None),
}

# A name on the hub: `name` or `organisation/name`, then an optional `@revision`.
_HUB_ID = re.compile(
    r"(?P<id>[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?)(?:@(?P<revision>[^\s@]+))?"
)

_LONGEST_HUB_ID = 96

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")


@dataclass(frozen=True)
class Reference:
    """A parsed reference.

    Attributes:
        kind: `embedded`, `folder`, `file` or `hub`.
        name: as the user wrote it.
        path: of a folder or file, else None.
        hub_id: `organisation/name`, else "".
        revision: branch, tag or commit on the hub; None for its default.
        variant: what follows `embedded:`.
    """

    kind: str
    name: str
    path: Path | None = None
    hub_id: str = ""
    revision: str | None = None
    variant: str = ""


def parse_reference(reference: str | Path | None) -> Reference:
    """Tell apart the embedded model, folders, files and names on the hub.

    Something that exists on disk wins over a name on the hub.

    Raises:
        ModelError: if it looks like a path and nothing is there, or fits no form at all.
        OptionError: for an unknown variant of the embedded model.

    >>> parse_reference(None).kind
    'embedded'
    >>> parse_reference("org/model@v1.0").revision
    'v1.0'
    """
    name = "embedded" if reference is None else str(reference).strip()
    head, colon, variant = name.partition(":")
    if head == "embedded" and (not colon or variant):
        if variant not in EMBEDDED_VARIANTS:
            known = (v for v in EMBEDDED_VARIANTS if v)
            raise OptionError(unknown("variant of the embedded model", variant, known))
        return Reference("embedded", name, variant=variant)
    if not name:
        raise ModelError("the model reference is empty: give a folder, an .onnx file or a hub id")
    path = _existing(name)
    if path is not None:
        if path.is_dir():
            return Reference("folder", name, path)
        if path.suffix == ".onnx":
            return Reference("file", name, path)
        raise ModelError(
            f"{name} is a file but no .onnx: give the folder that holds config.json, the "
            "tokenizer and the weights"
        )
    match = _HUB_ID.fullmatch(name)
    if match and not name.endswith(".onnx") and len(match["id"]) <= _LONGEST_HUB_ID:
        return Reference("hub", name, hub_id=match["id"], revision=match["revision"])
    raise ModelError(
        f"no such model: {name[:200]!r} is no existing folder or .onnx file, and no hub id "
        "(organisation/name, with an optional @revision)"
    )


def _existing(name: str) -> Path | None:
    try:
        path = Path(name).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, NUL, no such home: not a path
        return None


@dataclass(frozen=True)
class ModelFiles:
    """The files of one model on disk.

    Attributes:
        name: as the user wrote the reference.
        folder: root that everything lies in; nothing outside is ever read as weights.
        onnx: the graph to run, or None.
        safetensors: weights for PyTorch; empty where there are none.
        tokenizer: folder of the tokenizer, None where it still has to be named.
        commit: of the repository, where it came from the hub.
        embedded: whether these are the shipped files, with the shipped tokenizer.
    """

    name: str
    folder: Path
    onnx: Path | None
    safetensors: tuple[Path, ...]
    tokenizer: Path | None
    commit: str = ""
    embedded: bool = False


def files_in_folder(
    name: str, folder: Path, onnx_file: str | None = None, *, commit: str = "", pick: bool = True
) -> ModelFiles:
    """What a folder in Hugging Face layout holds.

    Args:
        name: for messages.
        folder: root of the layout.
        onnx_file: which ONNX file, relative to the folder or to its `onnx/`.
        commit: passed on.
        pick: whether an ONNX file is wanted at all; False leaves them aside.

    Raises:
        ModelError: if the folder holds no weights that can be used, or pickles only.
        OptionError: if `onnx_file` is not there, or several are and none is `model.onnx`.
    """
    onnx = pick_onnx(name, onnx_names(folder), onnx_file) if pick else None
    safetensors = _safetensors(folder)
    if onnx is None and not safetensors and not (onnx_names(folder) and not pick):
        refuse_without_weights(name, [p.name for g in _PICKLES for p in folder.glob(g)])
    return ModelFiles(
        name=name,
        folder=folder,
        onnx=folder / onnx if onnx else None,
        safetensors=safetensors,
        tokenizer=folder if has_tokenizer(folder) else None,
        commit=commit,
    )


def files_of_onnx(name: str, path: Path) -> ModelFiles:
    """A single .onnx file; its tokenizer lies beside it or one folder up, or is named."""
    beside = path.parent
    homes = [beside, *([beside.parent] if beside.name == "onnx" else [])]
    tokenizer = next((home for home in homes if has_tokenizer(home)), None)
    return ModelFiles(name, tokenizer or beside, path, (), tokenizer)


def has_tokenizer(folder: Path) -> bool:
    """Whether a tokenizer can be loaded from the folder."""
    known = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json")
    return any((folder / file).is_file() for file in known)


def onnx_names(folder: Path) -> list[str]:
    """ONNX files in the root and in `onnx/`, as paths relative to the folder."""
    found = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    return sorted(path.relative_to(folder).as_posix() for path in found if path.is_file())


def pick_onnx(name: str, names: list[str], wanted: str | None) -> str | None:
    """One of several ONNX files: the one asked for, else `model.onnx`, else the only one.

    Raises:
        OptionError: that lists the files, if the choice is not clear.

    >>> pick_onnx("m", ["onnx/model.onnx", "onnx/model_int8.onnx"], None)
    'onnx/model.onnx'
    >>> pick_onnx("m", ["onnx/model.onnx", "onnx/model_int8.onnx"], "model_int8.onnx")
    'onnx/model_int8.onnx'
    """
    if wanted is not None:
        spelled = wanted if wanted.endswith(".onnx") else f"{wanted}.onnx"
        for choice in (spelled, f"onnx/{spelled}"):
            if choice in names:
                return choice
        raise OptionError(unknown(f"ONNX file of {name}", wanted, names))
    for choice in ("model.onnx", "onnx/model.onnx"):
        if choice in names:
            return choice
    if len(names) > 1:
        raise OptionError(
            f"{name} has several ONNX files and none is called model.onnx; choose one with "
            f"--onnx-file (onnx_file=): {', '.join(names)}"
        )
    return names[0] if names else None


def _safetensors(folder: Path) -> tuple[Path, ...]:
    """The weights that PyTorch loads: one file, or the parts that an index names."""
    single = folder / "model.safetensors"
    if single.is_file():
        return (single,)
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return ()
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelError(f"{index} cannot be read as a safetensors index: {error!r}") from error
    present = {path.name for path in folder.iterdir() if path.is_file()}
    missing = sorted(str(part) for part in parts - present)
    if missing:
        raise ModelError(f"{index} names parts that are not in its folder: {', '.join(missing)}")
    return tuple(sorted(folder / part for part in parts))


def refuse_without_weights(name: str, pickles: list[str]) -> None:
    """Say why there is nothing to run.

    Raises:
        ModelError: always.
    """
    if pickles:
        raise ModelError(
            f"{name} has its weights only in {', '.join(sorted(pickles)[:3])}: loading such a "
            "file can run any code that its author put into it, so only .safetensors and .onnx "
            "are read; look for a converted revision, or convert it where you trust it"
        )
    raise ModelError(
        f"{name} holds no weights: model.safetensors, model.onnx or onnx/model.onnx is wanted "
        "beside config.json and the tokenizer"
    )


def need_torch(name: str) -> None:
    """Stop if PyTorch is not installed.

    Raises:
        ModelError: that says how to install it.
    """
    if importlib.util.find_spec("torch") is None:
        raise ModelError(
            f"{name} runs on PyTorch, which is not installed: "
            "pip install 'fillmask-ui[torch]', or choose a model with an ONNX file"
        )
