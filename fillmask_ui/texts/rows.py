"""Rows of text files: lines, paragraphs, comma- and tab-separated values, JSON lines.

Each class offers `count()` and `texts()`; both read from the beginning and hold one row.
"""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from fillmask_ui.errors import DataError
from fillmask_ui.texts.lines import ByteSource, Lines
from fillmask_ui.texts.source import PARAGRAPH, TextSource

# A text is used up to here (`texts.py` counts those that are longer): a hundred times what the
# longest contexts hold, and little enough that no single line fills the memory.
MAX_CHARACTERS = 1_000_000
# A row of a structured file cannot be cut and still be parsed.
MAX_ROW_CHARACTERS = 16_000_000


class Rows(Protocol):
    """The texts of a data set in its own order.

    Attributes:
        name: for messages.
    """

    name: str

    def count(self) -> int:
        """Number of rows."""

    def texts(self) -> Iterator[str]:
        """One text a row; null values are empty texts."""


def text_rows(source: TextSource, data: ByteSource) -> Rows:
    """The rows of a text file or stream, by its layout."""
    if source.layout == "jsonl":
        return JsonRows(data, source.encoding, source.column)
    if source.layout in ("csv", "tsv"):
        return TableRows(data, source.encoding, source.column, tabs=source.layout == "tsv")
    if source.by == PARAGRAPH:
        return ParagraphRows(data, source.encoding)
    return LineRows(data, source.encoding)


@contextmanager
def _lines(data: ByteSource, encoding: str, keep: int) -> Iterator[Lines]:
    try:
        opened = data.open()
    except OSError as error:
        raise DataError(f"{data.name} cannot be opened: {error.strerror or error}") from error
    with opened as stream:
        yield Lines(stream, data.name, encoding, keep=keep)


@dataclass(frozen=True)
class _FileRows(ABC):
    """What the forms of a file share; counted by reading unless a form knows better."""

    data: ByteSource
    encoding: str

    @property
    def name(self) -> str:
        return self.data.name

    def count(self) -> int:
        return sum(1 for _ in self.texts())

    @abstractmethod
    def texts(self) -> Iterator[str]: ...


@dataclass(frozen=True)
class LineRows(_FileRows):
    """Each line is a text, blank ones included."""

    def texts(self) -> Iterator[str]:
        # One more than is used, so that a cut can be seen.
        with _lines(self.data, self.encoding, MAX_CHARACTERS + 1) as lines:
            yield from lines


@dataclass(frozen=True)
class ParagraphRows(_FileRows):
    """Each run of lines that are not blank is a text; its line breaks stay."""

    def texts(self) -> Iterator[str]:
        with _lines(self.data, self.encoding, MAX_CHARACTERS + 1) as lines:
            paragraph: list[str] = []
            size = 0
            for line in lines:
                if line.strip():
                    if size <= MAX_CHARACTERS:
                        paragraph.append(line)
                        size += len(line) + 1
                elif paragraph:
                    yield "\n".join(paragraph)
                    paragraph, size = [], 0
            if paragraph:
                yield "\n".join(paragraph)


@dataclass(frozen=True)
class JsonRows(_FileRows):
    """Each line that is not blank is a JSON object; one of its fields is the text."""

    column: str | None

    def count(self) -> int:
        with _lines(self.data, self.encoding, MAX_ROW_CHARACTERS + 1) as lines:
            return sum(1 for line in lines if line.strip())

    def texts(self) -> Iterator[str]:
        column = self.column
        with _lines(self.data, self.encoding, MAX_ROW_CHARACTERS + 1) as lines:
            for line in lines:
                if not line.strip():
                    continue
                place = f"{self.name}, line {lines.number}"
                record = _json_object(line, place)
                if column is None:
                    column = choose_column(list(record), None, place)
                elif column not in record:
                    raise missing_column(column, list(record), place)
                yield as_text(record[column], column, place)


def _json_object(line: str, place: str) -> dict[str, object]:
    _check_length(line, place)
    try:
        # No number is a text, and Python refuses an integer of thousands of digits.
        record = json.loads(line, parse_int=float)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{place}: not JSON ({error.msg} at character {error.pos}); each line must be one "
            'object such as {"text": "..."}'
        ) from error
    except RecursionError as error:
        raise DataError(f"{place}: JSON nested too deeply to be read") from error
    if not isinstance(record, dict):
        raise DataError(
            f'{place}: an object such as {{"text": "..."}} was wanted; it is a {_json_name(record)}'
        )
    return record


@dataclass(frozen=True)
class TableRows(_FileRows):
    """Comma- or tab-separated values with a header; quoted fields may span lines.

    A tab-separated file follows the same rules for quotes, as spreadsheets write it.
    """

    column: str | None
    tabs: bool

    def texts(self) -> Iterator[str]:
        # The limit of the csv module is one for the whole process: raised, never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_CHARACTERS))
        with _lines(self.data, self.encoding, MAX_ROW_CHARACTERS + 1) as lines:
            reader = csv.reader(
                self._with_endings(lines), delimiter="\t" if self.tabs else ",", strict=True
            )
            records = self._records(reader)
            header = next(records, None)
            if header is None:
                return
            index = header.index(choose_column(header, self.column, self.name))
            for record in records:
                if len(record) != len(header):
                    raise DataError(
                        f"{self.name}, line {reader.line_num}: {len(record)} values where the "
                        f"header has {len(header)}; put values that hold "
                        f"{'tabs' if self.tabs else 'commas'} or line breaks between quotes"
                    )
                yield record[index]

    def _with_endings(self, lines: Lines) -> Iterator[str]:
        for line in lines:
            _check_length(line, f"{self.name}, line {lines.number}")
            yield line + "\n"

    def _records(self, reader: Iterator[list[str]]) -> Iterator[list[str]]:
        """Records that are not blank."""
        begun = 0
        while True:
            try:
                record = next(reader, None)
            except csv.Error as error:
                raise DataError(
                    f"{self.name}, line {reader.line_num} (row begun at line {begun + 1}): not "
                    f"{'tab' if self.tabs else 'comma'}-separated values ({error}); quotes inside "
                    'a quoted value are doubled ("")'
                ) from error
            if record is None:
                return
            begun = reader.line_num
            if record:
                yield record


def _check_length(line: str, place: str) -> None:
    if len(line) > MAX_ROW_CHARACTERS:
        raise DataError(
            f"{place}: longer than {MAX_ROW_CHARACTERS:,} characters; one row a line was wanted"
        )


def choose_column(columns: list[str], asked: str | None, place: str) -> str:
    """The column that holds the texts: the one asked for, else `text`, else the only one.

    Raises:
        DataError: if it is not there, or several could be meant; the known ones are listed.

    >>> choose_column(["label", "text"], None, "example")
    'text'
    """
    if asked is not None:
        if asked not in columns:
            raise missing_column(asked, columns, place)
        return asked
    if "text" in columns:
        return "text"
    if len(columns) == 1:
        return columns[0]
    raise DataError(
        f"{place}: which column holds the texts? It has {_listed(columns)}; choose one "
        "(--column input_column=NAME)"
    )


def missing_column(column: str, columns: list[str], place: str) -> DataError:
    """The error for a column that is not there, with those that are."""
    return DataError(
        f"{place}: no column {column!r}; it has {_listed(columns)}; choose one "
        "(--column input_column=NAME)"
    )


def _listed(columns: list[str]) -> str:
    shown = ", ".join(repr(column) for column in columns[:20]) or "no columns"
    return shown + (f" and {len(columns) - 20} more" if len(columns) > 20 else "")


def as_text(value: object, column: str, place: str) -> str:
    """A value as a text; null is an empty text.

    Raises:
        DataError: if it is neither text nor null.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise DataError(
        f"{place}: column {column!r} holds a {_json_name(value)}, text was wanted; choose another "
        "column (--column input_column=NAME)"
    )


def _json_name(value: object) -> str:
    names = {dict: "object", list: "list", bool: "truth value", str: "string", type(None): "null"}
    return names.get(type(value), "number" if isinstance(value, int | float) else "value")
