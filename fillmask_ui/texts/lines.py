"""Bytes to lines of text, in bounded memory, with the place of whatever cannot be read.

A line ends at a line feed alone; a carriage return before it belongs to the ending. (Python's
`splitlines` would also cut at form feeds and at separators inside running text.)
"""

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from fillmask_ui.errors import DataError

_BLOCK_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_KNOWN_BEGINNINGS = {
    b"PAR1": "a parquet file; name it .parquet",
    _GZIP: "compressed with gzip; name it with .gz at the end",
    b"PK\x03\x04": "a zip archive or an office document; export it as .txt or .csv",
    b"%PDF": "a PDF; extract its text first",
    codecs.BOM_UTF16_LE: "UTF-16 text; give the encoding utf-16 (--encoding utf-16)",
    codecs.BOM_UTF16_BE: "UTF-16 text; give the encoding utf-16 (--encoding utf-16)",
}


def is_file(path: str | Path) -> bool:
    """Whether there is such a file or pipe; no for a name that none can have, as one too long."""
    with suppress(OSError, ValueError):
        return Path(path).exists() and not Path(path).is_dir()
    return False


def is_folder(path: str | Path) -> bool:
    """Whether there is such a folder; no for a name that none can have."""
    with suppress(OSError, ValueError):
        return Path(path).is_dir()
    return False


def is_pipe(path: str | Path) -> bool:
    """Whether it is a pipe with a name, which can be read only once."""
    with suppress(OSError, ValueError):
        return Path(path).is_fifo()
    return False


@dataclass(frozen=True)
class ByteSource:
    """Bytes that can be opened."""

    name: str  # for messages
    # gives a binary stream from its beginning, closed at the end of the block
    open: Callable[[], AbstractContextManager[Any]]

    def lines(self, encoding: str | None = None, keep: int | None = None) -> Iterator[str]:
        r"""The lines without their endings and without a byte order mark.

        Args:
            encoding: of the bytes; None where only UTF-8 is taken: then each line comes as soon
                as it is there, and an error has the number of its line.
            keep: characters of a line that are kept, the rest is read past; None for all.

        Raises:
            DataError: if the bytes cannot be read or decompressed, or are no text.

        >>> list(ByteSource("example", lambda: io.BytesIO(b"one\r\ntwo\n\nfour")).lines())
        ['one', 'two', '', 'four']
        """
        decoder = codecs.getincrementaldecoder(encoding or "utf-8")()
        most = sys.maxsize if keep is None else keep + 2  # a byte order mark, a carriage return
        block, line = b"\n", ""
        size = begun = number = 0  # bytes so far, those before the line, and lines before it

        def finished() -> str:
            return (line if number else line.removeprefix("\ufeff")).removesuffix("\r")[:keep]

        with explained(self.name), self.open() as stream:
            while block:
                block = (stream.readline if encoding is None else stream.read1)(_BLOCK_BYTES)
                if encoding is not None and not size:
                    self._check_beginning(block, encoding)
                size += len(block)
                try:
                    *ends, rest = decoder.decode(block, not block).split("\n")
                except UnicodeError as error:
                    place = f"line {number + 1} of {self.name}" if encoding is None else self.name
                    read = size - begun if encoding is None else size
                    raise _undecodable(error, place, encoding, block, read) from error
                for end in ends:
                    line += end[: most - len(line)]
                    yield finished()
                    line, begun, number = "", size, number + 1
                line += rest[: most - len(line)]
            if line and (number or line != "\ufeff"):
                yield finished()

    def _check_beginning(self, block: bytes, encoding: str) -> None:
        if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
            return
        for beginning, what in _KNOWN_BEGINNINGS.items():
            if block.startswith(beginning):
                twice = beginning == _GZIP and self.name.lower().endswith(".gz")
                said = "compressed twice; decompress it once" if twice else what
                raise DataError(f"{self.name} is {said}")
        if b"\0" in block:
            raise DataError(
                f"{self.name} is a binary file (a zero byte at offset {block.index(0):,}); text "
                f"was wanted. If it is UTF-16 text, {_with_order('utf-16', block)}"
            )


def _undecodable(
    error: UnicodeError, place: str, encoding: str | None, block: bytes, size: int
) -> DataError:
    """The error for bytes that are no text, of which `size` were read at `place`."""
    # Up to Python 3.12 this one has no place.
    if not isinstance(error, UnicodeDecodeError) or "start with BOM" in str(error):
        remedy = _with_order(codecs.lookup(encoding or "utf-8").name, block)
        return DataError(f"{place} has no byte order mark, which {encoding} needs; {remedy}")
    offset = size - len(error.object) + error.start
    if encoding is None:
        return DataError(f"{place} is not UTF-8 (byte {offset}): save the file as UTF-8")
    return DataError(
        f"{place} is not {encoding} text: byte 0x{error.object[error.start]:02x} at offset "
        f"{offset:,} ({error.reason}); give its encoding, e.g. --encoding latin-1 or cp1252"
    )


def _with_order(codec: str, start: bytes) -> str:
    r"""The remedy for wide text without a byte order mark: its zero bytes tell the order.

    >>> _with_order("utf-16", b"t\0e\0")
    'give the encoding utf-16-le (--encoding utf-16-le)'
    """
    little = start[1::2].count(0) >= start[::2].count(0)
    found = f"{codec}-{'le' if little else 'be'}"
    return f"give the encoding {found} (--encoding {found})"


def file_bytes(path: str, *, compressed: bool = False, name: str | None = None) -> ByteSource:
    """The bytes of a file, called by its path or another name.

    A `DataError` if it is not there, or is a device that need not end, as `/dev/zero`.
    """
    if not is_file(path):
        here = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
        what = "a folder, not a file" if is_folder(path) else f"not there{here}"
        if os.path.islink(path) and not is_folder(path):  # noqa: PTH114 - Path raises for some names
            what = "a link that leads nowhere"
        raise DataError(f"{path} is {what}; check the path of the text file")
    if Path(path).is_char_device() and not Path(path).samefile(os.devnull):
        raise DataError(f"{path} is a device, not a file; to read a terminal, give - in place")
    opened: Any = gzip.open if compressed else open
    return ByteSource(name or path, partial(opened, path, "rb"))


def standard_input(stream: IO[bytes] | None = None, *, again: bool = False) -> ByteSource:
    """Standard input, or what stands for it; read from its beginning `again` where it can be."""
    stream = stream or sys.stdin.buffer

    def opened() -> AbstractContextManager[Any]:
        if again:
            stream.seek(0)
        return nullcontext(stream)

    return ByteSource("standard input", opened)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Failures of reading and decompressing as errors with a remedy that call the bytes `name`."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{name} cannot be decompressed ({error}); it is cut short, damaged or not gzip: "
            "get it again, or drop .gz from its name if it is plain text"
        ) from error
    except OSError as error:
        raise DataError(
            f"{name} cannot be read ({error.strerror or error}): check that it may be read"
        ) from error


def read_block(stream: io.BufferedIOBase, name: str) -> bytes:
    """The next bytes of a stream, 64 KiB at most, none at its end; errors call it `name`."""
    with explained(name):
        return stream.read(_BLOCK_BYTES)
