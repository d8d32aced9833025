"""What a user calls a model: embedded, a folder, an ONNX file or a name on the hub."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fillmask_ui.errors import ModelError, OptionError, unknown
from fillmask_ui.models.files import INDEX, WEIGHTS

# Shipped variants: what follows `embedded:` -> the options that it stands for.
_VARIANTS: dict[str, dict[str, str]] = {
    "": {},
    "int8": {"runtime": "onnx", "onnx_file": "onnx/model_int8.onnx"},
    "torch": {"runtime": "torch"},
}

# Files that stand for the folder they lie in, and the options that they stand for.
_IN_FOLDERS: dict[str, dict[str, str]] = {
    "config.json": {},
    WEIGHTS: {"runtime": "torch"},
    INDEX: {"runtime": "torch"},
}

# A name on the hub: `name` or `organisation/name`, then an optional `@revision`.
_HUB_ID = re.compile(
    r"(?P<id>[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?)(?:@(?P<revision>[^\s@]+))?"
)
_LONGEST_HUB_ID = 96


@dataclass(frozen=True)
class Reference:
    """A parsed reference."""

    kind: str  # `embedded`, `folder`, `file` or `hub`
    name: str  # what signatures and messages call it: as written, or the path without `~`
    path: Path | None = None  # of a folder or file, else None
    hub_id: str = ""  # `organisation/name`, else ""
    revision: str | None = None  # branch, tag or commit on the hub; None for its default
    # options of `ModelChoice` that the reference stands for
    implied: Mapping[str, str] = field(default_factory=dict)


def parse_reference(reference: str | Path | None) -> Reference:
    """Tell apart the embedded model, folders, files and names on the hub.

    Something that exists on disk wins over a name on the hub; what is neither is a ModelError.
    `config.json` and `model.safetensors` stand for their folder.

    >>> parse_reference(None).kind
    'embedded'
    >>> parse_reference("org/model@v1.0").revision
    'v1.0'
    """
    name = "embedded" if reference is None else str(reference).strip()
    head, colon, variant = name.partition(":")
    if head == "embedded" and (not colon or variant):
        if variant not in _VARIANTS:
            known = filter(None, _VARIANTS)
            raise OptionError(unknown("variant of the embedded model", variant, known))
        return Reference("embedded", name, implied=_VARIANTS[variant])
    if not name:
        raise ModelError("the model reference is empty: give a folder, an .onnx file or a hub id")
    try:
        path = Path(name).expanduser()
        exists = path.exists()
    except (OSError, RuntimeError, ValueError):  # too long, NUL, no such home: not a path
        exists = False
    if exists and path.is_dir():
        return Reference("folder", str(path), path)
    if exists and path.suffix == ".onnx":
        return Reference("file", str(path), path, implied={"runtime": "onnx"})
    if exists and path.name in _IN_FOLDERS:
        return Reference("folder", str(path.parent), path.parent, implied=_IN_FOLDERS[path.name])
    if exists:
        raise ModelError(
            f"{name} is not the .onnx file of a model: give the folder that holds config.json, "
            "the tokenizer and the weights"
        )
    match = _HUB_ID.fullmatch(name)
    if match and not name.endswith(".onnx") and len(match["id"]) <= _LONGEST_HUB_ID:
        return Reference("hub", name, hub_id=match["id"], revision=match["revision"])
    raise ModelError(
        f"no such model: {name[:200]!r} is no existing folder or .onnx file, and no hub id "
        "(organisation/name, with an optional @revision)"
    )
