"""Cells through one pipeline of Ray Data: texts in a stream, workers, finished rows into runs."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import ray
import ray.data
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fillmask_ui.cluster.blocks import BlockSource
from fillmask_ui.cluster.connect import Cluster
from fillmask_ui.cluster.ledger import Ledger, Report, Unit
from fillmask_ui.cluster.prepare import Group, OpenCell, prepare
from fillmask_ui.cluster.problems import error_of
from fillmask_ui.cluster.worker import CRASHED, Worker
from fillmask_ui.errors import DataError, FillmaskError, first_line
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Cell, Progress, RunStore
from fillmask_ui.runs.perform import Load
from fillmask_ui.runs.rows_file import read_row
from fillmask_ui.texts.reading import SourceReport

_POLL_SECONDS = 0.5
# Finished units that wait for the driver; beyond it, workers wait.
_MOST_WAITING = 64
# What is under way when a pipeline is given up has so long to end by itself.
_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class StoredRows:
    """Rows as they were written, parsed when somebody looks at them."""

    lines: bytes

    def __iter__(self) -> Iterator[EvaluatedText | SkippedText]:
        for line in self.lines.splitlines(keepends=True):
            yield read_row(line, "a row of a worker").row


def perform_group(
    cluster: Cluster, cells: Sequence[Cell], store: RunStore, load: Load
) -> Generator[Progress]:
    """Measure cells of one model and one baseline; as `runs.perform_cells`."""
    with ExitStack() as opened:
        group = prepare(cluster, cells, store, load, opened)
        for cell in group.cells:
            recorder = cell.recorder
            cell.closing.enter_context(recorder.under_way(cluster.to_dict()))
        pipeline = _Pipeline(cluster, group)
        opened.callback(pipeline.stop)
        yield from pipeline.run()


class _Pipeline:
    """The pipeline of a group, drawn by a thread of its own so that the driver can say how it goes.

    Args:
        cluster: that is connected.
        group: with runs under way.
    """

    def __init__(self, cluster: Cluster, group: Group) -> None:
        self._cluster, self._cells = cluster, group.cells
        # In the driver's own node: it ends with the evaluation, not with another machine.
        here = ray.get_runtime_context().get_node_id()
        pinned = NodeAffinitySchedulingStrategy(here, soft=False)
        actor: Any = ray.remote(Ledger)
        self._ledger = actor.options(num_cpus=0, scheduling_strategy=pinned).remote(cluster.workers)
        self._report, self._asked_at = Report(), 0.0
        self._failure: FillmaskError | None = None
        self._stopped = threading.Event()
        self._queue: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._drawing = threading.Thread(
            target=self._draw, args=(self._dataset(group),), daemon=True, name="ray-data"
        )

    def _dataset(self, group: Group) -> ray.data.Dataset:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # each unit is given out by itself, at once
        stretches = [stretch for cell in group.cells for stretch in cell.stretches]
        source = BlockSource(stretches, self._ledger)
        units = ray.data.read_datasource(
            source,
            override_num_blocks=len(stretches),
            num_cpus=0,
            concurrency=min(len(stretches), max(2, self._cluster.workers)),
        )
        # Two for each worker, so that none waits for the driver and none hoards what others want.
        pool = ray.data.ActorPoolStrategy(
            size=self._cluster.workers, max_tasks_in_flight_per_actor=2
        )
        return units.map_batches(
            Worker,
            fn_constructor_args=(self._ledger, group.tasks, group.model, group.baseline),
            batch_size=None,
            batch_format="pyarrow",
            compute=pool,
            num_cpus=self._cluster.threads,
        )

    def _draw(self, dataset: ray.data.Dataset) -> None:
        """The thread: finished units, then None, or what went wrong."""
        try:
            tables: Any = dataset.iter_batches(batch_size=None, batch_format="pyarrow")
            for table in tables:
                for unit in table.to_pylist():
                    self._put(unit)
                if self._stopped.is_set():
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - raised where the driver waits
            self._put(error)

    def _put(self, item: Any) -> None:
        put = False
        while not put and not self._stopped.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=_POLL_SECONDS)
                put = True

    def stop(self) -> None:
        """Give up what is not measured yet; harmless at the end."""
        self._stopped.set()
        if self._drawing.is_alive():
            for cell in self._cells:
                self._ledger.give_up.remote(cell.number)
            self._drawing.join(0.0 if self._cluster.local else _PATIENCE_SECONDS)

    def run(self) -> Generator[Progress]:
        """Store what comes, and say how it goes."""
        for cell in self._cells:
            yield self._progress(cell, dropped_bytes=cell.recorder.dropped_bytes)
        self._drawing.start()
        item: Any = ""
        while item is not None:
            try:
                item = self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                item = ""
            if not ray.is_initialized():  # the program is being ended: what is stored is kept
                for cell in self._cells:
                    cell.recorder.close()
                return
            if isinstance(item, BaseException):
                raise _explained(item)
            if item:
                cell = self._cells[item["cell"]]
                yield self._progress(cell, rows=self._stored(cell, item))
            if time.monotonic() - self._asked_at > _POLL_SECONDS or item is None:
                yield from self._look()
        if any(not cell.ended for cell in self._cells):
            raise DataError("Ray lost units of the work: go on with --resume")
        if self._failure is not None:
            raise self._failure

    def _look(self) -> Iterator[Progress]:
        """Ask the ledger; end what is over, and say how far the rest is."""
        self._report = ray.get(self._ledger.report.remote())
        self._asked_at = time.monotonic()
        for cell in self._cells:
            if cell.ended:
                continue
            try:
                self._learn(cell)
            except FillmaskError as error:
                self._fail(cell, error)
            yield self._progress(cell)

    def _learn(self, cell: OpenCell) -> None:
        """What reading tasks have told of the texts of a cell; the end of a cell that is over."""
        if cell.recorder.closed:  # somebody else has stopped it
            self._ledger.give_up.remote(cell.number)
            cell.end(None)
            return
        reading = self._report.readings.get(cell.number)
        if reading is None:
            return
        cell.expected = reading.expected or cell.expected
        cell.available = reading.available or cell.available
        cell.recorder.know_available(cell.available)
        if len(reading.ended) < len(cell.stretches):
            return
        units, *counts = reading.totals
        if len(cell.delivered) == units:
            aside = self._report.aside.get(cell.number, [])
            cell.recorder.check_found(cell.found)
            texts = SourceReport(cell.source.samples, cell.available, *counts)
            cell.recorder.note((*texts.notes, *_aside_note(aside)))
            texts.check(cell.source.where or cell.source.kind)
            cell.end(None)

    def _stored(self, cell: OpenCell, unit: dict[str, Any]) -> StoredRows:
        """Store the rows of a unit; none of a cell that has failed."""
        key: Unit = (unit["cell"], unit["block"], unit["part"])
        if cell.ended or cell.recorder.closed or key in cell.delivered:
            return StoredRows(b"")
        try:
            if unit["problem"]:
                raise error_of(unit["problem"])
            cell.delivered.add(key)
            cell.found += unit["found"]
            cell.tokens += unit["tokens"]
            if unit["lines"]:
                # Made by this evaluation's own workers.
                cell.recorder.store(unit["lines"], pickle.loads(unit["summary"]))  # noqa: S301
        except FillmaskError as error:
            self._fail(cell, error)
            return StoredRows(b"")
        return StoredRows(unit["lines"])

    def _fail(self, cell: OpenCell, error: FillmaskError) -> None:
        self._failure = self._failure or error
        self._ledger.give_up.remote(cell.number)
        cell.end(error)

    def _progress(self, cell: OpenCell, **changes: Any) -> Progress:
        recorder, begun = cell.recorder, self._report.under_way.items()
        own = [
            told for unit, told in begun if unit[0] == cell.number and unit not in cell.delivered
        ]
        through = recorder.running.seen + sum(texts for texts, _ in own)
        # What a resumed run has of a block that is under way counts once.
        cell.through = max(cell.through, min(through, cell.expected or through))
        return Progress(
            recorder.info,
            recorder.running,
            cell.expected,
            cell.through,
            tokens=cell.tokens + sum(tokens for _, tokens in own),
            workers=self._report.workers,
            stop=recorder.close,
            **changes,
        )


def _aside_note(aside: Sequence[int]) -> tuple[str, ...]:
    if not aside:
        return ()
    named = ", ".join(map(str, aside[:10])) + (", ..." if len(aside) > 10 else "")
    what = "text was" if len(aside) == 1 else "texts were"
    return (f"{len(aside):,} {what} set aside, which {CRASHED}: {named}",)


def _explained(error: BaseException) -> BaseException:
    """What Ray says went wrong, for the user; a fault of this program as it is."""
    if isinstance(error, RayTaskError):
        return error.cause if isinstance(error.cause, FillmaskError) else error
    if isinstance(error, RayError):
        return DataError(
            f"Ray gave up ({first_line(error)}): what is stored is kept; go on with --resume"
        )
    return error
