"""The texts of cells as blocks that Ray Data gives out in a stream.

A row is a unit of work: a block of `BLOCK_TEXTS` texts of the stream, or a part of one if each text
takes many readings. One task reads a cell, in the order that one process would.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.measure import BLOCK_TEXTS
from fillmask_ui.records import Example
from fillmask_ui.runs.record import other_text
from fillmask_ui.runs.rows_file import checksum
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.texts.reading import SourceReport

# Of a unit. `told` is pickled: `ReadingNews`, `GivenUp` or an exception, instead of texts.
_SCHEMA = pa.schema(
    {
        "cell": pa.int32(),
        "block": pa.int64(),
        "part": pa.int32(),
        "ids": pa.list_(pa.int64()),
        "texts": pa.list_(pa.list_(pa.binary())),  # of each example what `Example` is made of
        "done": pa.list_(pa.int64()),
        "told": pa.binary(),
    }
)


@dataclass(frozen=True, eq=False)
class CellTask:
    """What the processes of a pipeline have to know of a cell."""

    run: str  # its name, for messages
    source: TextSource
    config: EvaluationConfig  # resolved for the models, the size of the batches too
    parts: int  # units that a block is given out in
    stored: Any  # ObjectRef of the rows that the run has: id to checksum of the text


@dataclass(frozen=True)
class ReadingNews:
    """What a reading task knows of its texts when they are open, or at their end."""

    report: SourceReport
    blocks: int | None = None  # in all; None before the end
    found: int = 0  # texts that the run has rows of


class GivenUp:
    """What a worker tells of a unit that has ended too many processes."""


class BlockSource(Datasource):
    """The texts of cells as a source of Ray Data, a task each."""

    def __init__(self, tasks: Sequence[CellTask]) -> None:
        super().__init__()
        self._tasks = tasks

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, *_: Any, **__: Any) -> list[ReadTask]:
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(partial(_read, *each), unknown) for each in enumerate(self._tasks)]


def _read(cell: int, task: CellTask) -> Iterator[pa.Table]:
    """The units of a cell between two pieces of news; an error ends them."""
    number = found = 0
    try:
        stored = ray.get(task.stored)
        with open_texts(task.source) as texts:
            yield _table(cell, told=ReadingNews(texts.report))
            while block := list(islice(texts, BLOCK_TEXTS)):
                done = _done(task.run, block, stored)
                for part in range(task.parts):
                    yield _table(cell, number, part, block, done)
                number, found = number + 1, found + len(done)
            yield _table(cell, told=ReadingNews(texts.report, number, found))
    except Exception as error:  # noqa: BLE001 - raised in the driver
        yield _table(cell, told=told_error(error))


def _done(run: str, block: Sequence[Example], stored: Mapping[int, int]) -> list[int]:
    """Ids of the texts that a run has rows of; a `DataError` if one has changed since."""
    done = [example for example in block if example.id in stored]
    for example in done:
        if checksum(example.content) != stored[example.id]:
            raise other_text(run, example.id)
    return [example.id for example in done]


def told_error(error: Exception) -> Exception:
    """An error as it goes to the driver; a bug takes its traceback along."""
    if isinstance(error, FillmaskError):
        return error
    return RuntimeError("".join(traceback.format_exception(error)))


def _table(
    cell: int,
    block: int = -1,
    part: int = 0,
    examples: Sequence[Example] = (),
    done: Sequence[int] = (),
    told: Any = None,
) -> pa.Table:
    """One unit, a table of its own so that Ray gives it out at once."""
    # Texts are bytes: JSON can write lone surrogates, which Arrow's strings refuse.
    unit = {
        "cell": cell,
        "block": block,
        "part": part,
        "ids": [example.id for example in examples],
        "texts": [
            [cell.encode("utf-8", "surrogatepass") for cell in example.cells]
            for example in examples
        ],
        "done": list(done),
        "told": b"" if told is None else pickle.dumps(told),
    }
    return pa.Table.from_pylist([unit], _SCHEMA)


def examples_of(unit: dict[str, Any]) -> list[Example]:
    """The texts of a row."""
    pairs = zip(unit["ids"], unit["texts"], strict=True)
    return [
        Example(index, *(cell.decode("utf-8", "surrogatepass") for cell in cells))
        for index, cells in pairs
    ]
