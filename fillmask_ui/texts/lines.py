"""Bytes to lines of text, in bounded memory.

A line ends at a line feed alone; a carriage return before it belongs to the ending. (Python's
`splitlines` would also cut at form feeds and at separators inside running text.)
"""

import gzip
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
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
    """Whether there is such a file; False for a name that no file can have, as one too long."""
    return os.path.exists(path) and not os.path.isdir(path)  # noqa: PTH110, PTH112 - Path raises


def is_folder(path: str | Path) -> bool:
    """Whether there is such a folder; False for a name that no folder can have."""
    return os.path.isdir(path)  # noqa: PTH112 - Path raises


@dataclass(frozen=True)
class ByteSource:
    """Bytes that can be opened."""

    name: str  # for messages
    # gives a binary stream from its beginning, closed at the end of the block
    open: Callable[[], AbstractContextManager[Any]]

    def pieces(self, encoding: str = "utf-8") -> Iterator[str]:
        """The text without a byte order mark, in pieces that end with a line or are 64 Ki long.

        Raises:
            DataError: if the bytes cannot be read or decompressed, or are not text.
        """
        number, mark = 1, "\ufeff"
        with opening("texts", self.name), self.open() as stream:
            text = io.TextIOWrapper(stream, encoding, "surrogateescape", newline="\n")
            try:
                for piece in iter(partial(text.readline, _PIECE_CHARACTERS), ""):
                    if _NO_TEXT.search(piece):
                        raise DataError(
                            f"line {number} of {self.name} is not {encoding.upper()} text: it is a "
                            "binary file or of another encoding; save it as UTF-8, or give its "
                            "encoding (--encoding utf-16, latin-1 or cp1252)"
                        )
                    if whole := piece.removeprefix(mark):
                        yield whole
                    number, mark = number + piece.endswith("\n"), ""
            finally:
                text.detach()  # else it closes what it was given

    def lines(self, encoding: str = "utf-8", keep: int | None = None) -> Iterator[str]:
        r"""The lines without their endings, each as soon as it is there.

        Args:
            encoding: of the bytes.
            keep: characters of a line that are kept, the rest is read past; None for all.

        Raises:
            DataError: as of `pieces`.

        >>> list(ByteSource("example", lambda: io.BytesIO(b"one\r\ntwo\n\nfour")).lines())
        ['one', 'two', '', 'four']
        """
        return joined(self.pieces(encoding), keep)


def joined(pieces: Iterable[str], keep: int | None = None) -> Iterator[str]:
    """The lines of `ByteSource.pieces`, of each of which at most `keep` characters are held."""
    most = sys.maxsize if keep is None else keep + 2  # the ending of a line
    line: str | None = None
    for piece in pieces:
        line = (line or "") + piece[: most - len(line or "")]
        if piece.endswith("\n"):
            yield line.removesuffix("\n").removesuffix("\r")[:keep]
            line = None
    if line is not None:
        yield line.removesuffix("\r")[:keep]


def file_bytes(path: str, *, compressed: bool = False, name: str | None = None) -> ByteSource:
    """The bytes of a file, called by its path or another name in messages."""
    opened: Any = gzip.open if compressed else open
    return ByteSource(name or path, partial(opened, path, "rb"))


def standard_input(stream: IO[bytes] | None = None) -> ByteSource:
    """Standard input, or what stands for it; it can be read once."""
    return ByteSource("standard input", lambda: nullcontext(stream or sys.stdin.buffer))
