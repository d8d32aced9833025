"""Models from the Hugging Face hub and its local cache; the only file that imports the client.

Only what is needed is fetched: config, tokenizer and one form of the weights, never pickles and
never code. Without network a model that is in the cache still loads.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from huggingface_hub import HfApi, hf_hub_download, scan_cache_dir, try_to_load_from_cache
from huggingface_hub.errors import (
    CacheNotFound,
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    HTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm.std import tqdm

from fillmask_ui.errors import ModelError, NetworkError, OptionError
from fillmask_ui.models.configuration import read_config
from fillmask_ui.models.graph import external_locations
from fillmask_ui.models.progress import LoadProgress, ProgressCallback
from fillmask_ui.models.quiet import quiet_hub
from fillmask_ui.models.reference import (
    ModelFiles,
    Reference,
    files_in_folder,
    has_tokenizer,
    need_torch,
    pick_onnx,
    refuse_without_weights,
)

# Seconds to wait for the hub before the local cache is used instead.
_PATIENCE_SECONDS = 10.0

_TOKENIZER = re.compile(
    r"(tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json"
    r"|vocab\.(txt|json)|merges\.txt|[^/]+\.model)"
)
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLE = re.compile(r"[^/]+\.(bin|pt|pth|ckpt|pkl|h5|msgpack)")


@dataclass(frozen=True)
class CachedModel:
    """A masked language model in the local cache.

    Attributes:
        reference: under which it loads.
        folder: its snapshot.
        size_bytes: of its files.
    """

    reference: str
    folder: Path
    size_bytes: int


def fetch_model(
    parsed: Reference, runtime: str, onnx_file: str | None, report: ProgressCallback
) -> ModelFiles:
    """The files of a model on the hub, from the cache where they are there.

    Args:
        parsed: with the hub id and revision.
        runtime: auto | onnx | torch; `auto` takes the ONNX file where there is one.
        onnx_file: which of several.
        report: hears about the download.

    Raises:
        ModelError: for a repository, revision or kind of weights that cannot be had.
        NetworkError: if the hub cannot be reached and the cache lacks the model.
        OptionError: if the choice of the ONNX file is not clear.
    """
    pick = runtime != "torch"

    def needed(names: list[str]) -> list[str]:
        return _weights(parsed.name, names, onnx_file, pick=pick)

    def complete(folder: Path) -> bool:
        return _holds_weights(parsed.name, folder, runtime, onnx_file)

    folder = _fetch(parsed, needed, complete, report)
    return files_in_folder(parsed.name, folder, onnx_file, commit=folder.name, pick=pick)


def fetch_tokenizer(parsed: Reference, report: ProgressCallback) -> Path:
    """Folder with the tokenizer of a model on the hub; its weights are left there.

    Raises:
        ModelError: if the repository cannot be had or has no tokenizer.
        NetworkError: if the hub cannot be reached and the cache lacks it.
    """
    folder = _fetch(parsed, lambda _: [], has_tokenizer, report)
    if not has_tokenizer(folder):
        raise ModelError(f"{parsed.name} has no tokenizer")
    return folder


def cached_models() -> tuple[CachedModel, ...]:
    """Masked language models in the local cache that load without network."""
    try:
        cache = scan_cache_dir()
    except CacheNotFound:
        return ()
    found = []
    for repository in cache.repos:
        if repository.repo_type != "model":
            continue
        for revision in repository.revisions:
            folder = Path(revision.snapshot_path)
            if not _is_masked_lm(folder):
                continue
            name = repository.repo_id
            if "main" not in revision.refs:
                name += f"@{min(revision.refs, default=revision.commit_hash)}"
            found.append(CachedModel(name, folder, revision.size_on_disk))
    return tuple(sorted(found, key=lambda model: model.reference))


def _is_masked_lm(folder: Path) -> bool:
    try:
        classes = read_config(folder).architectures
        files_in_folder(folder.name, folder, pick=False)
    except (OSError, ModelError):
        return False
    return any(name.endswith("ForMaskedLM") for name in classes) and has_tokenizer(folder)


def _weights(name: str, names: list[str], onnx_file: str | None, *, pick: bool) -> list[str]:
    """Which of a repository's files hold the weights to load."""
    graphs = [n for n in names if n.endswith(".onnx") and n.count("/") <= n.startswith("onnx/")]
    onnx = pick_onnx(name, sorted(graphs), onnx_file) if pick else None
    if onnx:
        return [onnx]
    shards = [n for n in names if _SHARD.fullmatch(n)]
    if "model.safetensors" in names:
        shards = ["model.safetensors"]
    elif shards and "model.safetensors.index.json" in names:
        shards = ["model.safetensors.index.json", *shards]
    if shards:
        need_torch(name)  # before anything large is fetched for it
        return shards
    refuse_without_weights(name, [n for n in names if _PICKLE.fullmatch(n)])
    return []


def _holds_weights(name: str, folder: Path, runtime: str, onnx_file: str | None) -> bool:
    """Whether a snapshot has what the runtime loads; others may have fetched its config alone."""
    try:
        files = files_in_folder(name, folder, onnx_file, pick=runtime != "torch")
    except ModelError:
        return False
    except OptionError:  # the file asked for is not there, or one has to be asked for
        return onnx_file is None
    return bool((runtime != "torch" and files.onnx) or (runtime != "onnx" and files.safetensors))


def _fetch(
    parsed: Reference,
    needed: Callable[[list[str]], list[str]],
    complete: Callable[[Path], bool],
    report: ProgressCallback,
) -> Path:
    """Snapshot folder with config, tokenizer and the files that `needed` picks.

    Without network it is the one in the cache, if that is `complete`.
    """
    with _explained(parsed), quiet_hub():
        report(LoadProgress("download", f"asking the hub for {parsed.name}"))
        try:
            info = HfApi().model_info(
                parsed.hub_id,
                revision=parsed.revision,
                files_metadata=True,
                timeout=_PATIENCE_SECONDS,
            )
        except (GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError):
            raise
        except (HTTPError, OSError) as error:
            folder = _in_cache(parsed)
            if folder is None or not complete(folder):
                raise NetworkError(_without_network(parsed, error)) from error
            return folder
        sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
        wanted = ["config.json", *sorted(n for n in sizes if _TOKENIZER.fullmatch(n))]
        wanted = [n for n in wanted if n in sizes] + needed(sorted(sizes))
        return _download(parsed, info.sha or "main", wanted, sizes, report)


def _download(
    parsed: Reference,
    commit: str,
    wanted: list[str],
    sizes: dict[str, int],
    report: ProgressCallback,
) -> Path:
    """Fetch files of one commit, and what ONNX files among them keep outside themselves."""
    counter = _Counter(parsed.name, sum(sizes[n] for n in wanted), report)
    folder: Path | None = None
    queue = list(wanted)
    for name in queue:
        # The first is asked for by its branch, which the cache then remembers for offline use.
        revision = commit if folder else parsed.revision or "main"
        listener = counter.listener(sizes[name])
        try:
            local = Path(hf_hub_download(parsed.hub_id, name, revision=revision, **listener))
        except RuntimeError as error:  # all that the client's Xet downloads raise
            raise NetworkError(_without_network(parsed, error)) from error
        counter.finished()
        folder = folder or Path(*local.parts[: len(local.parts) - len(PurePosixPath(name).parts)])
        commit = folder.name
        if name.endswith(".onnx"):
            beside = PurePosixPath(name).parent
            outside = {_joined(beside, location) for location in external_locations(local)}
            extra = sorted(n for n in outside if n in sizes and n not in queue)
            counter.total += sum(sizes[n] for n in extra)
            queue += extra
    if folder is None:
        raise ModelError(f"{parsed.name} has neither config, tokenizer nor weights")
    return folder


def _joined(folder: PurePosixPath, location: str) -> str:
    parts: list[str] = []
    for part in (folder / location).parts:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return "/".join(parts)


class _Counter:
    """Adds up the bytes of several files for one progress line."""

    def __init__(self, name: str, total: int, report: ProgressCallback) -> None:
        self.total = total
        self._name = name
        self._report = report
        self._finished = 0
        self._size = self._written = self._received = 0  # of the current file

    def listener(self, size: int) -> dict[str, Any]:
        """Arguments under which the client tells this counter about a file's bytes.

        Args:
            size: of the file, which counts as done when `finished` is called.
        """
        counter = self

        class Bar(tqdm):
            """Shows nothing itself.

            Downloads by Xet tell the bytes received apart from those written, which come in
            bursts. With `update_transfer` both arrive at one bar; without it the client makes
            two, and each byte would count twice.
            """

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                kwargs.pop("name", None)
                super().__init__(*args, **{**kwargs, "disable": True})
                counter.moved(written=int(self.n), received=int(self.n))

            def update(self, n: float | None = 1) -> None:
                counter.moved(written=int(n or 0))

            def update_transfer(self, n: float | None = 1) -> None:
                counter.moved(received=int(n or 0))

            def set_transfer_postfix_str(self, *_: Any, **__: Any) -> None:
                """The speed, which is not shown."""

        self._size, self._written, self._received = size, 0, 0
        # Clients before tqdm_class report file by file.
        known = "tqdm_class" in inspect.signature(hf_hub_download).parameters
        return {"tqdm_class": Bar} if known else {}

    def moved(self, *, written: int = 0, received: int = 0) -> None:
        """Bytes came in, or are counted back because they have to come again."""
        self._written += written
        self._received += received
        # What is received can be more than the file, and repeats what is written.
        self._tell(self._finished + min(max(self._written, self._received), self._size))

    def finished(self) -> None:
        """The file is there, fetched now or before."""
        self._finished += self._size
        self._tell(self._finished)

    def _tell(self, done: int) -> None:
        message = f"fetching {self._name}: {done / 1e6:,.1f} of {self.total / 1e6:,.1f} MB"
        self._report(LoadProgress("download", message, done, self.total))


def _in_cache(parsed: Reference) -> Path | None:
    found = try_to_load_from_cache(parsed.hub_id, "config.json", revision=parsed.revision or "main")
    return Path(found).parent if isinstance(found, str) else None


@contextmanager
def _explained(parsed: Reference) -> Iterator[None]:
    """What the client raises, in words that a user can act on."""
    where = f"{parsed.hub_id} on the hub"
    try:
        yield
    except GatedRepoError as error:
        raise ModelError(
            f"{where} is gated: accept its terms on its page and log in with: hf auth login"
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"there is no {where}, or it is private: check the spelling, or log in with: "
            f"hf auth login; {_at_hand()}"
        ) from error
    except RevisionNotFoundError as error:
        raise ModelError(
            f"{where} has no revision {parsed.revision!r}: give a branch, tag or commit of it, "
            "or leave out @revision for the newest"
        ) from error
    except HFValidationError as error:
        raise OptionError(f"{parsed.name!r} is no hub id: {error}") from error
    except LocalEntryNotFoundError as error:
        raise NetworkError(_without_network(parsed, error)) from error
    except EntryNotFoundError as error:
        raise ModelError(f"{where} changed while it was fetched: try again") from error
    except (HTTPError, OSError) as error:
        raise NetworkError(_without_network(parsed, error)) from error


def _without_network(parsed: Reference, error: Exception) -> str:
    if isinstance(error, OfflineModeIsEnabled):
        why = "HF_HUB_OFFLINE is set, so nothing is fetched"
    else:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        why = f"the hub cannot be reached or broke off ({first[:200]})"
    revision = f" at {parsed.revision}" if parsed.revision else ""
    return f"{parsed.hub_id}{revision} is not complete in the local cache, and {why}; {_at_hand()}"


def _at_hand() -> str:
    """What loads without network."""
    names = ["embedded", "embedded:int8", *(model.reference for model in cached_models())]
    return f"at hand without network: {', '.join(names)}, and any folder or .onnx file"
