"""Rows of a parquet file, read a page at a time, and the column of an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fillmask_ui.errors import DataError, first_line
from fillmask_ui.texts.lines import is_file
from fillmask_ui.texts.rows import choose_column

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 64
# Column chunks are read through a buffer of this size instead of whole.
_BUFFER_BYTES = 1 << 20
# A column of nulls alone is one of empty texts.
_TEXT_TYPES = ("string", "large_string", "string_view", "null")


def count_parquet(path: str) -> int:
    """Number of rows; `DataError` if the file is not parquet."""
    with _opened(path) as file:
        return file.metadata.num_rows


def read_parquet(path: str, column: str | None) -> Iterator[str]:
    """One text per row, null as an empty text.

    Raises:
        DataError: if the file is not parquet, or the column is missing or does not hold text.
    """
    with _opened(path) as file:
        chosen = text_column(file.schema_arrow, column, path)
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[chosen], use_threads=False):
            for value in batch.column(0).to_pylist():
                yield value or ""


def text_column(schema: pa.Schema, asked: str | None, place: str) -> str:
    """The column that holds the texts, as `choose_column` does.

    Raises:
        DataError: if the column is missing or does not hold text; the message begins with `place`.
    """
    import pyarrow as pa

    column = choose_column(schema.names, asked, place)
    kind = schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if str(kind) not in _TEXT_TYPES:
        raise DataError(
            f"{place}: column {column!r} holds {kind}, text was wanted; choose another column "
            "(--column input_column=NAME)"
        )
    return column


@contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    if not is_file(path):
        raise DataError(f"{path} is not a file; check its path")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError('reading parquet needs pyarrow: pip install "fillmask-ui[hub]"') from error
    try:
        with pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} cannot be read as parquet ({first_line(error)}); check that the file is "
            "complete"
        ) from error
