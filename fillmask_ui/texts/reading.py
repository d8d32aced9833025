"""open_texts(): the examples of a source, one at a time, and the report on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import shutil
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from typing import IO, final

from fillmask_ui.assets import asset
from fillmask_ui.errors import DataError, opening
from fillmask_ui.records import Example
from fillmask_ui.texts.lines import ByteSource, file_bytes, standard_input
from fillmask_ui.texts.order import OrderedRows, pick, shuffled_positions, spooled
from fillmask_ui.texts.rows import MAX_CHARACTERS, read_rows
from fillmask_ui.texts.shards import count_texts, file_texts, files_of
from fillmask_ui.texts.source import DATASET, EMBEDDED, FILE, FOLDER, TextSource


@dataclass
class SourceReport:
    """What a source gave so far; complete when its texts have been read to the end."""

    samples: int | None  # texts asked for; None for all
    # rows in the data; None while that is not known, as in its own order it is read no further
    # than asked
    available: int | None
    given: int = 0  # examples yielded
    blank: int = 0  # of those, empty or of white space alone
    cut: int = 0  # of those, cut at `MAX_CHARACTERS` characters

    @property
    def expected(self) -> int | None:
        """How many examples will come, for a progress bar; None if not known."""
        return min((n for n in (self.samples, self.available) if n is not None), default=None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that whoever reads the result should see.

        >>> SourceReport(samples=500, available=300, given=300).notes
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

    def counted(self, example: Example) -> Example:
        """An example that is given, as it is used: cut where it is too long."""
        self.given += 1
        self.blank += not example.text.strip()
        self.cut += len(example.text) > MAX_CHARACTERS
        return Example(example.id, example.text[:MAX_CHARACTERS])

    def check(self, where: str) -> None:
        """Refuse data that was read to its end and holds no text: a `DataError`."""
        if not self.given:
            raise DataError(f"{where} is empty: it has no texts; give data with at least one")
        if self.blank == self.given:
            raise DataError(
                f"{where}: all {self.given:,} texts that were read are blank; check the file, "
                "the column or the encoding"
            )


@final
class Texts(Iterator[Example]):
    """Examples of one source; close it, or use it in a `with` block, when stopping early.

    The first one is read at once: a wrong column or an empty file shows before a model is loaded.

    Raises:
        DataError: if the data cannot be read, or holds no text at all.
    """

    def __init__(self, source: TextSource, rows: OrderedRows, resources: ExitStack) -> None:
        self.source = source
        self.report = SourceReport(source.samples, rows.available)  # on what came so far
        self._resources = resources
        first = list(islice(rows.examples, 1))
        self._examples = self._counted(chain(first, rows.examples))
        if not first:
            self._finish()

    def _counted(self, examples: Iterator[Example]) -> Iterator[Example]:
        for example in examples:
            yield self.report.counted(example)
        self._finish()

    def _finish(self) -> None:
        self.close()
        report, where = self.report, self.source.where or self.source.kind
        if report.samples is None or report.given < report.samples:
            report.available = report.given
        report.check(where)

    def __next__(self) -> Example:
        return next(self._examples)

    def close(self) -> None:
        """Close files and remove temporary ones."""
        self._examples = iter(())
        self._resources.close()

    def __enter__(self) -> Texts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_texts(source: TextSource, *, stdin: IO[bytes] | None = None) -> Texts:
    """Start to read texts; shuffled ones are counted and collected here, others as they are asked.

    Args:
        source: which texts.
        stdin: the bytes of standard input; None for the process's own.

    Raises:
        DataError: if the data is missing, empty, damaged, or lacks the column.
        OptionError: for a split or configuration that the data set does not have.
        NetworkError: if a data set has to be fetched and cannot be.

    >>> texts = open_texts(TextSource(samples=3))  # the embedded ones, shuffled with seed 42
    >>> [example.id for example in texts], texts.report.available
    ([261, 293, 61], 300)
    """
    with ExitStack() as resources:
        if source.kind == DATASET:
            from fillmask_ui.texts.hub import open_dataset

            rows = open_dataset(source)
        elif source.kind in (FILE, FOLDER):
            files = files_of(source)
            rows = _ordered(
                source,
                lambda: chain.from_iterable(map(file_texts, files)),
                lambda: sum(map(count_texts, files)),
            )
        else:
            texts = partial(read_rows, source, _bytes(source, stdin, resources))
            rows = _ordered(source, texts, lambda: sum(1 for _ in texts()))
        return Texts(source, rows, resources.pop_all())


def _bytes(source: TextSource, stdin: IO[bytes] | None, resources: ExitStack) -> ByteSource:
    """The embedded texts, or standard input as it comes; a copy of it where it is read twice."""
    if source.kind == EMBEDDED:
        return file_bytes(str(asset("texts") / "embedded.jsonl"))
    given = standard_input(stdin)
    if not source.shuffle:
        return given
    copy = resources.enter_context(spooled())
    with opening("texts", given.name), given.open() as stream:
        shutil.copyfileobj(stream, copy)

    def again() -> AbstractContextManager[IO[bytes]]:
        copy.seek(0)
        return nullcontext(copy)

    return ByteSource(given.name, again)


def _ordered(
    source: TextSource, texts: Callable[[], Iterator[str]], rows: Callable[[], int]
) -> OrderedRows:
    """Examples of texts that are read from the beginning at each call, and counted by `rows`."""
    if source.shuffle:
        available = rows()
        positions = shuffled_positions(available, source.seed, source.samples)
        return OrderedRows(pick(texts(), positions), available)
    return OrderedRows(islice(map(Example, count(), texts()), source.samples), None)
