"""Rows of files (lines, paragraphs, separated values, JSON, parquet), and their seeded order.

The order is that of `datasets.Dataset.shuffle(seed)`: numpy's PCG64 generator, `permutation(n)`
(Source: Hugging Face datasets, `arrow_dataset.py`, the same in versions 1 to 5).
"""

import csv
import json
import tempfile
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from itertools import chain, groupby, islice
from typing import Any, TypeAlias

import numpy as np

from fillmask_ui.errors import DataError, opening
from fillmask_ui.evaluation.given_texts import choose_column, pair_columns
from fillmask_ui.filling.prompt import MAX_CHARACTERS
from fillmask_ui.records import Example
from fillmask_ui.texts.files import ByteSource
from fillmask_ui.texts.source import PARAGRAPH, TextSource

# The csv module refuses longer values, e.g. from an unclosed quote.
_MAX_FIELD_CHARACTERS = 16_000_000
_PARQUET_ROWS_AT_ONCE, _PARQUET_BUFFER_BYTES = 64, 1 << 20

# Examples in order, and the number of rows if known.
OrderedRows: TypeAlias = "tuple[Iterator[Example], int | None]"
# What a row holds: a text, or a pair and perhaps its group; fields of `Example` in their order.
Cells: TypeAlias = "tuple[str, ...]"


def read_rows(source: TextSource, data: ByteSource) -> Iterator[Cells]:
    """One text or pair per row of a text file or stream; blank lines are rows of texts alone."""
    if source.layout == "jsonl":
        return _json_values(source, data)
    if source.layout != "txt":
        return _table_values(source, data)
    # One more than is used, to detect a cut.
    lines = data.lines(source.encoding, MAX_CHARACTERS + 1)
    if source.pairs is not None:
        return _tabbed(lines, data.name)
    return ((text,) for text in (_paragraphs(lines) if source.by == PARAGRAPH else lines))


def _tabbed(lines: Iterator[str], name: str) -> Iterator[Cells]:
    """Pairs in plain text, such as pasted ones: better sentence, tab, worse one, tab, group."""
    for number, line in enumerate(lines, start=1):
        cells = tuple(line.split("\t"))
        if line.strip():
            if len(cells) not in (2, 3):
                raise DataError(
                    f"{name}, line {number}: it has no pair; write the better sentence, a tab and "
                    "the worse one (and perhaps a tab and the group), or give a csv, tsv, jsonl or "
                    "parquet file"
                )
            yield cells


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    """Runs of non-blank lines as texts, line breaks included."""
    for filled, run in groupby(lines, key=lambda line: bool(line.strip())):
        if filled:
            text = next(run)
            for line in run:
                if len(text) <= MAX_CHARACTERS:
                    text += f"\n{line}"
            yield text


def _json_values(source: TextSource, data: ByteSource) -> Iterator[Cells]:
    columns: Cells = ()
    for place, record in _records(data.lines(source.encoding), data.name):
        if not isinstance(record, dict):
            raise DataError(f'{place}: an object such as {{"text": "..."}} was wanted')
        columns = tuple(
            name if name in record else choose_column(record, name, place)
            for name in columns or choose_columns(record, source, place)
        )
        yield cells_of(record, columns, place)


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


def _table_values(source: TextSource, data: ByteSource) -> Iterator[Cells]:
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
        chosen = choose_columns(header, source, data.name) if header else ()
        places = [header.index(name) for name in chosen]
        for record in filter(None, reader):
            if len(record) != len(header):
                raise csv.Error(
                    f"{len(record)} values where the header has {len(header)}; put values that "
                    "hold separators or line breaks between quotes"
                )
            yield tuple(record[place] for place in places)
    except csv.Error as error:
        raise DataError(f"{data.name}, line {reader.line_num}: {error}") from error


def read_parquet(source: TextSource) -> Iterator[Cells]:
    """`read_rows` for parquet, with a few rows in memory at a time."""
    library = optional_library("pyarrow.parquet")
    path, given = source.where, {"buffer_size": _PARQUET_BUFFER_BYTES, "pre_buffer": False}
    with opening("texts", path), library.ParquetFile(path, **given) as file:
        columns = choose_columns(file.schema_arrow.names, source, path)
        chosen = {"columns": [*columns], "use_threads": False}
        for batch in file.iter_batches(_PARQUET_ROWS_AT_ONCE, **chosen):
            for record in batch.to_pylist():
                yield cells_of(record, columns, path)


def optional_library(name: str) -> Any:
    """A module from the extra `hub`; a `DataError` without it."""
    try:
        return import_module(name)
    except ImportError as error:
        remedy = 'pip install "fillmask-ui[hub]"'
        raise DataError(f"such texts need the library {name}: {remedy}") from error


def choose_columns(columns: Collection[str], source: TextSource, place: str) -> Cells:
    """The column of the texts, or those of both sentences of a pair and, if any, of its group."""
    if source.pairs is not None:
        return pair_columns(columns, source.pairs, place)
    return (choose_column(columns, source.column, place),)


def cells_of(record: Any, columns: Cells, place: str) -> Cells:
    """The texts of some columns of a record, null as empty; the third, a group, may be a number."""
    for name in columns[:2]:
        if not isinstance(record[name], str | None):
            kind = type(record[name]).__name__
            raise DataError(f"{place}: column {name!r} holds {kind}, text was wanted (--column)")
    return tuple("" if record[name] is None else str(record[name]) for name in columns)


def ordered(source: TextSource, texts: Callable[[], Iterator[Cells]]) -> OrderedRows:
    """Examples in the source's order; `texts` restarts from the beginning at each call."""
    if source.shuffle:
        available = sum(1 for _ in texts())
        positions = shuffled_positions(available, source.seed, source.samples)
        return pick(texts(), positions), available
    rows = (Example(index, *cells) for index, cells in enumerate(texts()))
    return islice(rows, source.samples), None


def shuffled_positions(rows: int, seed: int, samples: int | None = None) -> np.ndarray:
    """Positions of the first `samples` rows in shuffled order: int64 [min(rows, samples)].

    >>> shuffled_positions(5, seed=42)
    array([4, 2, 3, 1, 0])
    """
    # The copy lets the whole permutation be freed.
    return np.random.default_rng(seed).permutation(rows)[:samples].copy()


def pick(rows: Iterator[Cells], positions: np.ndarray) -> Iterator[Example]:
    """The rows at some positions [N] of a stream, in the order of the positions.

    They wait in a temporary file; reading stops after the last position.

    >>> [example.text for example in pick(zip("abcde"), np.array([3, 0]))]
    ['d', 'a']
    """
    places = np.zeros((len(positions), 2), dtype=np.int64)  # start and size of each text
    home = tempfile.gettempdir()
    with opening("texts", f"a copy in {home}"), tempfile.TemporaryFile() as spool:
        read = 0
        for index in map(int, np.argsort(positions)):
            cells = next(islice(rows, int(positions[index]) - read, None), None)
            if cells is None:
                raise DataError("the data became shorter while it was read; it must not change")
            read = int(positions[index]) + 1
            # As JSON, which can also write lone surrogates.
            places[index] = spool.tell(), spool.write(json.dumps(cells).encode())
        for position, (start, size) in zip(positions, places, strict=True):
            spool.seek(start)
            yield Example(int(position), *json.loads(spool.read(size)))
