"""Rows of files: lines, paragraphs, comma- and tab-separated values, JSON, parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator
from importlib import import_module
from itertools import chain, groupby
from typing import Any

from fillmask_ui.errors import DataError, opening
from fillmask_ui.texts.lines import ByteSource
from fillmask_ui.texts.source import PARAGRAPH, TextSource

# A text is used up to here (`reading.py` counts those that are longer): a hundred times what the
# longest contexts hold, and little enough that no single line fills the memory.
MAX_CHARACTERS = 1_000_000
# The csv module refuses longer values, as of a quote that is never closed.
_MAX_FIELD_CHARACTERS = 16_000_000
_PARQUET_ROWS_AT_ONCE = 64
# Column chunks are read through a buffer of this size instead of whole.
_PARQUET_BUFFER_BYTES = 1 << 20


def read_rows(source: TextSource, data: ByteSource) -> Iterator[str]:
    """One text per row of a text file or stream; blank lines are rows of plain text alone."""
    if source.layout == "txt":
        # One more than is used, so that a cut can be seen.
        lines = data.lines(source.encoding, MAX_CHARACTERS + 1)
        return _paragraphs(lines) if source.by == PARAGRAPH else lines
    return (_json_values if source.layout == "jsonl" else _table_values)(source, data)


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    """Each run of lines that are not blank is a text; its line breaks stay."""
    for filled, run in groupby(lines, key=lambda line: bool(line.strip())):
        if filled:
            text = ""
            for line in run:
                if len(text) <= MAX_CHARACTERS + 1:
                    text += f"{line}\n"
            yield text[:-1]


def _json_values(source: TextSource, data: ByteSource) -> Iterator[str]:
    """One field of each object: of one a line, blank lines apart, or of those of an array."""
    column = source.column
    for place, record in _records(data.lines(source.encoding), data.name):
        if not isinstance(record, dict):
            raise DataError(f'{place}: an object such as {{"text": "..."}} was wanted')
        if column not in record:
            column = choose_column(record, column, place)
        yield as_text(record[column], str(column), place)


def _records(lines: Iterator[str], name: str) -> Iterator[tuple[str, object]]:
    first = next(lines, "")
    lines = chain([first], lines)
    if first.lstrip().startswith("["):
        with opening("texts", name):
            records = json.loads("\n".join(lines))
        for number, record in enumerate(records, start=1):
            yield f"{name}, element {number}", record
    for number, line in enumerate(lines, start=1):
        if line.strip():
            place = f"{name}, line {number}"
            with opening("texts", place):
                record = json.loads(line)
            yield place, record


def _table_values(source: TextSource, data: ByteSource) -> Iterator[str]:
    """Comma- or tab-separated values with a header; either may quote fields that span lines."""
    csv.field_size_limit(_MAX_FIELD_CHARACTERS)
    lines = data.lines(source.encoding)
    head = next(lines, "")
    mark = "\t" if source.layout == "tsv" else ","
    if mark == "," and "," not in head and ";" in head:  # as spreadsheets write in many places
        mark = ";"
    rows = (line + "\n" for line in chain([head], lines))
    reader = csv.reader(rows, delimiter=mark, strict=True)
    try:
        header = next(filter(None, reader), [])
        index = header.index(choose_column(header, source.column, data.name)) if header else 0
        for record in filter(None, reader):
            if len(record) != len(header):
                raise csv.Error(
                    f"{len(record)} values where the header has {len(header)}; put values that "
                    "hold separators or line breaks between quotes"
                )
            yield record[index]
    except csv.Error as error:
        raise DataError(f"{data.name}, line {reader.line_num}: {error}") from error


def read_parquet(path: str, asked: str | None) -> Iterator[str]:
    """One text per row."""
    opened = optional_library("pyarrow.parquet").ParquetFile
    with (
        opening("texts", path),
        opened(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file,
    ):
        column = choose_column(file.schema_arrow.names, asked, path)
        for batch in file.iter_batches(_PARQUET_ROWS_AT_ONCE, columns=[column], use_threads=False):
            for value in batch.column(0).to_pylist():
                yield as_text(value, column, path)


def optional_library(name: str) -> Any:
    """A module of a library that comes with the extra `hub`; a `DataError` without it."""
    try:
        return import_module(name)
    except ImportError as error:
        needed = 'pip install "fillmask-ui[hub]"'
        raise DataError(f"such texts need the library {name}: {needed}") from error


def choose_column(columns: Collection[str], asked: str | None, place: str) -> str:
    """The column that holds the texts: the one asked for, else `text`, else the only one.

    Where none is called just so, one that differs in case or in spaces around it is meant. A
    `DataError` if there is none or several could be meant.

    >>> choose_column(["label", " Text"], None, "example")
    ' Text'
    """
    wanted = asked or "text"
    found = [name for name in columns if name == wanted] or [
        name for name in columns if name.strip().casefold() == wanted.strip().casefold()
    ]
    if not found and asked is None and len(columns) == 1:
        found = list(columns)
    if len(found) == 1:
        return found[0]
    what = f"no column {wanted!r}" if not found else f"{len(found)} columns are called {wanted!r}"
    known = ", ".join(map(repr, columns)) or "no columns"
    raise DataError(f"{place}: {what}; it has {known}; choose one (--column input_column=NAME)")


def as_text(value: object, column: str, place: str) -> str:
    """A value as a text; null is an empty text, anything else a `DataError`."""
    if isinstance(value, str) or value is None:
        return value or ""
    kind = type(value).__name__
    raise DataError(f"{place}: column {column!r} holds {kind}, text was wanted (--column)")
