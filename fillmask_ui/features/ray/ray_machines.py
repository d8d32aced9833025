"""Whether the machines of a cluster have what the work needs, and models for those that do not."""

import hashlib
import platform
import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fillmask_ui import __version__
from fillmask_ui.errors import DataError, FillmaskError, first_line
from fillmask_ui.files import user_folder
from fillmask_ui.models.load import load_choice
from fillmask_ui.models.model_choice import ModelChoice, parse_reference
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.runs.record import check_same

# A model that the machines cannot read goes through their object stores, if it is no larger.
MOST_SHIPPED_BYTES = 4 * 2**30
# Beside Python's, these have to be the same everywhere.
PACKAGES = ("numpy", "onnxruntime", "tokenizers", "transformers")


@dataclass(frozen=True)
class Machine:
    """One machine of the cluster."""

    host: str
    versions: Mapping[str, str]  # of Python and of packages; "" for one that is not installed
    sizes: Mapping[str, int | None]  # bytes of each path; None if missing


def describe(paths: Sequence[str]) -> Machine:
    """This machine."""
    versions = {"python": platform.python_version(), "fillmask-ui": __version__}
    versions |= dict.fromkeys(PACKAGES, "")
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return Machine(socket.gethostname(), versions, {path: _size(path) for path in paths})


def _size(path: str) -> int | None:
    """Bytes of a file, or of all files in a folder; None if it does not exist."""
    target = Path(path).expanduser()
    try:
        if target.is_dir():
            return sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
        return target.stat().st_size
    except OSError:
        return None


def machines(paths: Sequence[str]) -> list[Machine]:
    """All machines of the cluster; a `DataError` if one has no fillmask-ui."""
    described = ray.remote(num_cpus=0, max_retries=0)(describe)
    answers = {}
    for node in ray.nodes():
        if node["Alive"]:
            pinned = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            answer = described.options(scheduling_strategy=pinned).remote(list(paths))
            answers[node["NodeManagerHostname"]] = answer
    machines = []
    for host, answer in answers.items():
        try:
            machines.append(ray.get(answer, timeout=60))
        except RayError as error:  # noqa: PERF203 - once a machine
            raise DataError(
                f"the machine {host} of the cluster cannot take part: {first_line(error)}; install "
                'fillmask-ui there as here (pip install "fillmask-ui[ray]")'
            ) from error
    return machines


def check_versions(machines: Sequence[Machine]) -> None:
    """Refuse machines whose numbers could differ from those of the first: a `DataError`."""
    for machine in machines[1:]:
        for package, ours in machines[0].versions.items():
            if (theirs := machine.versions[package]) != ours:
                raise DataError(
                    f"the machine {machine.host} has {package} {theirs or 'not'}, and this one has "
                    f"{ours}: install the same versions on all machines"
                )


@dataclass(frozen=True, eq=False)
class Placed:
    """Where a worker loads a model from."""

    role: str  # `model` or `baseline`, for messages
    choice: ModelChoice  # as asked for, with the threads of a worker
    signature: Mapping[str, Any]  # of the model that the driver has loaded
    # Path in the folder -> ObjectRef of bytes, if workers cannot read the folder; and its hash.
    files: Mapping[str, Any] | None = None
    digest: str = ""


def paths_of(choice: ModelChoice) -> list[str]:
    """Where a model and its tokenizer are read from, if that is on a disk."""
    references = filter(None, (choice.reference, choice.tokenizer))
    paths = [parse_reference(reference).path for reference in references]
    return [str(path.absolute()) for path in paths if path is not None]


def place_model(
    role: str, choice: ModelChoice, model: MaskedLM, threads: int, machines: Sequence[Machine]
) -> Placed:
    """Where workers load a model from: as the driver, or out of the object store.

    `machines` describe `paths_of` the model: this machine first.
    """
    paths, driver = paths_of(choice), machines[0]
    reference = paths[0] if paths else choice.reference
    resolved = replace(choice, threads=threads, reference=reference)
    placed = Placed(role, resolved, model.signature.to_dict())
    blind = [
        machine.host
        for machine in machines
        for path in paths
        if machine.sizes[path] != driver.sizes[path]
    ]
    if not blind:
        return placed
    root, files = Path(paths[0]), getattr(model, "files", None)
    folder = root
    if not root.is_dir():  # one of the files of a model was named
        folder = root.parent if files is None else files.folder.absolute()
    total = _size(str(folder)) or 0
    if total > MOST_SHIPPED_BYTES or len(paths) > 1:
        reason = "its tokenizer lies elsewhere" if len(paths) > 1 else f"{total / 2**30:.1f} GB"
        raise DataError(
            f"the machine {blind[0]} cannot read {paths[0]}, and it is not sent there ({reason}): "
            "put it where all machines see it under this path"
        )
    sent, digest = {}, hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name, content = path.relative_to(folder).as_posix(), path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            sent[name] = ray.put(content)
    inside = replace(resolved, reference=root.relative_to(folder).as_posix())
    return replace(placed, choice=inside, files=sent, digest=digest.hexdigest())


def load_placed(placed: Placed) -> MaskedLM:
    """The model, in a worker; a `FillmaskError` if it is not the one that the driver has."""
    choice = placed.choice
    try:
        if placed.files is not None:
            choice = replace(choice, reference=str(_unpacked(placed) / choice.reference))
        model = load_choice(choice)
        check_same(placed.role, placed.signature, model.signature)
    except FillmaskError as error:
        raise type(error)(f"on the machine {socket.gethostname()}: {error}") from error
    return model


def _unpacked(placed: Placed) -> Path:
    """The folder of a model that came through the object store; once per machine."""
    root = user_folder("cache") / "sent"
    folder = root / placed.digest
    if not folder.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=root))
        for name, content in (placed.files or {}).items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(ray.get(content))
        try:
            fresh.rename(folder)
        except OSError:  # another worker of this machine was quicker
            shutil.rmtree(fresh)
    return folder
