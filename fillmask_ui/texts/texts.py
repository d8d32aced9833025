"""open_texts(): the examples of a source, one at a time, and the report on them."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, final

from fillmask_ui.assets import asset
from fillmask_ui.errors import DataError
from fillmask_ui.records import Example
from fillmask_ui.texts.lines import ByteSource, file_bytes
from fillmask_ui.texts.order import disk_errors, pick, shuffled_positions
from fillmask_ui.texts.rows import MAX_CHARACTERS, Rows, text_rows
from fillmask_ui.texts.source import DATASET, EMBEDDED, STDIN, TextSource


@dataclass(frozen=True)
class SourceReport:
    """What a source gave so far.

    Attributes:
        source: its signature.
        samples: texts asked for; None for all.
        available: rows in the data; None while that is not known (data read in its own order is
            not read further than asked).
        given: examples yielded.
        blank: of those, empty or of white space alone.
        cut: of those, cut at `MAX_CHARACTERS` characters.
    """

    source: str
    samples: int | None
    available: int | None
    given: int = 0
    blank: int = 0
    cut: int = 0

    @property
    def expected(self) -> int | None:
        """How many examples will come, for a progress bar; None if not known.

        >>> SourceReport("texts:x", samples=500, available=300).expected
        300
        """
        if self.available is None:
            return self.samples
        return self.available if self.samples is None else min(self.samples, self.available)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that whoever reads the result should see.

        >>> SourceReport("texts:x", samples=500, available=300, given=300).notes
        ('500 texts were asked for; the data has 300',)
        """
        notes = []
        if self.samples and self.available is not None and self.available < self.samples:
            notes.append(f"{self.samples:,} texts were asked for; the data has {self.available:,}")
        if self.cut:
            notes.append(
                f"{self.cut:,} text{'s were' if self.cut > 1 else ' was'} longer than "
                f"{MAX_CHARACTERS:,} characters; only the beginning is used"
            )
        return tuple(notes)


@dataclass(frozen=True)
class OpenedRows:
    """Examples in the order asked for, and how many rows the data has, where known."""

    examples: Iterator[Example]
    available: int | None


@final
class Texts(Iterator[Example]):
    """Examples of one source; close it, or use it in a `with` block, when stopping early.

    Attributes:
        source: where they come from.

    Raises:
        DataError: if the data cannot be read, or holds no text at all.
    """

    def __init__(self, source: TextSource, opened: OpenedRows, resources: ExitStack) -> None:
        self.source = source
        self._examples = opened.examples
        self._available = opened.available
        self._resources = resources
        self._read = self._given = self._blank = self._cut = 0
        # The first one is read now: a wrong column or an empty file shows before a model is
        # loaded.
        self._waiting = self._next()

    @property
    def report(self) -> SourceReport:
        """What came so far; complete when the iteration is."""
        return SourceReport(
            str(self.source),
            self.source.samples,
            self._available,
            given=self._given,
            blank=self._blank,
            cut=self._cut,
        )

    def __next__(self) -> Example:
        example, self._waiting = self._waiting, None
        example = self._next() if example is None else example
        if example is None:
            raise StopIteration
        self._given += 1
        self._blank += not example.text.strip()
        if len(example.text) > MAX_CHARACTERS:
            self._cut += 1
            return Example(example.id, example.text[:MAX_CHARACTERS])
        return example

    def _next(self) -> Example | None:
        example = next(self._examples, None)
        if example is not None:
            self._read += 1
            return example
        self.close()
        asked = self.source.samples
        if asked is None or self._read < asked:
            self._available = self._read
        where = self.source.where or self.source.kind
        if not self._read:
            raise DataError(f"{where} is empty: it has no texts; give data with at least one")
        if self._blank == self._read:
            raise DataError(
                f"{where}: all {self._read:,} texts that were read are blank; check the file, the "
                "column or the encoding"
            )
        return None

    def close(self) -> None:
        """Close files and remove temporary ones."""
        closer = getattr(self._examples, "close", None)
        if closer is not None:
            closer()
        self._resources.close()

    def __enter__(self) -> Texts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_texts(source: TextSource, *, stdin: BinaryIO | None = None) -> Texts:
    """Start to read texts.

    Args:
        source: which texts.
        stdin: the bytes of standard input; None for the process's own.

    Returns:
        An iterator over examples whose `report` tells how many there were. Shuffled texts are
        counted and collected here, the others as they are asked for.

    Raises:
        DataError: if the data is missing, empty, damaged, or lacks the column.
        OptionError: for a split or configuration that the data set does not have.
        NetworkError: if a data set has to be fetched and cannot be.

    >>> from fillmask_ui.texts.source import TextSource
    >>> texts = open_texts(TextSource(samples=3))  # the embedded ones, shuffled with seed 42
    >>> [example.id for example in texts], texts.report.available
    ([261, 293, 61], 300)
    """
    with ExitStack() as resources:
        if source.kind == DATASET:
            from fillmask_ui.texts.hub import open_dataset

            opened = open_dataset(source)
        else:
            opened = _ordered(_rows(source, stdin, resources), source)
        return Texts(source, opened, resources.pop_all())


def _rows(source: TextSource, stdin: BinaryIO | None, resources: ExitStack) -> Rows:
    if source.kind == EMBEDDED:
        path = str(asset("texts") / "embedded.jsonl")
        return text_rows(source, file_bytes(path, compressed=False))
    if source.kind == STDIN:
        return text_rows(source, _standard_input(stdin, source, resources))
    if source.layout == "parquet":
        from fillmask_ui.texts.parquet import ParquetRows

        return ParquetRows(source.where, source.column)
    return text_rows(source, file_bytes(source.where, compressed=source.compressed))


def _standard_input(stdin: BinaryIO | None, source: TextSource, resources: ExitStack) -> ByteSource:
    """Standard input as it comes, or where it is read twice, a copy of it."""
    stream = stdin or sys.stdin.buffer
    if source.shuffle:
        return resources.enter_context(_copied(stream))
    return ByteSource("standard input", lambda: nullcontext(stream))


@contextmanager
def _copied(stream: BinaryIO) -> Iterator[ByteSource]:
    with tempfile.TemporaryFile() as copy:
        with disk_errors():
            shutil.copyfileobj(stream, copy)

        def reopen() -> nullcontext[BinaryIO]:
            copy.seek(0)
            return nullcontext(copy)

        yield ByteSource("standard input", reopen)


def _ordered(rows: Rows, source: TextSource) -> OpenedRows:
    if source.shuffle:
        available = rows.count()
        positions = shuffled_positions(available, source.seed, source.samples)
        return OpenedRows(pick(rows.texts(), positions), available)
    examples = (Example(position, text) for position, text in enumerate(rows.texts()))
    return OpenedRows(islice(examples, source.samples), None)
