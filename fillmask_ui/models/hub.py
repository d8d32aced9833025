"""Models from the Hugging Face hub and its local cache; the only file that imports the client.

Only what is needed is fetched: config, tokenizer and one form of the weights, never pickles and
never code. Without network a model that is in the cache still loads.
"""

from __future__ import annotations

import glob
import posixpath
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import (
    CachedRevisionInfo,
    HfApi,
    scan_cache_dir,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.errors import (
    CacheNotFound,
    GatedRepoError,
    HFValidationError,
    HTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm.std import tqdm

from fillmask_ui.errors import ModelError, NetworkError, OptionError, first_line
from fillmask_ui.models.configuration import read_config
from fillmask_ui.models.files import (
    INDEX,
    TOKENIZER,
    ModelFiles,
    files_in_folder,
    has_tokenizer,
    index_parts,
    need_torch,
    pick_weights,
)
from fillmask_ui.models.graph import external_locations
from fillmask_ui.models.progress import LoadProgress, ProgressCallback
from fillmask_ui.models.quiet import quiet_hub
from fillmask_ui.models.reference import Reference

# Seconds to wait for the hub before the local cache is used instead.
_PATIENCE_SECONDS = 10.0


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

    def weights(names: list[str]) -> list[str]:
        picked = pick_weights(parsed.name, names, runtime, onnx_file)
        if not picked.endswith(".onnx"):
            need_torch(parsed.name)  # before anything large is fetched for it
        return [picked]

    folder = _fetch(parsed, weights, lambda own: _has_weights(own, runtime, onnx_file), report)
    return replace(files_in_folder(parsed.name, folder, runtime, onnx_file), commit=folder.name)


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


def cached_models() -> dict[str, CachedRevisionInfo]:
    """Masked language models in the local cache that load without network, by reference."""
    try:
        cache = scan_cache_dir()
    except CacheNotFound:
        return {}
    found = {}
    for repository in cache.repos:
        for revision in repository.revisions if repository.repo_type == "model" else ():
            if _is_masked_lm(revision.snapshot_path):
                name = repository.repo_id
                if "main" not in revision.refs:
                    name += f"@{min(revision.refs, default=revision.commit_hash)}"
                found[name] = revision
    return dict(sorted(found.items()))


def _is_masked_lm(folder: Path) -> bool:
    try:
        classes = read_config(folder).architectures
    except (OSError, ModelError):
        return False
    if not any(name.endswith("ForMaskedLM") for name in classes) or not has_tokenizer(folder):
        return False
    # An index that names what is not there is a download that broke off.
    return _has_weights(folder, "torch" if (folder / INDEX).is_file() else "auto")


def _has_weights(folder: Path, runtime: str = "auto", onnx_file: str | None = None) -> bool:
    """Whether a snapshot has what the runtime loads; others may have fetched its config alone."""
    try:
        files_in_folder(folder.name, folder, runtime, onnx_file)
    except ModelError:
        return False
    except OptionError:  # the file asked for is not there, or one has to be asked for
        return onnx_file is None
    return True


def _fetch(
    parsed: Reference,
    needed: Callable[[list[str]], list[str]],
    is_complete: Callable[[Path], bool],
    report: ProgressCallback,
) -> Path:
    """Snapshot folder with config, tokenizer and the files that `needed` picks.

    Without network it is the one in the cache, if that `is_complete`.
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
        except (RepositoryNotFoundError, RevisionNotFoundError):
            raise
        except (HTTPError, OSError) as error:
            folder = _in_cache(parsed)
            if folder is None or not is_complete(folder):
                raise NetworkError(_without_network(parsed, error)) from error
            return folder
        sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
        names = [name for name in sizes if name == "config.json" or TOKENIZER.fullmatch(name)]
        names += needed(sorted(sizes))
        if not names:
            raise ModelError(f"{parsed.name} has neither config, tokenizer nor weights")
        download = _Download(parsed, sizes, report)
        folder = download.fetch(names, parsed.revision)
        outside = [n for name in names for n in _kept_outside(folder, name) if n in sizes]
        return download.fetch(outside, folder.name) if outside else folder


def _kept_outside(folder: Path, name: str) -> Collection[str]:
    """Names of the files that hold what an ONNX file or an index of parts does not hold itself."""
    if name == INDEX:
        return [part for part in index_parts(folder / name) if str(part).endswith(".safetensors")]
    if name.endswith(".onnx"):
        beside = posixpath.dirname(name)
        locations = external_locations(folder / name)
        return {posixpath.normpath(posixpath.join(beside, location)) for location in locations}
    return ()


class _Download:
    """Fetches files of one repository and adds up their bytes for one progress line."""

    def __init__(
        self, parsed: Reference, sizes: Mapping[str, int], report: ProgressCallback
    ) -> None:
        self._parsed, self._sizes, self._report = parsed, sizes, report
        self._lock = threading.Lock()
        self._total = self._finished = 0

    def fetch(self, names: Collection[str], revision: str | None) -> Path:
        """The snapshot folder, with these files among others.

        A branch or tag is remembered by the cache for offline use, a commit is not.

        Raises:
            NetworkError: if the client's Xet downloads fail; what else it raises passes through.
        """
        self._total += sum(self._sizes[name] for name in names)
        try:
            folder = snapshot_download(
                self._parsed.hub_id,
                revision=revision,
                allow_patterns=[glob.escape(name) for name in names],
                tqdm_class=self._bar_class(),
            )
        except RuntimeError as error:  # all that Xet downloads raise
            raise NetworkError(_without_network(self._parsed, error)) from error
        self._finished = self._total
        self._say(self._total)
        return Path(folder)

    def _bar_class(self) -> type[tqdm]:
        """What the client makes three of: for bytes received by Xet, bytes written, and files.

        Received bytes come evenly and can be more than the file; written ones come in bursts, or
        alone where Xet is not used. Whichever is further on is shown.
        """
        download = self
        byte_bars: list[tqdm] = []

        class Bar(tqdm):
            """Shows nothing itself."""

            def __init__(self, *args: Any, **options: Any) -> None:
                options.pop("name", None)
                super().__init__(*args, **{**options, "disable": True})
                if options.get("unit") == "B":
                    byte_bars.append(self)

            def update(self, n: float | None = 1) -> None:
                with download._lock:
                    self.n += n or 0
                    received = max((bar.n for bar in byte_bars), default=0)
                    download._say(min(download._finished + int(received), download._total))

        return Bar

    def _say(self, done: int) -> None:
        message = f"fetching {self._parsed.name}: {done / 1e6:,.1f} of {self._total / 1e6:,.1f} MB"
        self._report(LoadProgress("download", message, done, self._total))


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
    except RemoteEntryNotFoundError as error:
        raise ModelError(f"{where} changed while it was fetched: try again") from error
    except (HTTPError, OSError) as error:
        raise NetworkError(_without_network(parsed, error)) from error


def _without_network(parsed: Reference, error: Exception) -> str:
    if isinstance(error, OfflineModeIsEnabled):
        why = "HF_HUB_OFFLINE is set, so nothing is fetched"
    else:
        why = f"the hub cannot be reached or broke off ({first_line(error, 200)})"
    revision = f" at {parsed.revision}" if parsed.revision else ""
    return f"{parsed.hub_id}{revision} is not complete in the local cache, and {why}; {_at_hand()}"


def _at_hand() -> str:
    """What loads without network."""
    names = ", ".join(["embedded", "embedded:int8", *cached_models()])
    return f"at hand without network: {names}, and any folder or .onnx file"
