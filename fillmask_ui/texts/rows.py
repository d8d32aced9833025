"""Rows of files: lines, paragraphs, comma- and tab-separated values, JSON, parquet."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import chain, groupby
from typing import TYPE_CHECKING

from fillmask_ui.errors import DataError, opening
from fillmask_ui.texts.lines import ByteSource, joined
from fillmask_ui.texts.source import PARAGRAPH, TextSource

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# A text is used up to here (`reading.py` counts those that are longer): a hundred times what the
# longest contexts hold, and little enough that no single line fills the memory.
MAX_CHARACTERS = 1_000_000
# Of a row of a structured file no more is held; one that is longer is no longer whole, and refused.
_MAX_ROW_CHARACTERS = 16_000_000
_PIECE_CHARACTERS = 1 << 16
# What may stand between the elements of an array.
_BETWEEN = re.compile(r"[\s,]*")
_PARQUET_ROWS_AT_ONCE = 64
# Column chunks are read through a buffer of this size instead of whole.
_PARQUET_BUFFER_BYTES = 1 << 20
# A column of nulls alone is one of empty texts.
_ARROW_TEXTS = ("string", "large_string", "string_view", "null")


def read_rows(source: TextSource, data: ByteSource) -> Iterator[str]:
    """One text per row of a text file or stream, one row held at a time.

    Blank lines are rows of plain text alone; null values are empty texts. What is not text of this
    layout, or lacks the column, is a `DataError`.
    """
    if source.layout == "txt":
        # One more than is used, so that a cut can be seen.
        lines = data.lines(source.encoding, MAX_CHARACTERS + 1)
        return _paragraphs(lines) if source.by == PARAGRAPH else lines
    return (_json_values if source.layout == "jsonl" else _table_values)(source, data)


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    """Each run of lines that are not blank is a text; its line breaks stay."""
    for filled, run in groupby(lines, key=lambda line: bool(line.strip())):
        if filled:
            kept: list[str] = []
            size = 0
            for line in run:
                kept.append(line)
                size += len(line) + 1
                if size > MAX_CHARACTERS:
                    break  # groupby reads past the rest
            yield "\n".join(kept)


def _json_values(source: TextSource, data: ByteSource) -> Iterator[str]:
    """One field of each object: of one a line, blank lines apart, or of those of an array."""
    column, pieces = source.column, data.pieces(source.encoding)
    first = next(pieces, "")
    read = _elements if first.lstrip().startswith("[") else _json_lines
    for place, record in read(chain([first], pieces), data.name):
        if not isinstance(record, dict):
            raise DataError(f'{place}: an object such as {{"text": "..."}} was wanted')
        if column not in record:
            column = choose_column(record, column, place)
        yield as_text(record[column], column, place)


def _json_lines(pieces: Iterator[str], name: str) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(joined(pieces, _MAX_ROW_CHARACTERS + 1), start=1):
        if line.strip():
            place = f"{name}, line {number}"
            with opening("texts", place):
                record = json.loads(line)
            yield place, record


def _elements(pieces: Iterator[str], name: str) -> Iterator[tuple[str, object]]:
    """The elements of a JSON array with their places, one held at a time."""
    decoder, number = json.JSONDecoder(), 1
    held, at = next(pieces).lstrip()[1:], 0
    while True:
        between = _BETWEEN.match(held, at)
        at = between.end() if between else at
        if held.startswith("]", at):
            break
        place = f"{name}, element {number}"
        with opening("texts", place):
            try:
                record, at = decoder.raw_decode(held, at)
            except json.JSONDecodeError:  # which may end in what is not read yet
                held, at = held[at:], 0
                more = _some(pieces, len(held))
                if not more or len(held) > _MAX_ROW_CHARACTERS:
                    raise
                held += more
                continue
        yield place, record
        number += 1
    if any(map(str.strip, chain([held[at + 1 :]], pieces))):
        raise DataError(f"{name} goes on after its array: one array, or an object a line is wanted")


def _some(pieces: Iterator[str], least: int) -> str:
    """Pieces of this many characters together or a few more, as long as there are any.

    To double what is held keeps the time of decoding in proportion to the size of an element.
    """
    taken, size = [], 0
    while size < max(least, _PIECE_CHARACTERS) and (piece := next(pieces, "")):
        taken.append(piece)
        size += len(piece)
    return "".join(taken)


def _table_values(source: TextSource, data: ByteSource) -> Iterator[str]:
    """Comma- or tab-separated values with a header; either may quote fields that span lines."""
    csv.field_size_limit(_MAX_ROW_CHARACTERS)
    lines = data.lines(source.encoding, _MAX_ROW_CHARACTERS + 1)
    head = next(lines, "")
    mark = "\t" if source.layout == "tsv" else ","
    if mark == "," and "," not in head and ";" in head:  # as spreadsheets write in many places
        mark = ";"
    rows = (line + "\n" for line in chain([head], lines))
    reader = csv.reader(rows, delimiter=mark, strict=True)
    try:
        header = next(filter(None, reader), None)
        if header is None:
            return
        index = header.index(choose_column(header, source.column, data.name))
        for record in filter(None, reader):
            if len(record) != len(header):
                raise DataError(
                    f"{data.name}, line {reader.line_num}: {len(record)} values where the header "
                    f"has {len(header)}; put values that hold {mark!r} or line breaks between "
                    "quotes"
                )
            yield record[index]
    except csv.Error as error:
        raise DataError(
            f"{data.name}, line {reader.line_num}: not values separated by {mark!r} ({error})"
        ) from error


def count_parquet(path: str) -> int:
    """Number of rows, of which none is read."""
    with _parquet(path) as file:
        return file.metadata.num_rows


def read_parquet(path: str, column: str | None) -> Iterator[str]:
    """One text per row, null as an empty text; `DataError` as of `text_column`."""
    with _parquet(path) as file:
        chosen = text_column(file.schema_arrow, column, path)
        for batch in file.iter_batches(_PARQUET_ROWS_AT_ONCE, columns=[chosen], use_threads=False):
            for value in batch.column(0).to_pylist():
                yield value or ""


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError('reading parquet needs pyarrow: pip install "fillmask-ui[hub]"') from error
    with (
        opening("texts", path),
        pq.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file,
    ):
        yield file


def text_column(schema: pa.Schema, asked: str | None, place: str) -> str:
    """The column that holds the texts, as `choose_column` does; `DataError` if it holds no text."""
    import pyarrow as pa

    column = choose_column(schema.names, asked, place)
    kind = schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if str(kind) not in _ARROW_TEXTS:
        raise _no_text(str(kind), column, place)
    return column


def choose_column(columns: Collection[str], asked: str | None, place: str) -> str:
    """The column that holds the texts: the one asked for, else `text`, else the only one.

    Where none is called just so, one that differs in case or in spaces around it is meant.

    Raises:
        DataError: if it is not there, or several could be meant; the known ones are listed.

    >>> choose_column(["label", " Text"], None, "example")
    ' Text'
    """
    wanted = "text" if asked is None else asked
    found = [name for name in columns if name == wanted]
    found = found or [name for name in columns if _plain(name) == _plain(wanted)]
    if not found and asked is None and len(columns) == 1:
        found = list(columns)
    if len(found) == 1:
        return found[0]
    what = f"no column {asked!r}" if asked is not None else "which column holds the texts?"
    what = f"{len(found)} columns are called {wanted!r}" if found else what
    known = ", ".join(map(repr, list(columns)[:20])) or "no columns"
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    raise DataError(
        f"{place}: {what}; it has {known}{more}; choose one (--column input_column=NAME)"
    )


def _plain(name: str) -> str:
    return name.strip().casefold()


def as_text(value: object, column: str, place: str) -> str:
    """A value as a text; null is an empty text, anything else a `DataError`."""
    if isinstance(value, str) or value is None:
        return value or ""
    raise _no_text(type(value).__name__, column, place)


def _no_text(kind: str, column: str, place: str) -> DataError:
    return DataError(
        f"{place}: column {column!r} holds {kind}, text was wanted; choose another column "
        "(--column input_column=NAME)"
    )
