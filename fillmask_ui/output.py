"""What is written for somebody: files whole or not at all, text without what a terminal obeys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from fillmask_ui.errors import DataError, OptionError

# Files of a model, which nothing that is written for a reader may replace.
_OF_MODELS = re.compile(
    r".*\.(onnx|onnx_data|safetensors|model)"
    r"|(config|tokenizer|tokenizer_config|special_tokens_map|vocab)\.json|vocab\.txt"
)


def check_target(target: Path | None, *read: Path, folder: str | Path | None = None) -> None:
    """Whether a file can be written, before anything is measured for it.

    Args:
        target: the file; None if there is none to write.
        read: files that are read meanwhile, or other files to be written.
        folder: of texts that are read meanwhile, if it is one.

    Raises:
        OptionError: if its folder is missing, it is a folder, may not be written, or would replace
            what is read, a file of a model or a part of a stored run.
    """
    if target is None:
        return
    failed = f"{target} cannot be written"
    real = target.resolve()  # a link is written to where it leads
    if any(_same(target, Path(own)) for own in read):
        raise OptionError(f"{failed}: it was named twice; name another file")
    if folder and target.exists() and Path(folder).resolve() in real.parents:
        raise OptionError(f"{failed}: it is one of the texts; name another file")
    if _is_of_run(real):
        raise OptionError(f"{failed}: it is part of a stored run; name another file")
    if _OF_MODELS.fullmatch(real.name) and real.exists():
        raise OptionError(f"{failed}: it is a file of a model; name another file")
    if not real.parent.is_dir():
        home = real.parent if target.is_symlink() else target.parent
        raise OptionError(f"no folder {str(home)!r} to write {real.name!r} into: make it")
    if real.is_dir():
        raise OptionError(f"{failed}: it is a folder; name a file in it")
    # As `finished_file` writes: in place what is not a regular file, else beside it.
    own = real if real.exists() and (target.is_symlink() or not real.is_file()) else real.parent
    if not os.access(own, os.W_OK):
        raise OptionError(f"{failed}: no permission to write {own}")


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except (OSError, ValueError):  # one of them does not exist
        return first.absolute() == second.absolute()


# Characters that a terminal or a browser obeys instead of showing: controls, marks of direction.
_SHOWN = {code: chr(0x2400 + code) for code in range(32)} | {127: "␡"}
_HIDDEN = (*range(0x80, 0xA0), 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F))
_SHOWN |= {code: f"⟨U+{code:04X}⟩" for code in (*_HIDDEN, *range(0x2066, 0x206A), 0xFEFF)}
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
_OF_RUNS = ("run.json", "rows.jsonl")


def _is_of_run(target: Path) -> bool:
    return target.name in _OF_RUNS and all((target.parent / own).is_file() for own in _OF_RUNS)


@contextmanager
def finished_file(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` at the end; a failure leaves nothing behind.

    What is not a regular file (a pipe, a device), and a link, is written to directly.

    Raises:
        DataError: if it cannot be written, or is part of a stored run; an `OSError` raised inside
            is taken for the first.
    """
    if _is_of_run(target.resolve()):
        raise DataError(f"{target} is part of a stored run: name another file")
    try:
        if target.is_symlink() or (target.exists() and not target.is_file()):
            yield target
            return
        # Not `tempfile`, whose files are for their owner alone whatever the umask says.
        fresh = target.with_name(f".{os.getpid()}-{target.name}")
        try:
            yield fresh
            if target.exists():
                fresh.chmod(target.stat().st_mode)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error


@contextmanager
def text_file(target: Path) -> Iterator[TextIO]:
    r"""A UTF-8 file to write, as `finished_file`; lone surrogates are escaped (`\udcff`)."""
    with (
        finished_file(target) as fresh,
        fresh.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        yield file


def write_text(text: str, target: Path) -> None:
    """Write a file, as `text_file`."""
    with text_file(target) as file:
        file.write(text)
