"""The texts of cells as blocks that Ray Data reads in a stream, on any machine.

A row is a unit of work: a block of `BLOCK_TEXTS` texts of the stream, or a part of one where each
text takes many readings. A set whose order is drawn is read by one task, since the order needs all
of it; the files of a folder in their own order are read by a task each, which begins with the first
block that begins in its file and ends with the block that goes over into the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from fillmask_ui.cluster.problems import problem_of
from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import BLOCK_TEXTS
from fillmask_ui.records import Example
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.texts.reading import SourceReport, file_texts

# After so many units it is asked whether the rest is still wanted.
_ASKS_EVERY = 16


@dataclass(frozen=True)
class Stretch:
    """What one task reads of a cell: the texts from `first` on, whole blocks."""

    cell: int
    # One source of any kind, or the files of a folder from the first of this stretch on.
    shards: tuple[TextSource, ...]
    first: int = 0  # id of the first text; a multiple of `BLOCK_TEXTS`
    skip: int = 0  # texts of the first file that come before it
    end: int | None = None  # id behind the last text; None for all
    parts: int = 1  # units that a block is given out in


def stretches(
    cell: int, source: TextSource, shards: Sequence[TextSource], counts: Sequence[int]
) -> list[Stretch]:
    """The tasks that read a cell.

    Args:
        cell: its number.
        source: its texts.
        shards: the files of the source, or the source itself.
        counts: texts of each file, where there are several.

    >>> plain = TextSource("folder", "two", shuffle=False)
    >>> [(each.first, each.skip, each.end) for each in stretches(0, plain, [plain] * 2, [700, 900])]
    [(0, 0, 1024), (1024, 324, 1600)]
    """
    if len(shards) == 1:
        return [Stretch(cell, (source,))]
    total = min(sum(counts), source.samples or sum(counts))
    found, begins = [], 0
    for number, count in enumerate(counts):
        first = _up(begins)
        end = min(total, _up(begins + count))
        if first < end:
            found.append(Stretch(cell, tuple(shards[number:]), first, first - begins, end))
        begins += count
    return found


def _up(count: int) -> int:
    """The next multiple of a block."""
    return -(-count // BLOCK_TEXTS) * BLOCK_TEXTS


class BlockSource(Datasource):
    """Stretches of texts as a source of Ray Data, a task each.

    Args:
        stretches: in the order in which they are begun.
        ledger: handle of the actor.
    """

    def __init__(self, stretches: Sequence[Stretch], ledger: Any) -> None:
        super().__init__()
        self._stretches, self._ledger = stretches, ledger

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, *_: Any, **__: Any) -> list[ReadTask]:
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [
            ReadTask(partial(_read, stretch, self._ledger), unknown) for stretch in self._stretches
        ]


def _read(stretch: Stretch, ledger: Any) -> Iterator[pa.Table]:
    """The units of a stretch; an error is a unit of its own, at the end."""
    units, report = 0, SourceReport(None, None)
    try:
        with ExitStack() as opened:
            if stretch.end is None:
                texts = opened.enter_context(open_texts(stretch.shards[0]))
                report = texts.report
                known = _number(report.expected), _number(report.available)
                ray.get(ledger.read.remote(stretch.cell, *known))
                examples: Iterator[Example] = texts
            else:
                examples = _of_files(stretch, report)
            for table in _tables(stretch, examples):
                yield table
                units += 1
                if units % _ASKS_EVERY == 0 and not ray.get(ledger.wants.remote(stretch.cell)):
                    break
    except FillmaskError as error:
        units += 1
        yield _table(stretch, -1, 0, [], problem_of(error))
    rows = _number(report.available)
    counts = units, report.given, report.blank, report.cut
    ray.get(ledger.read_all.remote(stretch.cell, stretch.first, rows, counts))


def _number(count: Any) -> int | None:
    """A count that can be written as JSON: some come from numpy."""
    return None if count is None else int(count)


def _of_files(stretch: Stretch, report: SourceReport) -> Iterator[Example]:
    """The texts of a stretch of a folder, with the ids that they have in the whole of it."""
    texts = chain.from_iterable(map(file_texts, stretch.shards))
    wanted = islice(texts, stretch.skip, stretch.skip + (stretch.end or 0) - stretch.first)
    for index, text in enumerate(wanted, start=stretch.first):
        yield report.counted(Example(index, text))


def _tables(stretch: Stretch, examples: Iterator[Example]) -> Iterator[pa.Table]:
    """Block by block, each a table of its own so that Ray gives it out at once."""
    blocks = iter(lambda: list(islice(examples, BLOCK_TEXTS)), [])
    for number, block in enumerate(blocks, start=stretch.first // BLOCK_TEXTS):
        for part in range(stretch.parts):
            yield _table(stretch, number, part, block, "")


def _table(
    stretch: Stretch, block: int, part: int, examples: Sequence[Example], problem: str
) -> pa.Table:
    """One unit. Texts are bytes: JSON can write lone surrogates, which Arrow's strings refuse."""
    texts = [example.text.encode("utf-8", "surrogatepass") for example in examples]
    return pa.table(
        {
            "cell": pa.array([stretch.cell], pa.int32()),
            "block": pa.array([block], pa.int64()),
            "part": pa.array([part], pa.int32()),
            "parts": pa.array([stretch.parts], pa.int32()),
            "ids": pa.array([[example.id for example in examples]], pa.list_(pa.int64())),
            "texts": pa.array([texts], pa.list_(pa.binary())),
            "problem": pa.array([problem], pa.string()),
        }
    )


def examples_of(unit: dict[str, Any]) -> list[Example]:
    """The texts of a row."""
    pairs = zip(unit["ids"], unit["texts"], strict=True)
    return [Example(index, text.decode("utf-8", "surrogatepass")) for index, text in pairs]
