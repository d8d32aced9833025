"""What is written for somebody: files whole or not at all, text without what a terminal obeys."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import TextIO

from fillmask_ui.errors import DataError, OptionError

# Files of a model, which nothing that is written for a reader may replace.
_OF_MODELS = re.compile(
    r".*\.(onnx|onnx_data|safetensors|model)"
    r"|(config|tokenizer|tokenizer_config|special_tokens_map|vocab)\.json|vocab\.txt"
)


def check_target(target: Path | None, *read: Path | str) -> None:
    """Before anything is measured: whether a file can be written there, as far as that shows.

    Args:
        target: the file; None for none.
        read: files, and folders of them, that are read meanwhile.

    Raises:
        OptionError: where there is no folder for it, a folder of this name or no permission, and
            where it would replace what is read, or a file of a model.
    """
    if target is None:
        return
    failed = f"{target} cannot be written"
    if target.name == "-":
        raise OptionError(f"{failed}: '-' is no name of a file; ./- names a file of this name")
    try:
        if any(_is_read(target, Path(own)) for own in read):
            raise OptionError(f"{failed}: it is read by this command; name another file")
        real = target.resolve()  # what a link leads to is written to
        if _is_of_run(real):
            raise OptionError(f"{failed}: it is part of a stored run; name another file")
        if _OF_MODELS.fullmatch(real.name) and real.exists():
            raise OptionError(f"{failed}: it is a file of a model; name another file")
        home = real.parent if target.is_symlink() else target.parent
        if not home.is_dir():
            raise OptionError(f"no folder {str(home)!r} to write {real.name!r} into: make it")
        mode = target.parent.stat().st_mode
        with suppress(FileNotFoundError):
            mode = target.stat().st_mode
            if stat.S_ISDIR(mode):
                raise OptionError(f"{failed}: it is a folder; name a file in it")
        # As `finished_file` writes: in place what is no regular file, else beside it.
        regular = stat.S_ISREG(mode) and not target.is_symlink()
        written = target.parent if regular or stat.S_ISDIR(mode) else target
        if not os.access(written, os.W_OK):
            raise OptionError(f"{failed}: no permission to write {written}")
    except OSError as error:
        raise OptionError(f"{failed}: {error.strerror or error}") from error


def check_apart(*targets: Path | None) -> None:
    """An `OptionError` where two files to be written are the same."""
    for first, second in combinations(filter(None, targets), 2):
        if _same(first, second):
            raise OptionError(f"{first} was named for two outputs: name two files")


def _is_read(target: Path, read: Path) -> bool:
    folders = (target.parent, target.resolve().parent) if target.exists() else ()
    return _same(target, read) or any(_same(folder, read) for folder in folders)


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except (OSError, ValueError):  # one of them is not there
        return first.absolute() == second.absolute()


# Characters that a terminal or a browser obeys instead of showing: controls, marks of direction.
_SHOWN = {code: chr(0x2400 + code) for code in range(32)} | {127: "␡"}
_SHOWN |= {
    code: f"⟨U+{code:04X}⟩"
    for code in (*range(0x80, 0xA0), 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F))
}
_SHOWN |= {code: f"⟨U+{code:04X}⟩" for code in (*range(0x2066, 0x206A), 0xFEFF)}
_SHOWN_IN_LINES = {code: shown for code, shown in _SHOWN.items() if chr(code) not in "\n\t"}


def printable(name: str) -> str:
    r"""The name of a file; bytes of it that are not UTF-8 are escaped.

    >>> printable(os.fsdecode(b"caf\xe9"))
    'caf\\udce9'
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Text of others with controls, marks of direction and lone surrogates written out.

    Args:
        text: any.
        lines: whether line feeds and tabs stay.

    >>> visible("a\x1b[31m\n\ud800")
    'a␛[31m␊\\ud800'
    """
    return printable(text).translate(_SHOWN_IN_LINES if lines else _SHOWN)


# Files in the folder of a run, which no export, report or the like may replace.
_OF_RUNS = ("run.json", "rows.jsonl", "lock", "lock.pid")


def _is_of_run(target: Path) -> bool:
    return target.name in _OF_RUNS and all((target.parent / n).is_file() for n in _OF_RUNS[:2])


@contextmanager
def finished_file(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` at the end; nothing is left where that fails.

    What is no regular file (a pipe, a device) or a link (`/dev/stdout`) is written to as it is.

    Raises:
        DataError: if it cannot be written, or is part of a stored run; an `OSError` raised inside
            is taken for the first.
    """
    if _is_of_run(Path(os.path.realpath(target))):
        raise DataError(f"{target} is part of a stored run: name another file")
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
