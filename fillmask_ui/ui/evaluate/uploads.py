"""Uploaded and pasted texts, kept beside the runs that need them; limited on a public page."""

import gzip
import hashlib
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError, opening
from fillmask_ui.runs import RunStore
from fillmask_ui.runs.store import RUN_FILE
from fillmask_ui.texts import TextSource

# Limits of a public page, after decompression: all rows are read to draw a sample.
PUBLIC_BYTES = 20_000_000
PUBLIC_ROWS = 200_000
_UPLOADS, _PASTED = "uploads", "pasted.txt"
_DIGITS = 12


def check_public_upload(path: Path) -> None:
    """Refuse an upload that is too large once decompressed.

    Raises:
        OptionError: if it is too large, or of an unknown kind.
        DataError: if it is gone or damaged.
    """
    source = TextSource("file", path.name)
    if source.layout == "parquet":
        # The sizes it declares cannot be trusted.
        raise OptionError(
            "this public page reads no parquet: upload the texts as .txt, .csv or .jsonl (also .gz)"
        )
    size = rows = 0
    opened: Any = gzip.open if source.compressed else Path.open
    with opening("texts", path.name), opened(path, "rb") as file:
        while block := file.read(1 << 16):
            size += len(block)
            rows += block.count(b"\n")
            _check_size(size, rows, path.name)


def _check_size(size: int, rows: int, name: str) -> None:
    if size > PUBLIC_BYTES or rows > PUBLIC_ROWS:
        raise OptionError(
            f"this public page reads at most {PUBLIC_ROWS:,} lines and "
            f"{PUBLIC_BYTES / 1e6:g} MB of text, decompressed; {name} has more: "
            "upload a part of it, or run it on your own machine"
        )


def keep_pasted(text: str, root: Path, *, public: bool = False) -> Path:
    """Keep pasted texts in a file named by their hash.

    Raises:
        OptionError: if nothing was pasted, or more than a public page reads.
        DataError: if the file cannot be written.
    """
    if not text.strip():
        raise OptionError("no text was pasted: write one a line, or pick the embedded texts")
    content = f"{text}\n".encode("utf-8", "backslashreplace")
    if public:
        _check_size(len(content), content.count(b"\n"), "what was pasted")
    kept = _kept(root, hashlib.sha256(content).hexdigest(), _PASTED)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        half = kept.with_suffix(kept.suffix + ".new")
        half.write_bytes(content)
        half.replace(kept)
    except OSError as error:
        raise DataError(f"the pasted texts cannot be kept ({error.strerror})") from error
    return kept


def pasted_text(where: str) -> str | None:
    """The texts of a file made by `keep_pasted`; None for any other file.

    Raises:
        DataError: if it is gone.
    """
    path = Path(where)
    if path.parent.name != _UPLOADS or path.name[_DIGITS:] != f"-{_PASTED}":
        return None
    try:
        return path.read_text("utf-8").removesuffix("\n")
    except OSError as error:
        raise DataError(f"what was pasted is gone ({error.strerror}): paste it again") from error


def _kept(root: Path, digest: str, name: str) -> Path:
    return root / _UPLOADS / f"{digest[:_DIGITS]}-{name}"


def keep_upload(path: Path, root: Path) -> Path:
    """Copy an uploaded file to a name made from its hash.

    Raises:
        DataError: if it is gone or cannot be kept.
    """
    try:
        digest = _sha256(path)
        kept = _kept(root, digest, path.name)
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(path, kept)
    except OSError as error:
        raise _gone(path, error) from error
    return kept


def _gone(path: Path, error: OSError) -> DataError:
    return DataError(
        f"the uploaded file {path.name} cannot be kept ({error.strerror}): upload it again"
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def link_or_copy(path: Path, target: Path) -> Path:
    """Link or copy a file atomically."""
    try:
        os.link(path, target)
    except OSError:  # another disk, or no hard links
        half = target.with_suffix(target.suffix + ".new")
        shutil.copyfile(path, half)
        half.replace(target)
    return target


def uploaded_name(path: Path, root: Path) -> str:
    """The original name of a kept upload; blank for any other file."""
    return path.name[_DIGITS + 1 :] if path.parent == root / _UPLOADS else ""


def drop_upload(texts: Mapping[str, Any], store: RunStore, used: Collection[str] = ()) -> None:
    """Remove the kept upload of a deleted run, unless another run or job may need it.

    `texts` is from the deleted run's run.json; `used` holds paths of jobs that may have no run yet.
    """
    where = texts.get("where") or ""
    kept = Path(where)
    if not uploaded_name(kept, store.root) or where in used:
        return
    if not any(_may_name(store.folder(name), kept.name[:_DIGITS]) for name in store.names()):
        kept.unlink(missing_ok=True)


def _may_name(folder: Path, digest: str) -> bool:
    """Whether run.json, of any version, names an upload; True if it cannot be read."""
    try:
        return digest.encode() in (folder / RUN_FILE).read_bytes()
    except OSError:
        return True
