"""What other processes do: one task reads the texts of a cell, a pool of actors measures them.

What goes between them is a unit of work: a block of `BLOCK_TEXTS` texts of the stream, or a part of
one if each text takes many readings. Blocks come in the order that one process would read.
"""

import os
import pickle
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import ray

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import EvaluationConfig, Heartbeat, RunningSummary, evaluate
from fillmask_ui.evaluation.measure import BLOCK_TEXTS
from fillmask_ui.features.ray.ray_machines import Placed, load_placed
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, SkippedText
from fillmask_ui.runs.record import other_text
from fillmask_ui.runs.rows_file import checksum, dump_row
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.texts.reading import SourceReport

# So many processes may end in a unit before it is given up.
TRIES = 6


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


@dataclass(frozen=True, eq=False)
class Unit:
    """What goes from the texts to a worker, and as its answer from there to the driver."""

    cell: int  # its number among the tasks
    block: int = -1
    part: int = 0  # of the block
    texts: Sequence[tuple[Any, ...]] = ()  # of each example what `Example` is made of
    done: Sequence[int] = ()  # ids of the texts that the run has rows of
    told: ReadingNews | Exception | None = None  # instead of texts, or of an answer
    # Of an answer.
    given_up: bool = False  # it has ended too many processes
    lines: bytes = b""
    summary: RunningSummary | None = None  # of these lines
    tokens: int = 0
    worker: str = ""

    def to_table(self) -> pa.Table:
        """A table of its own, so that Ray gives it out at once."""
        return pa.table({"unit": [pickle.dumps(self)]})


def units_of(table: pa.Table) -> list[Unit]:
    """The units of a table."""
    return [pickle.loads(unit) for unit in table["unit"].to_pylist()]  # noqa: S301 - our own


def read(rows: pa.Table, tasks: Sequence[CellTask]) -> Iterator[pa.Table]:
    """The units of a cell, whose number is the row, between two pieces of news, or an error."""
    (cell,) = rows["item"].to_pylist()
    task = tasks[cell]
    number = found = 0
    try:
        stored = ray.get(task.stored)
        with open_texts(task.source) as texts:
            yield Unit(cell, told=ReadingNews(texts.report)).to_table()
            while block := list(islice(texts, BLOCK_TEXTS)):
                done = _done(task.run, block, stored)
                sent = [(example.id, *example.cells) for example in block]
                for part in range(task.parts):
                    yield Unit(cell, number, part, sent, done).to_table()
                number, found = number + 1, found + len(done)
            yield Unit(cell, told=ReadingNews(texts.report, number, found)).to_table()
    except Exception as error:  # noqa: BLE001 - raised in the driver
        yield Unit(cell, told=told_error(error)).to_table()


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


class Attempts:
    """How often units were begun that have not ended; an actor on the machine of the driver.

    Ray's own limit of retries also counts what never began, on a machine that has just left.
    """

    def __init__(self) -> None:
        self._begun = Counter[tuple[int, ...]]()

    def begin(self, unit: tuple[int, ...]) -> int:
        self._begun[unit] += 1
        return self._begun[unit]

    def end(self, unit: tuple[int, ...]) -> None:
        del self._begun[unit]


class Worker:
    """Measures units of cells with one model; an actor of Ray Data's pool.

    An exception is part of the answer: the driver decides. The model is loaded with the first unit,
    so that a process that ends in the middle of that counts as an attempt, too.
    """

    def __init__(self, cells: Sequence[CellTask], placed: Sequence[Placed], attempts: Any) -> None:
        self._cells, self._placed, self._attempts = cells, placed, attempts
        self._name = str(ray.get_runtime_context().get_actor_id())
        self._models: tuple[MaskedLM, MaskedLM | None] | None = None

    def __call__(self, units: pa.Table) -> pa.Table:
        return pa.concat_tables([self._answer(unit).to_table() for unit in units_of(units)])

    def _answer(self, unit: Unit) -> Unit:
        answer = replace(unit, texts=(), done=(), worker=self._name)
        if unit.told:
            return answer
        key = (unit.cell, unit.block, unit.part)
        if ray.get(self._attempts.begin.remote(key)) > TRIES:
            return replace(answer, given_up=True)
        try:
            lines, summary, tokens = self._measure(unit)
            self._attempts.end.remote(key)
            return replace(answer, lines=lines, summary=summary, tokens=tokens)
        except MemoryError:
            os._exit(1)  # with what is left nothing more can be done; a fresh process tries again
        except Exception as error:  # noqa: BLE001 - raised in the driver
            return replace(answer, told=told_error(error))

    def _measure(self, unit: Unit) -> tuple[bytes, RunningSummary, int]:
        """Lines of the rows file, their sums, and how many tokens were scored."""
        if self._models is None:
            model, *others = map(load_placed, self._placed)
            self._models = model, others[0] if others else None
        model, baseline = self._models
        task, examples = self._cells[unit.cell], [Example(*each) for each in unit.texts]
        checksums = {example.id: checksum(example.content) for example in examples}
        size = model.signature.vocabulary_size
        running = RunningSummary(config=task.config, vocabulary_size=size)
        lines, tokens = [], 0
        share = (unit.part, task.parts)  # other units of the block measure the other windows
        rows = evaluate(
            model, examples, task.config, baseline=baseline, done=unit.done, share=share
        )
        for row in rows:
            if isinstance(row, Heartbeat):
                continue
            running.add(row)
            lines.append(dump_row(row, checksums[row.id]))
            tokens += 0 if isinstance(row, SkippedText) else len(row.scores.nll_nats)
        return b"".join(lines), running, tokens
