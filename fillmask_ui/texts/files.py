"""Files and folders of texts, and the lines of a file in bounded memory.

A line ends at a line feed alone; a carriage return before it belongs to the ending. In a file
without line feeds, as old Macs wrote them, it ends lines itself. (Python's `splitlines` would also
cut at form feeds and at separators inside running text.)
"""

import gzip
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from fillmask_ui.errors import DataError, opening

FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
# Other endings of the same formats.
_IN_FOLDERS = {name: name for name in FORMATS} | {"text": "txt", "ndjson": "jsonl", "pq": "parquet"}
# In a folder, such files hardly hold texts: they count only if named.
ENDINGS = {**_IN_FOLDERS, "json": "jsonl", "log": "txt"}
# Files by which the datasets library marks a data set.
_MARKS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
# A split in the name of a file or folder (Source: Hugging Face datasets, `data_files.py`).
_SPLIT = re.compile(
    "(^|[-._ 0-9])(train(ing)?|valid(ation)?|dev|val|test(ing)?|eval(uation)?)($|[-._ 0-9])"
)
_PART_CHARACTERS = 1 << 16
# Undecodable bytes and zero bytes, as in UTF-16 read as UTF-8, which would be measured as other
# characters than the file holds.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")


def is_folder(path: str | Path) -> bool:
    """`Path.is_dir`, but False for names on which that raises."""
    return os.path.isdir(path)  # noqa: PTH112


def is_file(path: str | Path) -> bool:
    """Whether a file, pipe or device of that name exists."""
    return os.path.exists(path) and not is_folder(path)  # noqa: PTH110 - Path raises


def ending(name: str) -> str:
    """The lower-case suffix of a name, ignoring .gz.

    >>> ending("News.CSV.gz")
    'csv'
    """
    return Path(name.lower().removesuffix(".gz")).suffix.removeprefix(".")


def text_files(folder: str | Path) -> list[Path]:
    """The files of known endings in a folder, or else in its subfolders; by name."""
    files = _find_text_files(Path(folder))
    if not files:
        raise DataError(
            f"the folder {folder} has no file that ends in .{', .'.join(_IN_FOLDERS)} (text files "
            "also with .gz); of a data set of the datasets library, name the split (--split train)"
        )
    return files


def is_data_set(folder: Path) -> bool:
    """Whether a folder is laid out for the datasets library.

    It has names of splits (`test.csv`, `test-00000-of-00002.parquet`, `train/`), the library's own
    files, a card that describes the data, or subfolders and none of the files of `text_files`.
    """
    top, files = _entries(folder), _find_text_files(folder)
    names = [path.name for path in top if is_folder(path)]
    if any(path.name in _MARKS for path in top) or (names and not files):
        return True
    names += [part for path in files for part in path.relative_to(folder).parts]
    if any(map(_SPLIT.search, names)):
        return True
    # A card whose YAML lists the files of a data set.
    with suppress(OSError), (folder / "README.md").open("rb") as file:
        header = file.read(1 << 16).split(b"\n---", 1)[0]
        return bool(re.match(rb"---\r?\n(.*\n)*(configs|dataset_info):", header))
    return False


def _entries(folder: Path) -> list[Path]:
    with opening("texts", folder):
        visible = (path for path in folder.iterdir() if not path.name.startswith("."))
        return sorted(visible, key=lambda path: path.name)


def _find_text_files(folder: Path) -> list[Path]:
    paths = _entries(folder)
    files = [path for path in paths if ending(path.name) in _IN_FOLDERS and not is_folder(path)]
    # A link may form a cycle.
    inner = (path for path in paths if is_folder(path) and not path.is_symlink())
    return files or [file for path in inner for file in _find_text_files(path)]


@dataclass(frozen=True)
class ByteSource:
    """Bytes that can be opened."""

    name: str  # for messages
    # opens a binary stream, closed at the end of the block
    open: Callable[[], AbstractContextManager[Any]]

    def lines(self, encoding: str = "utf-8", keep: int | None = None) -> Iterator[str]:
        r"""The lines without endings or byte order mark, cut at `keep` characters.

        >>> list(ByteSource("example", lambda: io.BytesIO(b"one\r\ntwo\n\nfour")).lines())
        ['one', 'two', '', 'four']
        >>> list(ByteSource("example", lambda: io.BytesIO(b"one\rtwo")).lines())
        ['one', 'two']
        """
        most = sys.maxsize if keep is None else keep + 3  # the mark, the ending
        line, number = "", 1
        with opening("texts", self.name), self.open() as stream:
            text = io.TextIOWrapper(stream, encoding, "surrogateescape", newline="\n")
            try:
                for part in _line_parts(text):
                    if _NO_TEXT.search(part):
                        raise DataError(
                            f"line {number} of {self.name} is not {encoding.upper()}: save a text "
                            "as UTF-8, or give --encoding utf-16, latin-1, cp1252, ..."
                        )
                    first = number == 1 and not line
                    line += part.removeprefix("\ufeff" if first else "")[: most - len(line)]
                    if part.endswith("\n"):
                        yield line.removesuffix("\n").removesuffix("\r")[:keep]
                        line, number = "", number + 1
                if line:
                    yield line.removesuffix("\r")[:keep]
            finally:
                text.detach()  # or it would close the stream


def _line_parts(text: io.TextIOWrapper) -> Iterator[str]:
    """Lines or parts of them; a line feed stands at the end of a line alone."""
    part = text.readline(_PART_CHARACTERS)
    returns_end_lines = not part.endswith("\n") and "\r" in part[:-1]
    while part:
        if returns_end_lines:
            *lines, part = part.split("\r")
            yield from (f"{line}\n" for line in lines)
        if part:
            yield part
        part = text.readline(_PART_CHARACTERS)


def file_bytes(path: str, *, compressed: bool = False, name: str | None = None) -> ByteSource:
    """The bytes of a file; messages use `name`, by default its path."""
    opened: Any = gzip.open if compressed else open
    return ByteSource(name or path, partial(opened, path, "rb"))


def standard_input(stream: IO[bytes] | None = None) -> ByteSource:
    """Standard input, or `stream` in its place; can be read once."""
    return ByteSource("standard input", lambda: nullcontext(stream or sys.stdin.buffer))
