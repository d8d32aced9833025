"""Rows of a parquet file, read a page at a time; the only file that imports pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fillmask_ui.errors import DataError
from fillmask_ui.texts.lines import is_file
from fillmask_ui.texts.rows import choose_column

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 64
# Column chunks are read through a buffer of this size instead of whole.
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class ParquetRows:
    """Each row is a text.

    Raises:
        DataError: if the file is not parquet, or the column is missing or does not hold text.
    """

    path: str
    column: str | None

    @property
    def name(self) -> str:
        return self.path

    def count(self) -> int:
        with self._file() as file:
            return file.metadata.num_rows

    def texts(self) -> Iterator[str]:
        with self._file() as file:
            schema = file.schema_arrow
            column = choose_column(schema.names, self.column, self.path)
            _check_holds_text(schema.field(column).type, column, self.path)
            batches = file.iter_batches(_ROWS_AT_ONCE, columns=[column], use_threads=False)
            for batch in batches:
                for value in batch.column(0).to_pylist():
                    yield value or ""

    @contextmanager
    def _file(self) -> Iterator[pq.ParquetFile]:
        if not is_file(self.path):
            raise DataError(f"{self.path} is not a file; check its path")
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise DataError(
                'reading parquet needs pyarrow: pip install "fillmask-ui[hub]"'
            ) from error
        try:
            with pq.ParquetFile(self.path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{self.path} cannot be read as parquet ({_first_line(error)}); check that the "
                "file is complete"
            ) from error


def _check_holds_text(kind: pa.DataType, column: str, place: str) -> None:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    # A column of nulls alone is one of empty texts.
    texts = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_null,
    )
    if not any(holds(kind) for holds in texts):
        raise DataError(
            f"{place}: column {column!r} holds {kind}, text was wanted; choose another column "
            "(--column input_column=NAME)"
        )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
