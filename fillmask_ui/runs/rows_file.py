"""rows.jsonl of a run: one line per text, appended and flushed as it is measured.

A line holds what `EvaluatedText.to_dict` gives, or `{"id", "skipped"}`, and the checksum of the
text that it was made from. A line without its newline is half-written: readers leave it out, and a
resumed run drops it.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.records import SkippedText


@dataclass(frozen=True)
class StoredLine:
    """One whole line."""

    place: str  # file and number of the line, for messages
    start: int  # offset in bytes
    end: int  # offset in bytes of what follows it
    values: dict[str, Any]  # as stored

    def row(self) -> EvaluatedText | SkippedText:
        """What was measured; a `DataError` if a field is missing or of another kind."""
        try:
            if "skipped" in self.values:
                return SkippedText(self.values["id"], self.values["skipped"])
            return EvaluatedText.from_dict(self.values)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.place} lacks or misspells a field ({error}): evaluate again"
            ) from error


def dump_row(row: EvaluatedText | SkippedText, checksum: int) -> bytes:
    """A line of the file, its newline included."""
    values: dict[str, Any] = (
        {"id": row.id, "skipped": row.reason} if isinstance(row, SkippedText) else row.to_dict()
    )
    values["checksum"] = checksum
    line = json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
    return line.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class RowsFile:
    """The rows of one run, read one at a time; a file that is missing has none."""

    path: Path

    def __iter__(self) -> Iterator[StoredLine]:
        """All whole lines as they were written; a `DataError` if one is no row."""
        end = 0
        for number, line in enumerate(self._whole_lines(), start=1):
            start, end = end, end + len(line)
            yield parse_line(line, f"line {number} of {self.path}", start)

    def __len__(self) -> int:
        return sum(1 for _ in self._whole_lines())

    def _whole_lines(self) -> Iterator[bytes]:
        if self.path.exists():
            with self.path.open("rb") as file:
                yield from itertools.takewhile(lambda line: line.endswith(b"\n"), file)

    def of(self, example: int) -> StoredLine | None:
        """The line of one text, by its id; None where it has none. Only that line is parsed."""
        start, head = 0, b'{"id":%d,' % example
        for line in self._whole_lines():
            if line.startswith(head):
                return parse_line(line, f"the line at byte {start} of {self.path}", start)
            start += len(line)
        return None

    def at(self, start: int) -> StoredLine:
        """The line that starts at an offset in bytes."""
        with self.path.open("rb") as file:
            file.seek(start)
            return parse_line(file.readline(), f"the line at byte {start} of {self.path}", start)


def parse_line(line: bytes, place: str, start: int = 0) -> StoredLine:
    """One whole line, which starts at an offset in bytes; a `DataError` if it is no row."""
    try:
        values = json.loads(line)
    except ValueError as error:
        raise DataError(f"{place} is broken ({error}): evaluate again") from error
    if not isinstance(values, dict) or "id" not in values:
        raise DataError(f"{place} is no row of a run: evaluate again")
    return StoredLine(place, start, start + len(line), values)
