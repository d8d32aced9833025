"""Files that a command or the page writes for somebody: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fillmask_ui.errors import DataError


@contextmanager
def finished_file(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` at the end; nothing is left where that fails.

    What is no regular file (a pipe, a device) or a link (`/dev/stdout`) is written to as it is.

    Raises:
        DataError: if it cannot be written; an `OSError` raised inside is taken for that.
    """
    try:
        if target.is_symlink() or (target.exists() and not target.is_file()):
            yield target
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=target.suffix)
        os.close(handle)
        fresh = Path(name)
        try:
            yield fresh
            fresh.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
            fresh.replace(target)
        finally:
            with suppress(OSError):
                fresh.unlink()
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error


@contextmanager
def text_file(target: Path) -> Iterator[TextIO]:
    r"""A UTF-8 file to write, as `finished_file`; what UTF-8 cannot hold is escaped (`\udcff`)."""
    with (
        finished_file(target) as fresh,
        fresh.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        yield file


def write_text(text: str, target: Path) -> None:
    """Write a file, as `text_file`."""
    with text_file(target) as file:
        file.write(text)


def _umask() -> int:
    """The process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
