"""Bytes to lines of text, in bounded memory.

A line ends at a line feed alone; a carriage return before it belongs to the ending. (Python's
`splitlines` would also cut at form feeds and at separators inside running text.)
"""

import gzip
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from fillmask_ui.errors import DataError, opening

_PIECE_CHARACTERS = 1 << 16
# What stands for bytes that cannot be decoded, and zero bytes: UTF-16 that is read as UTF-8 has
# them, and would be measured as other characters than it holds.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")


def is_file(path: str | Path) -> bool:
    """Whether there is such a file."""
    return os.path.exists(path) and not is_folder(path)  # noqa: PTH110 - Path raises


def is_folder(path: str | Path) -> bool:
    """Whether there is such a folder."""
    return os.path.isdir(path)  # noqa: PTH112 - Path raises


@dataclass(frozen=True)
class ByteSource:
    """Bytes that can be opened."""

    name: str  # for messages
    # gives a binary stream from its beginning, closed at the end of the block
    open: Callable[[], AbstractContextManager[Any]]

    def lines(self, encoding: str = "utf-8", keep: int | None = None) -> Iterator[str]:
        r"""The lines without their endings and a byte order mark, each as soon as it is there.

        Of a line `keep` characters are kept, all if it is None; the rest is read past. A
        `DataError` if the bytes cannot be read or decompressed, or are not text.

        >>> list(ByteSource("example", lambda: io.BytesIO(b"one\r\ntwo\n\nfour")).lines())
        ['one', 'two', '', 'four']
        """
        most = sys.maxsize if keep is None else keep + 3  # the mark, the ending
        line, number = "", 1
        with opening("texts", self.name), self.open() as stream:
            text = io.TextIOWrapper(stream, encoding, "surrogateescape", newline="\n")
            try:
                while piece := text.readline(_PIECE_CHARACTERS):
                    if _NO_TEXT.search(piece):
                        raise DataError(
                            f"line {number} of {self.name} is not {encoding.upper()}: save a text "
                            "as UTF-8, or give --encoding utf-16, latin-1, cp1252, ..."
                        )
                    piece = piece.removeprefix("\ufeff") if number == 1 and not line else piece
                    line += piece[: most - len(line)]
                    if piece.endswith("\n"):
                        yield line.removesuffix("\n").removesuffix("\r")[:keep]
                        line, number = "", number + 1
                if line:
                    yield line.removesuffix("\r")[:keep]
            finally:
                text.detach()  # else it closes what it was given


def file_bytes(path: str, *, compressed: bool = False, name: str | None = None) -> ByteSource:
    """The bytes of a file, called by its path or another name in messages."""
    opened: Any = gzip.open if compressed else open
    return ByteSource(name or path, partial(opened, path, "rb"))


def standard_input(stream: IO[bytes] | None = None) -> ByteSource:
    """Standard input, or what stands for it; it can be read once."""
    return ByteSource("standard input", lambda: nullcontext(stream or sys.stdin.buffer))
