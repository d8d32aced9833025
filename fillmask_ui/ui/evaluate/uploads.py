"""Uploaded and pasted texts, kept beside the runs that need them; limited on a public page."""

import gzip
import hashlib
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError, opening
from fillmask_ui.files import finished_file
from fillmask_ui.runs import RunStore
from fillmask_ui.runs.store import RUN_FILE
from fillmask_ui.texts import TextSource

# Limits of a public page, after decompression: all rows are read to draw a sample.
PUBLIC_BYTES = 20_000_000
PUBLIC_ROWS = 200_000
_UPLOADS, _PASTED = "uploads", "pasted.txt"
_DIGITS = 12


def check_public_upload(path: Path) -> None:
    """An `OptionError` for an upload of an unknown kind, or too large once decompressed."""
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
            rows += max(block.count(b"\n"), block.count(b"\r"))  # old Macs have these alone
            _check_size(size, rows, path.name)


def _check_size(size: int, rows: int, name: str) -> None:
    if size > PUBLIC_BYTES or rows > PUBLIC_ROWS:
        raise OptionError(
            f"this public page reads at most {PUBLIC_ROWS:,} lines and "
            f"{PUBLIC_BYTES / 1e6:g} MB of text, decompressed; {name} has more: "
            "upload a part of it, or run it on your own machine"
        )


def pasted_file(text: str, root: Path, *, public: bool = False, write: bool = False) -> Path:
    """The file of pasted texts, named by their hash; an `OptionError` for none, or too many."""
    if not text.strip():
        raise OptionError("no text was pasted: write one a line, or pick the embedded texts")
    content = f"{text}\n".encode("utf-8", "backslashreplace")
    if public:
        _check_size(len(content), content.count(b"\n"), "what was pasted")
    target = _file(root, hashlib.sha256(content).hexdigest(), _PASTED)
    if write:
        target.parent.mkdir(parents=True, exist_ok=True)
        with finished_file(target) as half:
            half.write_bytes(content)
    return target


def pasted_text(where: str) -> str | None:
    """The texts of a file written by `pasted_file`, a `DataError` if gone; None for any other."""
    path = Path(where)
    if path.parent.name != _UPLOADS or path.name[_DIGITS:] != f"-{_PASTED}":
        return None
    try:
        return path.read_text("utf-8").removesuffix("\n")
    except OSError as error:
        raise DataError(f"what was pasted is gone ({error.strerror}): paste it again") from error


def _file(root: Path, digest: str, name: str) -> Path:
    return root / _UPLOADS / f"{digest[:_DIGITS]}-{name}"


def keep_upload(path: Path, root: Path) -> Path:
    """Copy an uploaded file to a name made from its hash; a `DataError` if it is gone."""
    digest = hashlib.sha256()
    with opening("texts", path.name):
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        stored = _file(root, digest.hexdigest(), path.name)
        stored.parent.mkdir(parents=True, exist_ok=True)
        return stored if stored.exists() else link_or_copy(path, stored)


def link_or_copy(path: Path, target: Path) -> Path:
    """Link or copy a file atomically."""
    try:
        os.link(path, target)
    except OSError:  # another disk, or no hard links
        with finished_file(target) as half:
            shutil.copyfile(path, half)
    return target


def uploaded_name(path: Path, root: Path) -> str:
    """The original name of a kept upload; blank for any other file."""
    return path.name[_DIGITS + 1 :] if path.parent == root / _UPLOADS else ""


def drop_upload(texts: Mapping[str, Any], store: RunStore, used: Collection[str] = ()) -> None:
    """Remove the kept upload of a deleted run, unless another run or job may need it.

    `texts` is from the deleted run's run.json; `used` holds paths of jobs that may have no run yet.
    """
    stored = Path(texts.get("where") or "")
    if not uploaded_name(stored, store.root) or str(stored) in used:
        return
    digest = stored.name[:_DIGITS].encode()
    infos = (store.folder(name) / RUN_FILE for name in store.names())
    try:  # run.json of any version may name it
        if not any(digest in info.read_bytes() for info in infos):
            stored.unlink(missing_ok=True)
    except OSError:
        return  # a run that cannot be read may need it
