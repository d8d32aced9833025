"""Who is measured: the models asked for, and with `--peers` other ways to run their weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.bench.config import BenchConfig
from fillmask_ui.errors import ModelError
from fillmask_ui.files import asset
from fillmask_ui.models.loading_progress import silent
from fillmask_ui.models.model_choice import ModelChoice, Reference, parse_reference
from fillmask_ui.models.model_files import INDEX, WEIGHTS, names_in

OWN = "own"
# What PyTorch computes in, with `--peers`.
_DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Subject:
    """One row of each table of results."""

    name: str
    kind: str  # `own`, or the name of a peer
    folder: Path  # of config.json and, for a peer, of the weights
    choice: ModelChoice | None = None  # of an own model
    works: tuple[str, ...] = ("sentence", "cross-entropy", "pseudo-perplexity")  # that it can do

    def request(self, max_tokens: int | None) -> dict[str, Any]:
        """What `worker.open_contender` takes; texts are cut at `max_tokens` by peers alone."""
        if self.choice is not None:
            return {"kind": OWN, "folder": str(self.folder), "choice": self.choice.to_dict()}
        return {"kind": self.kind, "folder": str(self.folder), "max_tokens": max_tokens}


@dataclass(frozen=True)
class Lineup:
    """All subjects, own models first, and what a reader should know of it."""

    subjects: tuple[Subject, ...]
    notes: tuple[str, ...] = ()


def lineup(config: BenchConfig) -> Lineup:
    """The subjects of a benchmark.

    Models of the hub are fetched here. With peers, each model with PyTorch's weights beside it also
    runs on PyTorch in float32 and in bfloat16, and each set of weights has its peers.

    Raises:
        FillmaskError: for a reference that means no model.
    """
    own: dict[object, Subject] = {}
    on_torch: dict[object, Subject] = {}
    weights: dict[Path, str] = {}  # folder -> the model that is there
    notes = []
    for reference in dict.fromkeys(config.models):
        parsed = parse_reference(reference)
        folder = _folder(parsed)
        is_torch = parsed.implied.get("runtime") == "torch" or not _has_onnx(parsed, folder)
        key = (folder, "float32") if is_torch else reference
        own[key] = Subject(reference, OWN, folder, ModelChoice(reference))
        if not config.peers:
            continue
        if not _has_torch_weights(parsed, folder):
            notes.append(f"{reference} has no model.safetensors beside it: measured without peers")
            continue
        home = {"embedded": "embedded", "hub": reference}.get(parsed.kind, str(folder))
        weights.setdefault(folder, home)
        for dtype in _DTYPES:
            name = f"{home}:torch" + (f" {dtype}" if dtype != "float32" else "")
            choice = ModelChoice(home, runtime="torch", dtype=dtype)
            on_torch[folder, dtype] = Subject(name, OWN, folder, choice)
    # What was asked for keeps its name and comes first.
    return Lineup((*{**own, **on_torch, **own}.values(), *_peers(weights)), tuple(notes))


def _peers(weights: dict[Path, str]) -> list[Subject]:
    """The peers of each set of weights, which they name where there are several."""
    if not weights:
        return []
    from fillmask_ui.bench.peers import installed_peers

    found = []
    for folder, label in weights.items():
        for peer in installed_peers():
            name = f"{peer.name} ({label})" if len(weights) > 1 else peer.name
            found.append(Subject(name, peer.name, folder, works=(peer.work,)))
    return found


def _folder(parsed: Reference) -> Path:
    """Where config.json lies."""
    if parsed.kind == "hub":
        from fillmask_ui.models.hub_models import fetch_model

        return fetch_model(parsed, "auto", None, silent).folder
    folder = parsed.path or asset("model")
    if parsed.kind != "file":
        return folder
    homes = (folder.parent, folder.parent.parent)
    return next((home for home in homes if (home / "config.json").is_file()), folder.parent)


def _has_onnx(parsed: Reference, folder: Path) -> bool:
    return parsed.kind == "file" or any(name.endswith(".onnx") for name in names_in(folder))


def _has_torch_weights(parsed: Reference, folder: Path) -> bool:
    if parsed.kind == "hub":
        from fillmask_ui.models.hub_models import fetch_model

        try:
            fetch_model(parsed, "torch", None, silent)
        except ModelError:
            return False
    return bool({WEIGHTS, INDEX}.intersection(names_in(folder)))
