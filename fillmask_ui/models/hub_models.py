"""Models from the Hugging Face hub and its local cache; the only file that imports the client.

Only config, tokenizer and one form of the weights are fetched, never pickles and never code.
Without a network a model in the cache still loads.
"""

import glob
import posixpath
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, errors, scan_cache_dir, snapshot_download
from tqdm.std import tqdm

import fillmask_ui.models.model_files as layout
from fillmask_ui.errors import (
    FillmaskError,
    ModelError,
    NetworkError,
    OptionError,
    first_line,
    opening,
)
from fillmask_ui.models.loading_progress import LoadProgress, ProgressCallback, quiet_logger
from fillmask_ui.models.model_choice import Reference
from fillmask_ui.models.runtimes import RUNTIMES, WeightsFile, pick_weights
from fillmask_ui.models.vocabulary import vocabulary_files


def fetch_model(
    parsed: Reference, runtime: str, onnx_file: str | None, report: ProgressCallback
) -> layout.ModelFiles:
    """The files of a model on the hub, from the cache if they are there."""
    folder = _fetch(
        parsed, lambda names: pick_weights(parsed.name, names, runtime, onnx_file), report
    )
    files = layout.files_in_folder(parsed.name, folder, runtime, onnx_file)
    return replace(files, commit=folder.name)


def fetch_tokenizer(parsed: Reference, report: ProgressCallback) -> Path:
    """Folder with the tokenizer of a model on the hub; its weights are not fetched."""

    def no_weights(names: list[str]) -> None:
        if not any(map(layout.TOKENIZER_MARK.fullmatch, names)):
            raise ModelError(f"{parsed.name} has no tokenizer")

    return _fetch(parsed, no_weights, report)


def cached_models() -> dict[str, tuple[Path, int]]:
    """Folder and bytes of the undamaged masked language models in the cache, by reference."""
    if not Path(constants.HF_HUB_CACHE).exists():
        return {}
    quiet = quiet_logger("huggingface_hub")
    with quiet, opening("a model", constants.HF_HUB_CACHE, ModelError):
        repositories = scan_cache_dir(constants.HF_HUB_CACHE).repos
    models = {}
    for repository in repositories:
        for revision in repository.revisions if repository.repo_type == "model" else ():
            folder = revision.snapshot_path
            with suppress(ModelError):
                with suppress(OptionError):  # one of several ONNX files has to be chosen
                    layout.files_in_folder(folder.name, folder)
                if layout.read_config(folder).is_masked_lm and layout.has_tokenizer(folder):
                    reference = repository.repo_id
                    if "main" not in revision.refs:
                        reference += f"@{min(revision.refs, default=revision.commit_hash)}"
                    models[reference] = folder, revision.size_on_disk
    return dict(sorted(models.items()))


def _fetch(
    parsed: Reference, pick: Callable[[list[str]], WeightsFile | None], report: ProgressCallback
) -> Path:
    """Snapshot folder with config, tokenizer and the weights that `pick` chooses by name.

    Without an answer of the hub it is the one in the cache, if that has these.
    """
    report(LoadProgress(f"asking the hub for {parsed.name}", stage="download"))
    with _explain_hub_errors(parsed):
        try:
            info = HfApi().model_info(
                parsed.hub_id, revision=parsed.revision, files_metadata=True, timeout=10.0
            )
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise
        except (errors.HTTPError, OSError):
            with suppress(errors.LocalEntryNotFoundError, ModelError):
                # With a named file; by default the client expects all files of the repository.
                cached = snapshot_download(
                    parsed.hub_id,
                    revision=parsed.revision,
                    local_files_only=True,
                    allow_patterns="config.json",
                )
                pick(layout.names_in(Path(cached)))
                return Path(cached)
            raise
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        weights = pick(sorted(sizes))
        first = {
            name: size
            for name, size in sizes.items()
            if name == "config.json" or layout.TOKENIZER.fullmatch(name)
        }
        if weights is not None:
            RUNTIMES[weights.runtime].need(parsed.name)  # before anything large is fetched for it
            first[weights.file] = sizes[weights.file]
        folder = _download(parsed, parsed.revision, first, report)
        needed = vocabulary_files(folder)
        if weights is not None:
            weights_folder = posixpath.dirname(weights.file)
            for name in RUNTIMES[weights.runtime].needed_beside(folder / weights.file):
                needed.add(posixpath.normpath(posixpath.join(weights_folder, name)))
        if more := {name: sizes[name] for name in (needed & sizes.keys()) - first.keys()}:
            # By commit, so that both are of one state of the repository.
            _download(parsed, folder.name, more, report)
        return folder


def _download(
    parsed: Reference, revision: str | None, sizes: Mapping[str, int], report: ProgressCallback
) -> Path:
    """The snapshot folder of a revision with these files, whose bytes are `sizes`.

    The cache remembers a branch or tag for offline use.
    """
    total, lock = sum(sizes.values()), threading.Lock()
    byte_bars: list[tqdm] = []

    def report_bytes(done: float) -> None:
        message = f"fetching {parsed.name}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"
        fraction = done / total if total else None
        report(LoadProgress(message, fraction, "download", int(done), total))

    class DownloadBar(tqdm):
        """Shows nothing itself.

        The client makes three: for bytes received by Xet, which can be more than the file, for
        bytes written, and for files. The byte bar further on counts.
        """

        def __init__(self, *args: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*args, **{**options, "disable": True})
            if options.get("unit") == "B":
                byte_bars.append(self)

        def update(self, n: float | None = 1) -> None:
            with lock:
                self.n += n or 0
                report_bytes(min(max((bar.n for bar in byte_bars), default=0), total))

    names = list(map(glob.escape, sizes))
    folder = snapshot_download(
        parsed.hub_id, revision=revision, allow_patterns=names, tqdm_class=DownloadBar
    )
    report_bytes(total)
    return Path(folder)


@contextmanager
def _explain_hub_errors(parsed: Reference) -> Iterator[None]:
    """Errors of the client in words that a user can act on."""
    where = f"{parsed.hub_id} on the hub"
    try:
        with quiet_logger("huggingface_hub"):  # failures arrive as exceptions too
            yield
    except FillmaskError:
        raise
    except errors.HFValidationError as error:
        raise OptionError(f"{parsed.name!r} is not a hub id: {error}") from error
    except errors.GatedRepoError as error:
        raise ModelError(f"{where} is gated: accept its terms, then: hf auth login") from error
    except errors.RepositoryNotFoundError as error:
        raise ModelError(
            f"there is no {where}, or it is private: check the spelling, or log in with: "
            f"hf auth login; {_available_offline()}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ModelError(
            f"{where} has no revision {parsed.revision!r}: give a branch, tag or commit"
        ) from error
    # Xet downloads raise a bare RuntimeError; a wrong address or token is a ValueError.
    except (errors.HTTPError, OSError, RuntimeError, ValueError) as error:
        why = f"the hub cannot be reached or broke off ({first_line(error, 200)})"
        if isinstance(error, errors.OfflineModeIsEnabled):
            why = "HF_HUB_OFFLINE is set, so nothing is fetched"
        name = parsed.hub_id + (f" at {parsed.revision}" if parsed.revision else "")
        raise NetworkError(
            f"{name} is not complete in the local cache, and {why}; {_available_offline()}"
        ) from error


def _available_offline() -> str:
    names = ["embedded", "embedded:int8"]
    with suppress(ModelError):
        names += cached_models()
    return f"available offline: {', '.join(names)}, and any folder or .onnx file"
