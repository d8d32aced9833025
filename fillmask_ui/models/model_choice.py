"""Which model to load: a reference and options, the same on the page, in shells and in run.json."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import ModelError, OptionError, unknown
from fillmask_ui.models.runtimes import INDEX, RUNTIMES, WEIGHTS
from fillmask_ui.options import check_options, option


@dataclass(frozen=True)
class ModelChoice:
    """A reference and the options of loading; an OptionError for values that are not allowed."""

    option_panel = "Loading the model"

    reference: str = option(
        "embedded",
        "Hub id (org/name@revision), folder, .onnx file, embedded:int8 or embedded:torch.",
        label="Model",
        flags=("--model", "-m"),
        metavar="REF",
        panel="Model",
    )
    tokenizer: str | None = option(
        None,
        "Tokenizer for a single .onnx file, or for a folder without one: a folder or a hub id.",
        flags=("--tokenizer", "--model-id"),
        metavar="ID",
    )
    onnx_file: str | None = option(  # relative to the folder or to its `onnx/`
        None, "The ONNX file to load from a folder or hub id.", label="ONNX file", metavar="NAME"
    )
    runtime: str = option(  # `auto`: by the file nearest to full precision
        "auto",
        f"Runtime: auto (the file nearest to full precision), {', '.join(RUNTIMES)}.",
        choices=("auto", *RUNTIMES),
    )
    device: str | None = option(
        None,
        "On ONNX Runtime cpu, gpu, npu, cuda, dml, coreml, openvino, qnn or another provider; on "
        "PyTorch cpu, cuda:0, mps.",
    )
    provider_options: tuple[str, ...] = option(
        (),
        "Option of the execution provider of ONNX Runtime; repeatable.",
        flags=("--provider-option",),
        metavar="KEY=VALUE",
    )
    dtype: str | None = option(None, "Precision on PyTorch: float32, float16, bfloat16 or float64.")
    # None for all cores; on PyTorch concurrent calls share them
    threads: int | None = option(None, "Threads of the model; all cores by default.", least=1)
    graph_optimization: str = option(
        "all",
        "Graph optimization of ONNX Runtime: all, extended, basic or none. Results of "
        "int8 vary with it.",
        choices=("all", "extended", "basic", "none"),
    )
    # `session.x64quantprecision` of ONNX Runtime: sums of products of bytes in 32 bits instead of
    # 16, in which they saturate; `auto`: where the CPU has no instruction that does so anyway
    x64_quant_precision: str = option(
        "auto",
        "Exact 8-bit products on x86: auto (on where they would saturate), on or off.",
        label="x64 quant precision",
        choices=("auto", "on", "off"),
    )

    def __post_init__(self) -> None:
        options: Any = self.provider_options or ()
        options = [options] if isinstance(options, str) else options
        if not isinstance(options, (list, tuple)) or any(type(part) is not str for part in options):
            raise OptionError(
                f"provider options must be a list of KEY=VALUE; it was {repr(options)[:100]}"
            )
        object.__setattr__(self, "provider_options", tuple(options))
        check_options(self)

    def second(self, reference: str) -> "ModelChoice":
        """How a second model is loaded beside it: its own runtime and precision, this one's device.

        >>> second = ModelChoice("embedded", dtype="float16", threads=2).second("embedded:int8")
        >>> second.changed_options()
        {'threads': 2}
        """
        choice = ModelChoice(
            reference,
            device=self.device,
            provider_options=self.provider_options,
            threads=self.threads,
        )
        if reference.endswith(".onnx"):
            return replace(choice, tokenizer=self.tokenizer)
        return choice

    def changed_options(self) -> dict[str, Any]:
        """The options that differ from their defaults, without the reference."""
        plain = asdict(ModelChoice(self.reference))
        return {name: value for name, value in asdict(self).items() if value != plain[name]}


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: int | None) -> None:
    """An OptionError for more threads than this machine can use; stored runs may name any."""
    most = max(64, 4 * cores())
    if threads is not None and not 1 <= threads <= most:
        raise OptionError(
            f"threads must be from 1 to {most} on this machine of {cores()} cores; it was {threads}"
        )


# Options implied by the part of a reference behind `embedded:`, or by the name of a file.
_VARIANTS: dict[str, dict[str, str]] = {
    "": {},
    "int8": {"runtime": "onnx", "onnx_file": "onnx/model_int8.onnx"},
    "torch": {"runtime": "torch"},
}
_IN_FOLDERS = {"config.json": {}, WEIGHTS: {"runtime": "torch"}, INDEX: {"runtime": "torch"}}
# `name` or `organisation/name` on the hub, then an optional `@revision`.
_HUB_ID = re.compile(
    r"(?P<id>[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?)(?:@(?P<revision>[^\s@]+))?"
)


@dataclass(frozen=True)
class Reference:
    """A parsed reference."""

    kind: str  # `embedded`, `folder`, `file` or `hub`
    name: str  # in signatures and messages: as written, or the path without `~`
    path: Path | None = None  # of a folder or file
    hub_id: str = ""  # `organisation/name`
    revision: str | None = None  # branch, tag or commit on the hub; None for its default
    implied: Mapping[str, str] = field(default_factory=dict)  # options of `ModelChoice`


def parse_reference(reference: str | Path | None) -> Reference:
    """Distinguish the embedded model (also None), folders, files and names on the hub.

    What exists on disk wins over the hub. `config.json` and `model.safetensors` stand for their
    folder. Anything else is a ModelError.

    >>> parse_reference("org/model@v1.0").revision
    'v1.0'
    """
    name = "embedded" if reference is None else str(reference).strip()
    head, colon, variant = name.partition(":")
    if head == "embedded" and (not colon or variant):
        if variant not in _VARIANTS:
            names = filter(None, _VARIANTS)
            raise OptionError(unknown("variant of the embedded model", variant, names))
        return Reference("embedded", name, implied=_VARIANTS[variant])
    if not name:
        raise ModelError("the model reference is empty: give a folder, an .onnx file or a hub id")
    try:
        path = Path(name).expanduser()
        exists = path.exists()
    except (OSError, RuntimeError, ValueError):  # too long, NUL, no such home: not a path
        exists = False
    if exists:
        if path.is_dir():
            return Reference("folder", str(path), path)
        if path.suffix == ".onnx":
            return Reference("file", str(path), path, implied={"runtime": "onnx"})
        if path.name in _IN_FOLDERS:
            implied = _IN_FOLDERS[path.name]
            return Reference("folder", str(path.parent), path.parent, implied=implied)
        raise ModelError(
            f"{name} is not the .onnx file of a model: give the folder that holds config.json, "
            "the tokenizer and the weights"
        )
    match = _HUB_ID.fullmatch(name)
    if match and not name.endswith(".onnx"):
        return Reference("hub", name, hub_id=match["id"], revision=match["revision"])
    raise ModelError(
        f"no such model: {name[:200]!r} is neither a folder nor an .onnx file here, and no hub "
        "id (organisation/name, with an optional @revision)"
    )
