"""rows.jsonl of a run: one line per text, appended and flushed as it is measured.

A line holds what `EvaluatedText.to_dict` gives, or `{"id", "skipped"}`, and the checksum of the
text that it was made from. Seals of earlier versions are passed over. A line without its newline
is half-written: readers leave it out, and a resumed run drops it.
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fillmask_ui.errors import DataError, opening
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.records import InJson, SkippedText
from fillmask_ui.schema import from_json


@dataclass(frozen=True)
class StoredRow:
    """What a line holds."""

    row: Annotated[EvaluatedText | SkippedText, InJson(beside=True)]
    checksum: int  # `checksum` of the text


@dataclass(frozen=True)
class StoredLine(StoredRow):
    """One whole line."""

    start: int  # offset in bytes
    content: bytes  # its newline included


def checksum(text: str) -> int:
    """By which a text is known again: CRC-32 of its UTF-8 bytes."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def dump_row(row: EvaluatedText | SkippedText, checksum: int) -> bytes:
    """A line of the file, its newline included; the checksum is that of the text."""
    values: dict[str, Any] = (
        {"id": row.id, "skipped": row.reason} if isinstance(row, SkippedText) else row.to_dict()
    )
    values["checksum"] = checksum
    line = json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
    return line.encode("utf-8", "replace")  # of lone surrogates no JSON reader knows


def read_row(content: bytes, what: str) -> StoredRow:
    """One whole line; a `DataError`, which begins with `what`, if it is no row."""
    return from_json(StoredRow, content, what)


@dataclass(frozen=True)
class RowsFile:
    """The rows of one run, read one at a time; a file that is missing has none."""

    path: Path
    run: str  # its name
    measured: int | None = None  # rows that a run that is done must have; None while more come

    def __iter__(self) -> Iterator[StoredLine]:
        """All whole lines; a `DataError` if one is no row, and at the end if rows are missing."""
        start, seen = 0, set[int]()
        for number, content in enumerate(self._whole_lines(), start=1):
            line = self._line(content, start, f", line {number}")
            if line.row.id in seen:
                raise DataError(f"run {self.run}, line {number}: it repeats text {line.row.id}")
            seen.add(line.row.id)
            start += len(content)
            yield line
        if self.measured is not None and len(seen) < self.measured:
            raise DataError(
                f"run {self.run} measured {self.measured:,} texts and has the rows of "
                f"{len(seen):,}: measure the missing ones with fillmask-ui eval --resume "
                f"{self.run}, or delete the run"
            )

    def __len__(self) -> int:
        return sum(1 for _ in self._whole_lines())

    def _whole_lines(self) -> Iterator[bytes]:
        if self.path.exists():
            with opening("a run", self.path), self.path.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n"))

    def of(self, example: int) -> StoredLine | None:
        """The line of one text, by its id; None where it has none. Only that line is parsed."""
        head = b'{"id":%d,' % example
        found = (line for line in self._whole_lines() if line.startswith(head))
        content = next(found, None)
        return None if content is None else self._line(content, 0)

    def at(self, start: int) -> StoredLine:
        """The line that begins at an offset."""
        with opening("a run", self.path), self.path.open("rb") as file:
            file.seek(start)
            return self._line(file.readline(), start)

    def _line(self, content: bytes, start: int, where: str = "") -> StoredLine:
        found = read_row(content, f"run {self.run}{where}")
        return StoredLine(found.row, found.checksum, start, content)
