"""Bytes to lines of text, in bounded memory, with the place of whatever cannot be read.

A line ends at a line feed alone; a carriage return before it belongs to the ending. (Python's
`splitlines` would also cut at form feeds and at separators inside running text.)
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fillmask_ui.errors import DataError

_CHUNK_BYTES = 1 << 16
_KNOWN_BEGINNINGS = {
    b"PAR1": "a parquet file; name it .parquet",
    b"\x1f\x8b": "compressed with gzip; name it with .gz at the end",
    b"PK\x03\x04": "a zip archive or an office document; export it as .txt or .csv",
    b"%PDF": "a PDF; extract its text first",
    codecs.BOM_UTF16_LE: "UTF-16 text; give the encoding utf-16 (--encoding utf-16)",
    codecs.BOM_UTF16_BE: "UTF-16 text; give the encoding utf-16 (--encoding utf-16)",
}


@dataclass(frozen=True)
class ByteSource:
    """Bytes that can be opened.

    Attributes:
        name: for messages.
        open: gives a binary stream from its beginning, closed at the end of the block.
    """

    name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]


def is_file(path: str | Path) -> bool:
    """Whether there is such a file; no for a name that none can have, such as one too long."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: str | Path) -> bool:
    """Whether there is such a folder, likewise."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def file_bytes(path: str, *, compressed: bool) -> ByteSource:
    """The bytes of a file.

    Raises:
        DataError: if there is no such file.
    """
    if not is_file(path):
        what = "a folder, not a file" if is_folder(path) else "not there"
        raise DataError(f"{path} is {what}; check the path of the text file")
    if compressed:
        return ByteSource(path, lambda: gzip.open(path, "rb"))
    return ByteSource(path, lambda: Path(path).open("rb"))


class Lines(Iterator[str]):
    r"""The lines of a stream, without their endings.

    Args:
        stream: of bytes.
        name: for messages.
        encoding: of the bytes.
        keep: characters of a line that are kept; the rest is read past.

    Attributes:
        number: of the line last returned, from 1.

    Raises:
        DataError: for bytes that are no text in this encoding, with the offset of the byte.

    >>> import io
    >>> list(Lines(io.BytesIO(b"one\r\ntwo\n\nfour"), "example", "utf-8", keep=100))
    ['one', 'two', '', 'four']
    """

    def __init__(self, stream: BinaryIO, name: str, encoding: str, *, keep: int) -> None:
        self.number = 0
        self._lines = self._split(_decoded(stream, name, encoding), keep)

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        return line

    @staticmethod
    def _split(pieces: Iterator[str], keep: int) -> Iterator[str]:
        tail = ""
        ended = True
        for piece in pieces:
            first, *others = piece.split("\n")
            # Beyond what is kept a line does not grow, however long it is.
            if len(tail) <= keep:
                tail += first
            ended = False
            for line in others:
                yield tail.removesuffix("\r")[:keep]
                tail = line
            if others:
                ended = not tail
        if not ended:
            yield tail.removesuffix("\r")[:keep]


def _decoded(stream: BinaryIO, name: str, encoding: str) -> Iterator[str]:
    """The text of a stream, piece by piece; no piece is empty."""
    decoder = codecs.getincrementaldecoder(encoding)()
    offset = 0
    begun = False
    while True:
        chunk = read_block(stream, name)
        if offset == 0:
            _check_beginning(chunk, name, encoding)
        pending = decoder.getstate()[0]
        try:
            piece = decoder.decode(chunk, final=not chunk)
        except UnicodeError as error:
            raise _undecodable(
                error, name, encoding, pending + chunk, offset - len(pending)
            ) from error
        offset += len(chunk)
        if piece and not begun:
            begun, piece = True, piece.removeprefix("\ufeff")
        if piece:
            yield piece
        if not chunk:
            return


def _undecodable(
    error: UnicodeError, name: str, encoding: str, data: bytes, offset: int
) -> DataError:
    """The error for data, read at an offset of the stream, that is no text."""
    # Up to Python 3.12 it has no place.
    if "start with BOM" in str(error):
        return DataError(
            f"{name} has no byte order mark, which {encoding} needs; "
            f"{_with_order(codecs.lookup(encoding).name, data)}"
        )
    place = offset + error.start
    bad = error.object[error.start : error.start + 1].hex()
    return DataError(
        f"{name} is not {encoding} text: byte 0x{bad} at offset {place:,} "
        f"({error.reason}); give its encoding, e.g. --encoding latin-1 or cp1252"
    )


def read_block(stream: BinaryIO, name: str) -> bytes:
    """The next 64 KiB of a stream, fewer at its end.

    Raises:
        DataError: if it cannot be read or decompressed; the message calls it `name`.
    """
    try:
        return stream.read(_CHUNK_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{name} cannot be decompressed ({error}); it is cut short, damaged or not gzip: "
            "get it again, or drop .gz from its name if it is plain text"
        ) from error
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror or error}") from error


def _check_beginning(chunk: bytes, name: str, encoding: str) -> None:
    wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    for beginning, what in _KNOWN_BEGINNINGS.items():
        if chunk.startswith(beginning) and not wide:
            raise DataError(f"{name} is {what}")
    if b"\0" in chunk and not wide:
        raise DataError(
            f"{name} is a binary file (a zero byte at offset {chunk.index(0):,}); text was "
            f"wanted. If it is UTF-16 text, {_with_order('utf-16', chunk)}"
        )


def _with_order(codec: str, start: bytes) -> str:
    r"""The remedy for wide text without a byte order mark: its zero bytes tell the order.

    >>> _with_order("utf-16", b"t\0e\0")
    'give the encoding utf-16-le (--encoding utf-16-le)'
    """
    little = start[1::2].count(0) >= start[::2].count(0)
    found = f"{codec}-{'le' if little else 'be'}"
    return f"give the encoding {found} (--encoding {found})"
