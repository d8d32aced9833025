"""Rows of files (lines, paragraphs, separated values, JSON, parquet), and their seeded order.

The order is that of `datasets.Dataset.shuffle(seed)`: numpy's PCG64 generator, `permutation(n)`
(Source: Hugging Face datasets, `arrow_dataset.py`, the same in versions 1 to 5).
"""

import csv
import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fillmask_ui.errors import DataError, how_to_install, opening, unknown
from fillmask_ui.evaluation.given_texts import (
    cell_of,
    choose_column,
    nested_names,
    outer_name,
    pair_columns,
)
from fillmask_ui.filling.prompt import MAX_CHARACTERS
from fillmask_ui.records import Example
from fillmask_ui.texts.files import ByteSource
from fillmask_ui.texts.source import DELIMITERS, NO_QUOTES, PARAGRAPH, TextSource

# The csv module refuses longer values, e.g. from an unclosed quote.
_MAX_FIELD_CHARACTERS = 16_000_000
_PARQUET_ROWS_AT_ONCE, _PARQUET_BUFFER_BYTES = 64, 1 << 20
_TAB_OR_LINE_END = re.compile("[\t\n]")

_GROUP = 2  # which of the cells of a row is its group
# Examples in order, and the number of rows if known.
OrderedRows: TypeAlias = "tuple[Iterator[Example], int | None]"
# What a row holds: fields of `Example` in their order, the text first; None for one that is not
# there. Or the columns of these.
Cells: TypeAlias = "tuple[Any, ...]"


@dataclass
class Notes:
    """What a reader should know of texts before any figure of them: the first note of each kind."""

    by_kind: dict[str, str] = field(default_factory=dict)
    warn: Callable[[str], None] | None = None  # is called with each note as it comes

    def add(self, kind: str, location: str, note: str) -> None:
        if kind not in self.by_kind:
            # Without the folder, which visitors of a page must not see.
            self.by_kind[kind] = f"{Path(location).name}: {note}"
            if self.warn is not None:
                self.warn(self.by_kind[kind])


def read_rows(source: TextSource, data: ByteSource, notes: Notes) -> Iterator[Cells]:
    """One text or pair per row of a text file or stream; blank lines are rows of texts alone."""
    if source.layout == "jsonl":
        return _json_values(source, data, notes)
    if source.layout != "txt":
        return _table_values(source, data, notes)
    # One more than is used, to detect a cut.
    lines = data.lines(source.encoding, MAX_CHARACTERS + 1)
    if source.pairs is not None:
        return _tabbed(lines, data.name)
    return ((text,) for text in (_paragraphs(lines) if source.by == PARAGRAPH else lines))


def _tabbed(lines: Iterator[str], name: str) -> Iterator[Cells]:
    """Pairs in plain text: better sentence, tab, worse one, perhaps tab, group, tab, given text."""
    for number, line in enumerate(lines, start=1):
        cells = tuple(line.split("\t"))
        if line.strip():
            if len(cells) not in (2, 3, 4):
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


def _json_values(source: TextSource, data: ByteSource, notes: Notes) -> Iterator[Cells]:
    columns: Cells = ()
    for location, record in _records(data.lines(source.encoding), data.name, source.field):
        if not isinstance(record, dict):
            raise DataError(f'{location}: this is not an object such as {{"text": "..."}}')
        columns = columns or choose_columns(nested_names(record), source, location)
        yield cells_of(record, columns, location, notes)


def _records(lines: Iterator[str], name: str, field: str | None) -> Iterator[tuple[str, object]]:
    """Each value with its location: of a JSON array, of one under a key, or one per line."""
    first = next(lines, "")
    lines = chain([first], lines)
    if field is not None or first.lstrip().startswith("["):
        with opening("texts", name):
            document = json.loads("\n".join(lines))
        for number, record in enumerate(_rows_under(field, document, name), start=1):
            yield f"{name}, element {number}", record
    elif first.strip() == "{":
        raise DataError(
            f"{name} is one object on many lines: name the key under which its rows lie (--field "
            "KEY), or write an object a line"
        )
    for number, line in enumerate(lines, start=1):
        if line.strip():
            location = f"{name}, line {number}"
            with opening("texts", location):
                record = json.loads(line)
            yield location, record


def _rows_under(field: str | None, document: Any, name: str) -> list[object]:
    """The rows of a JSON document: a list, or as `datasets` has it, lists by column."""
    rows = document
    if field is not None:
        keys = nested_names(document) if isinstance(document, dict) else []
        if field not in keys:
            raise DataError(f"{unknown(f'key of {name}', field, keys)} (--field)")
        rows = cell_of(document, field)
    if isinstance(rows, list):
        return rows
    lists = [*rows.values()] if isinstance(rows, dict) else []
    lengths = {len(column) if isinstance(column, list) else None for column in lists}
    if len(lengths) != 1 or None in lengths:
        raise DataError(
            f"{name}: {field!r} holds neither a list of rows nor lists of one length (--field)"
        )
    return [dict(zip(rows, cells, strict=True)) for cells in zip(*lists, strict=True)]


def _table_values(source: TextSource, data: ByteSource, notes: Notes) -> Iterator[Cells]:
    """Separated values with a header; fields between quotation marks may span lines."""
    csv.field_size_limit(_MAX_FIELD_CHARACTERS)
    lines = data.lines(source.encoding)
    head = next(lines, "")
    usual = "\t" if source.layout == "tsv" else ","
    mark = source.mark
    if mark is None:  # a header without its usual separator has another one, or a single column
        mark = usual if usual in head else max((usual, *DELIMITERS.values()), key=head.count)
    unquoted = source.quoting == NO_QUOTES
    if source.quoting is None and source.layout == "tsv":
        unquoted = not _quotes_enclose(data.lines(source.encoding), mark)
    reader = csv.reader(
        (f"{line}\n" for line in chain([head], lines)),
        delimiter=mark,
        quoting=csv.QUOTE_NONE if unquoted else csv.QUOTE_MINIMAL,
        strict=True,
    )
    try:
        header = next(filter(None, reader), [])
        location = f"{data.name}, whose first line names its columns"
        chosen = choose_columns(header, source, location) if header else ()
        if len(header) == 1 and source.column is None and header[0].strip().lower() != "text":
            notes.add(
                "header",
                data.name,
                f"its first line, {header[0][:60]!r}, was read as the name of its only column; if "
                "it is a text, give --format txt; if it has several names, --delimiter",
            )
        positions = [None if name is None else header.index(name) for name in chosen]
        for record in filter(None, reader):
            if len(record) != len(header):
                raise csv.Error(
                    f"{len(record)} values where the header has {len(header)}; put values that "
                    "hold separators or line breaks between quotes, or give --delimiter"
                )
            cells = tuple(
                (None if index < _GROUP else "") if at is None else record[at]
                for index, at in enumerate(positions)
            )
            if broken := [text for text in cells[:2] if text and _TAB_OR_LINE_END.search(text)]:
                notes.add(
                    "line ends",
                    f"{data.name}, line {reader.line_num}",
                    f"a text has a tab or line end inside, {broken[0][:60]!r}; if these are "
                    "several rows, give --quoting none",
                )
            yield cells
    except csv.Error as error:
        remedy = "" if unquoted else " (--quoting none if quotation marks are part of the texts)"
        raise DataError(f"{data.name}, line {reader.line_num}: {error}{remedy}") from error


def _quotes_enclose(lines: Iterator[str], mark: str) -> bool:
    """Whether quotation marks enclose the fields of a .tsv file, whose texts often begin with one.

    They do if each field that begins with one also ends with one on its line, or if the lines, as
    they stand, have different numbers of fields.

    >>> _quotes_enclose(iter(['id|text', '1|"A dog"', '2|She "ran".']), "|")
    True
    >>> _quotes_enclose(iter(['id|text', '1|"A dog', '2|ran."']), "|")
    False
    """
    width, closed = None, True
    for line in filter(None, lines):
        width = line.count(mark) if width is None else width
        if line.count(mark) != width:
            return True
        closed = closed and ('"' not in line or _closes(line, mark))
    return closed


def _closes(line: str, mark: str) -> bool:
    try:
        return bool(next(csv.reader([line], delimiter=mark, strict=True)))
    except csv.Error:
        return False


def read_parquet(source: TextSource, notes: Notes) -> Iterator[Cells]:
    """`read_rows` for parquet, with a few rows in memory at a time."""
    library = optional_library("pyarrow.parquet")
    path = source.where
    with (
        opening("texts", path),
        library.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file,
    ):
        schema = file.schema_arrow
        names = dict.fromkeys([*schema.names, *schema.empty_table().flatten().column_names])
        columns = choose_columns(names, source, path)
        read = [
            *dict.fromkeys(name if name in names else outer_name(name) for name in columns if name)
        ]
        batches = file.iter_batches(_PARQUET_ROWS_AT_ONCE, columns=read, use_threads=False)
        for batch in batches:
            for record in batch.to_pylist():
                yield cells_of(record, columns, path, notes)


def optional_library(name: str) -> Any:
    """A module from the extra `hub`; a `DataError` without it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise DataError(
            f"such texts need the library {name}, which is not installed: {how_to_install('hub')}"
        ) from error


def choose_columns(columns: Collection[str], source: TextSource, location: str) -> Cells:
    """The column of the texts, or those of both sentences of a pair, and that of the group."""
    if source.pairs is not None:
        better, worse, given = source.pairs
        return pair_columns(columns, (better, worse, source.group_column, given), location)
    column = choose_column(columns, source.column, location)
    if source.group_column is None:
        return (column,)
    group = choose_column(columns, source.group_column, location, "--group-column NAME")
    return column, None, group


def cells_of(record: Any, columns: Cells, location: str, notes: Notes) -> Cells:
    """The texts of some columns of a record, null as empty; the third, a group, may be a number.

    A group may be missing.

    Tokens are joined by blanks, which is noted.
    """
    values = [_cell(record, name, location, index) for index, name in enumerate(columns)]
    for index, (name, value) in enumerate(zip(columns, values, strict=True)):
        if index == _GROUP:
            continue
        if isinstance(value, list) and all(isinstance(token, str) for token in value):
            notes.add(
                "tokens", location, f"column {name!r} holds tokens; they are joined by blanks"
            )
            values[index] = " ".join(value)
        elif not isinstance(value, str | None):
            remedy = "--column"
            if isinstance(value, list):
                remedy += f", or --field {name} for rows that lie under it"
            raise DataError(
                f"{location}: column {name!r} holds {type(value).__name__} instead of text; name "
                f"another column ({remedy})"
            )
    if isinstance(group := [*values, None, None][_GROUP], list | dict):
        raise DataError(
            f"{location}: column {columns[2]!r} holds {type(group).__name__} instead of a value to "
            "group by; name another column (--group-column)"
        )
    # Without a second sentence a row is a text.
    return tuple(
        None if name is None and index < _GROUP else "" if value is None else str(value)
        for index, (name, value) in enumerate(zip(columns, values, strict=True))
    )


def _cell(record: Any, column: str | None, location: str, index: int) -> Any:
    try:
        return None if column is None else cell_of(record, column)
    except KeyError:  # the name of a column may differ in case from that of the first record
        names = nested_names(record)
        if index == _GROUP and str(column).casefold() not in map(str.casefold, names):
            return None
        return cell_of(record, choose_column(names, column, location))


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
