"""Texts that a command reads from a file, one per line, or from standard input."""

from __future__ import annotations

from collections.abc import Iterator

from fillmask_ui.errors import DataError, OptionError


def check_file(file: str) -> None:
    """An `OptionError` if there is no such file; `-` is standard input."""
    from fillmask_ui.texts.files import is_file

    if file != "-" and not is_file(file):
        raise OptionError(f"no file {file!r}: give an existing text file, or - for standard input")


def file_texts(file: str, *, needed: bool) -> Iterator[str]:
    """Lines of a file, or of standard input as they come; blank ones are left out.

    Raises:
        DataError: if it cannot be read, is not UTF-8, or has no text and one is needed.
    """
    from fillmask_ui.filling.prompt import MAX_CHARACTERS
    from fillmask_ui.texts.files import file_bytes, standard_input

    data = standard_input() if file == "-" else file_bytes(file, name=repr(file))
    for line in data.lines(keep=MAX_CHARACTERS + 1):  # of which a longer one is refused
        if line.strip():
            needed = False
            yield line
    if needed:
        raise DataError(f"{data.name} has no text: one sentence a line is wanted")
