"""Rows of files: lines, paragraphs, comma- and tab-separated values, JSON lines, parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import chain, groupby
from typing import TYPE_CHECKING

from fillmask_ui.errors import DataError, first_line
from fillmask_ui.texts.lines import ByteSource, is_file
from fillmask_ui.texts.source import PARAGRAPH, TextSource

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# A text is used up to here (`reading.py` counts those that are longer): a hundred times what the
# longest contexts hold, and little enough that no single line fills the memory.
MAX_CHARACTERS = 1_000_000
# A row of a structured file cannot be cut and still be parsed.
MAX_ROW_CHARACTERS = 16_000_000
# No number is a text, and Python refuses an integer of thousands of digits.
_JSON = json.JSONDecoder(parse_int=float)
_JSON_NAMES = {dict: "object", list: "list", bool: "truth value", str: "string", type(None): "null"}
_PARQUET_ROWS_AT_ONCE = 64
# Column chunks are read through a buffer of this size instead of whole.
_PARQUET_BUFFER_BYTES = 1 << 20
# A column of nulls alone is one of empty texts.
_ARROW_TEXTS = ("string", "large_string", "string_view", "null")


def read_rows(source: TextSource, data: ByteSource) -> Iterator[str]:
    """One text per row of a text file or stream, one row held at a time.

    Blank lines are rows of plain text alone; null values are empty texts. What is no text of this
    layout, or lacks the column, is a `DataError`.
    """
    if source.layout == "txt":
        # One more than is used, so that a cut can be seen.
        lines = data.lines(source.encoding, MAX_CHARACTERS + 1)
        return _paragraphs(lines) if source.by == PARAGRAPH else lines
    read = _json_values if source.layout == "jsonl" else _table_values
    return read(_whole_lines(data, source.encoding), source, data.name)


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


def _whole_lines(data: ByteSource, encoding: str) -> Iterator[str]:
    for number, line in enumerate(data.lines(encoding, MAX_ROW_CHARACTERS + 1), start=1):
        if len(line) > MAX_ROW_CHARACTERS:
            raise DataError(
                f"{data.name}, line {number}: longer than {MAX_ROW_CHARACTERS:,} characters; one "
                "row per line was wanted"
            )
        yield line


def _json_values(lines: Iterator[str], source: TextSource, name: str) -> Iterator[str]:
    """Each line that is not blank is a JSON object; one of its fields is the text."""
    column = source.column
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        try:
            record = _JSON.decode(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{place}: not JSON ({error.msg} at character {error.pos}); each line must be one "
                'object such as {"text": "..."}'
            ) from error
        except RecursionError as error:
            raise DataError(f"{place}: JSON nested too deeply to be read") from error
        if not isinstance(record, dict):
            raise DataError(
                f'{place}: an object such as {{"text": "..."}} was wanted; it is a '
                f"{_json_name(record)}"
            )
        column = choose_column(record, column, place)
        yield as_text(record[column], column, place)


def _table_values(lines: Iterator[str], source: TextSource, name: str) -> Iterator[str]:
    """Comma- or tab-separated values with a header; either may quote fields that span lines."""
    # The limit of the csv module is one for the whole process: raised, never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_CHARACTERS))
    mark, what = ("\t", "tab") if source.layout == "tsv" else (",", "comma")
    head = next(lines, "")
    if what == "comma" and "," not in head and ";" in head:  # as spreadsheets write in many places
        mark, what = ";", "semicolon"
    lines = chain([head], lines)
    reader = csv.reader((line + "\n" for line in lines), delimiter=mark, strict=True)
    begun = 1  # line on which the row began
    try:
        header = next(filter(None, reader), [])
        chosen = choose_column(header, source.column, name) if header else ""
        if header.count(chosen) > 1:
            raise DataError(f"{name}: two columns are called {chosen!r}; rename one of them")
        index = header.index(chosen) if header else 0
        begun = reader.line_num + 1
        for record in reader:
            if record and len(record) != len(header):
                raise DataError(
                    f"{name}, line {reader.line_num}: {len(record)} values where the header has "
                    f"{len(header)}; put values that hold {what}s or line breaks between quotes"
                )
            if record:
                yield record[index]
            begun = reader.line_num + 1
    except csv.Error as error:
        if "new-line character" in str(error):
            raise DataError(
                f"{name}, line {reader.line_num}: a carriage return alone (CR) ends a line, as on "
                "old Macs; save the file with line feeds (LF), or put the value between quotes"
            ) from error
        raise DataError(
            f"{name}, line {reader.line_num} (row begun at line {begun}): not {what}-separated "
            f'values ({error}); quotes inside a quoted value are doubled ("")'
        ) from error


def count_parquet(path: str) -> int:
    """Number of rows; `DataError` if the file is not parquet."""
    with _parquet(path) as file:
        return file.metadata.num_rows


def read_parquet(path: str, column: str | None) -> Iterator[str]:
    """One text per row, null as an empty text; `DataError` as `count_parquet` and `text_column`."""
    with _parquet(path) as file:
        chosen = text_column(file.schema_arrow, column, path)
        for batch in file.iter_batches(_PARQUET_ROWS_AT_ONCE, columns=[chosen], use_threads=False):
            try:
                values = batch.column(0).to_pylist()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}: column {chosen!r} holds bytes that are not UTF-8 "
                    f"({error.object[:40]!r}): write the file again"
                ) from error
            for value in values:
                yield value or ""


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    if not is_file(path):
        raise DataError(f"{path} is not a file; check its path")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError('reading parquet needs pyarrow: pip install "fillmask-ui[hub]"') from error
    try:
        with pq.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} cannot be read as parquet ({first_line(error)}); check that the file is "
            "complete"
        ) from error


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

    Raises:
        DataError: if it is not there, or several could be meant; the known ones are listed.

    >>> choose_column(["label", "text"], None, "example")
    'text'
    """
    chosen = "text" if asked is None else asked
    if chosen in columns:
        return chosen
    if asked is None and len(columns) == 1:
        return next(iter(columns))
    known = ", ".join(map(repr, list(columns)[:20])) or "no columns"
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    what = f"no column {asked!r}; it" if asked is not None else "which column holds the texts? It"
    raise DataError(f"{place}: {what} has {known}{more}; choose one (--column input_column=NAME)")


def as_text(value: object, column: str, place: str) -> str:
    """A value as a text; null is an empty text, anything else a `DataError`."""
    if isinstance(value, str) or value is None:
        return value or ""
    raise _no_text(f"a {_json_name(value)}", column, place)


def _no_text(kind: str, column: str, place: str) -> DataError:
    return DataError(
        f"{place}: column {column!r} holds {kind}, text was wanted; choose another column "
        "(--column input_column=NAME)"
    )


def _json_name(value: object) -> str:
    number = "number" if isinstance(value, int | float) else "value"
    return _JSON_NAMES.get(type(value), number)
