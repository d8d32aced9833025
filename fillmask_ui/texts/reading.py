"""open_texts(): the examples of a source, one at a time, and a report on them."""

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import IO, final

from fillmask_ui.errors import DataError, opening
from fillmask_ui.files import asset
from fillmask_ui.filling.prompt import MAX_CHARACTERS
from fillmask_ui.records import Example
from fillmask_ui.texts.files import ByteSource, file_bytes, standard_input, text_files
from fillmask_ui.texts.rows import Cells, Notes, OrderedRows, ordered, read_parquet, read_rows
from fillmask_ui.texts.source import DATASET, EMBEDDED, FILE, FOLDER, STDIN, TextSource

Warn = Callable[[str], None]


@dataclass
class SourceReport:
    """Counts of a source so far; complete once its texts are read to the end."""

    samples: int | None  # texts asked for; None for all
    # rows in the data; None while unknown, as unshuffled texts are not read to their end
    available: int | None
    yielded: int = 0  # examples yielded
    blank: int = 0  # of those, empty or white space
    cut: int = 0  # of those, cut at `MAX_CHARACTERS` characters
    reading: Notes = field(default_factory=Notes)  # on how the data was read

    @property
    def expected(self) -> int | None:
        """How many examples will come, for a progress bar; None if unknown."""
        counts = [count for count in (self.samples, self.available) if count is not None]
        return min(counts, default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before any figure."""
        return tuple(self.reading.by_kind.values())

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [*self.warnings]
        if self.samples and self.available is not None and self.available < self.samples:
            notes.append(f"{self.samples:,} texts were asked for; the data has {self.available:,}")
        if self.cut:
            notes.append(f"texts cut at {MAX_CHARACTERS:,} characters: {self.cut:,}")
        return tuple(notes)

    def count(self, example: Example) -> Example:
        """Count an example; cut it if too long."""
        self.yielded += 1
        self.blank += not all(text.strip() for text in example.texts)
        self.cut += any(len(text) > MAX_CHARACTERS for text in example.texts)
        worse = example.worse and example.worse[:MAX_CHARACTERS]
        return replace(example, text=example.text[:MAX_CHARACTERS], worse=worse)

    def check(self, where: str) -> None:
        """A `DataError` if data read to its end holds no text."""
        if not self.yielded:
            raise DataError(f"{where} is empty: it has no texts; give data with at least one")
        if self.blank == self.yielded:
            raise DataError(f"{where}: all {self.yielded:,} texts that were read are blank")


@final
class Texts(ExitStack, Iterator[Example]):
    """Examples of one source, the first read at once; close it when stopping early."""

    def __init__(
        self, source: TextSource, rows: OrderedRows, notes: Notes, resources: ExitStack
    ) -> None:
        super().__init__()
        examples, available = rows
        self.source = source
        self.report = SourceReport(source.samples, available, reading=notes)  # so far
        # Reports a wrong column or an empty file before a model is loaded.
        first = list(islice(examples, 1))
        self._examples = self._counted(chain(first, examples))
        self.enter_context(resources)
        self.callback(self._examples.close)
        if not first:
            next(self, None)  # reports it

    def _counted(self, examples: Iterator[Example]) -> Generator[Example]:
        for example in examples:
            yield self.report.count(example)
        report = self.report
        if report.samples is None or report.yielded < report.samples:
            report.available = report.yielded
        report.check(self.source.where or self.source.kind)

    def __next__(self) -> Example:
        return next(self._examples)


def open_texts(
    source: TextSource, *, stdin: IO[bytes] | None = None, warn: Warn | None = None
) -> Texts:
    """Start to read texts; a `FillmaskError` if unavailable or without the column.

    `warn` is called with what a reader should know of how they are read, before the text in
    question is yielded; it also stands in the report.

    >>> texts = open_texts(TextSource(samples=3))  # the embedded ones, shuffled with seed 42
    >>> [example.id for example in texts], texts.report.available
    ([261, 293, 61], 300)
    """
    notes = Notes(warn=warn)
    with ExitStack() as resources:
        if source.kind == DATASET:
            from fillmask_ui.texts.hub import open_dataset

            rows = open_dataset(source, notes)
        elif source.kind == STDIN:
            data = _piped(source, stdin, resources)
            rows = ordered(source, partial(read_rows, source, data, notes))
        else:
            files = files_of(source)
            texts = partial(file_texts, notes=notes)
            rows = ordered(source, lambda: chain.from_iterable(map(texts, files)))
        return Texts(source, rows, notes, resources.pop_all())


def _piped(source: TextSource, stdin: IO[bytes] | None, resources: ExitStack) -> ByteSource:
    """Standard input, copied if it is read twice."""
    piped = standard_input(stdin)
    looks_for_quotes = source.layout == "tsv" and source.quoting is None
    if not source.shuffle and not looks_for_quotes:
        return piped
    copy = resources.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    with opening("texts", f"a copy of {piped.name}"), piped.open() as stream:
        shutil.copyfileobj(stream, copy)

    def open_copy() -> nullcontext[IO[bytes]]:
        copy.seek(0)
        return nullcontext(copy)

    return ByteSource(piped.name, open_copy)


def files_of(source: TextSource) -> tuple[TextSource, ...]:
    """The files of a source by name: each whole, unshuffled, of one layout."""
    paths = [source.where]
    if source.kind == EMBEDDED:
        paths = [str(asset("texts") / ("pairs.jsonl" if source.pairs else "embedded.jsonl"))]
    elif source.kind == FOLDER:
        paths = list(map(str, text_files(source.where)))
    whole = replace(source, kind=FILE, where=paths[0], samples=None, shuffle=False)
    files = tuple(replace(whole, where=path) for path in paths)
    for file in files:
        if file.layout != files[0].layout:
            raise DataError(
                f"{files[0].where} is {files[0].layout}, {file.where} is {file.layout}: keep one "
                "kind in a folder, or give the format of all (--format)"
            )
    return files


def file_texts(file: TextSource, notes: Notes) -> Iterator[Cells]:
    """All texts, or pairs, of a file in its own order."""
    if file.layout == "parquet":
        return read_parquet(file, notes)
    return read_rows(file, file_bytes(file.where, compressed=file.compressed), notes)
