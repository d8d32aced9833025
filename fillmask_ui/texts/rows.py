"""Rows of files (lines, paragraphs, separated values, JSON, parquet), and their seeded order.

The order is that of `datasets.Dataset.shuffle(seed)`: numpy's PCG64 generator, `permutation(n)`
(Source: Hugging Face datasets, `arrow_dataset.py`, the same in versions 1 to 5).
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterator
from importlib import import_module
from itertools import chain, groupby, islice
from typing import Any, TypeAlias

import numpy as np

from fillmask_ui.errors import DataError, opening
from fillmask_ui.evaluation.given_texts import choose_column
from fillmask_ui.filling.prompt import MAX_CHARACTERS
from fillmask_ui.records import Example
from fillmask_ui.texts.files import ByteSource
from fillmask_ui.texts.source import PARAGRAPH, TextSource

# The csv module refuses longer values, e.g. from an unclosed quote.
_MAX_FIELD_CHARACTERS = 16_000_000
_PARQUET_ROWS_AT_ONCE, _PARQUET_BUFFER_BYTES = 64, 1 << 20

# Examples in order, and the number of rows if known.
OrderedRows: TypeAlias = "tuple[Iterator[Example], int | None]"


def read_rows(source: TextSource, data: ByteSource) -> Iterator[str]:
    """One text per row of a text file or stream; blank lines are rows of plain text only."""
    if source.layout == "jsonl":
        return _json_values(source, data)
    if source.layout != "txt":
        return _table_values(source, data)
    # One more than is used, to detect a cut.
    lines = data.lines(source.encoding, MAX_CHARACTERS + 1)
    return _paragraphs(lines) if source.by == PARAGRAPH else lines


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    """Runs of non-blank lines as texts, line breaks included."""
    for filled, run in groupby(lines, key=lambda line: bool(line.strip())):
        if filled:
            text = next(run)
            for line in run:
                if len(text) <= MAX_CHARACTERS:
                    text += f"\n{line}"
            yield text


def _json_values(source: TextSource, data: ByteSource) -> Iterator[str]:
    column = source.column
    for place, record in _records(data.lines(source.encoding), data.name):
        if not isinstance(record, dict):
            raise DataError(f'{place}: an object such as {{"text": "..."}} was wanted')
        if column not in record:
            column = choose_column(record, column, place)
        yield as_text(record[column], str(column), place)


def _records(lines: Iterator[str], name: str) -> Iterator[tuple[str, object]]:
    """Each value with its place: of a JSON array, or one per line."""
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
    """Comma- or tab-separated values with a header; quoted fields may span lines."""
    csv.field_size_limit(_MAX_FIELD_CHARACTERS)
    lines = data.lines(source.encoding)
    head = next(lines, "")
    mark = "\t" if source.layout == "tsv" else ","
    if mark == "," and "," not in head and ";" in head:  # as spreadsheets write in many countries
        mark = ";"
    reader = csv.reader((f"{line}\n" for line in chain([head], lines)), delimiter=mark, strict=True)
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
    """`read_rows` for parquet, with a few rows in memory at a time."""
    library = optional_library("pyarrow.parquet")
    given = {"buffer_size": _PARQUET_BUFFER_BYTES, "pre_buffer": False}
    with opening("texts", path), library.ParquetFile(path, **given) as file:
        column = choose_column(file.schema_arrow.names, asked, path)
        for batch in file.iter_batches(_PARQUET_ROWS_AT_ONCE, columns=[column], use_threads=False):
            for value in batch.column(0).to_pylist():
                yield as_text(value, column, path)


def optional_library(name: str) -> Any:
    """A module from the extra `hub`; a `DataError` without it."""
    try:
        return import_module(name)
    except ImportError as error:
        remedy = 'pip install "fillmask-ui[hub]"'
        raise DataError(f"such texts need the library {name}: {remedy}") from error


def as_text(value: object, column: str, place: str) -> str:
    """A value as a text; null is empty, other types are a `DataError`."""
    if isinstance(value, str) or value is None:
        return value or ""
    kind = type(value).__name__
    raise DataError(f"{place}: column {column!r} holds {kind}, text was wanted (--column)")


def shuffled_positions(rows: int, seed: int, samples: int | None = None) -> np.ndarray:
    """Positions of the first `samples` rows in shuffled order: int64 [min(rows, samples)].

    >>> shuffled_positions(5, seed=42)
    array([4, 2, 3, 1, 0])
    """
    # The copy lets the whole permutation be freed.
    return np.random.default_rng(seed).permutation(rows)[:samples].copy()


def pick(texts: Iterator[str], positions: np.ndarray) -> Iterator[Example]:
    """The texts at some positions [N] of a stream, in the order of the positions.

    They wait in a temporary file; reading stops after the last position.

    >>> [example.text for example in pick(iter("abcde"), np.array([3, 0]))]
    ['d', 'a']
    """
    places = np.zeros((len(positions), 2), dtype=np.int64)  # start and size of each text
    home = tempfile.gettempdir()
    with opening("texts", f"a copy in {home}"), tempfile.TemporaryFile() as spool:
        read = 0
        for index in map(int, np.argsort(positions)):
            text = next(islice(texts, int(positions[index]) - read, None), None)
            if text is None:
                raise DataError("the data became shorter while it was read; it must not change")
            read = int(positions[index]) + 1
            # JSON can write lone surrogates.
            places[index] = spool.tell(), spool.write(text.encode("utf-8", "surrogatepass"))
        for position, (start, size) in zip(positions, places, strict=True):
            spool.seek(start)
            yield Example(int(position), spool.read(size).decode("utf-8", "surrogatepass"))
