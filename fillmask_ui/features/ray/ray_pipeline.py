"""Evaluations through one pipeline of Ray Data: texts in a stream, workers, rows into runs."""

import queue
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray
import ray.data
from ray.exceptions import RayError, RayTaskError

from fillmask_ui.errors import DataError, OptionError, first_line
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.evaluation.measure import BLOCK_TEXTS
from fillmask_ui.features.ray.ray_connection import Cluster
from fillmask_ui.features.ray.ray_machines import (
    Placed,
    check_versions,
    describe,
    machines,
    paths_of,
    place,
)
from fillmask_ui.features.ray.ray_worker import (
    TRIES,
    Attempts,
    CellTask,
    ReadingNews,
    Unit,
    Worker,
    read,
    units_of,
)
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Cell, Progress, Recorder, RunStore, resume
from fillmask_ui.runs.perform import Load, begin
from fillmask_ui.runs.rows_file import read_row
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.texts.files import is_folder
from fillmask_ui.texts.reading import SourceReport
from fillmask_ui.texts.source import DATASET, FILE, FOLDER, STDIN

# Units of a block, if each token is a reading: some seconds each, not minutes.
PARTS = 16
_POLL_SECONDS = 0.5
# Finished units that wait for the driver; beyond it, workers wait.
_MOST_WAITING = 64


@dataclass(eq=False)
class OpenCell:
    """A cell whose run is open for writing."""

    recorder: Recorder
    task: CellTask
    closing: ExitStack  # ends the run: done, stopped or failed
    news: ReadingNews = field(default_factory=lambda: ReadingNews(SourceReport(None, None)))
    delivered: set[tuple[int, int]] = field(default_factory=set)  # block and part
    given_up: int = 0  # units
    tokens: int = 0  # scored since it was opened

    def take(self, unit: Unit) -> Iterable[EvaluatedText | SkippedText]:
        """Store the rows of an answer, or learn what it tells; if that is an error, raise it."""
        if isinstance(unit.told, Exception):
            raise unit.told
        if unit.told is not None:
            self.news = unit.told
            self.recorder.know_available(unit.told.report.available)
        elif unit.given_up:
            self.given_up += 1
        elif unit.summary is not None and (unit.block, unit.part) not in self.delivered:
            self.delivered.add((unit.block, unit.part))
            self.tokens += unit.tokens
            self.recorder.store(unit.lines, unit.summary)
        units = None if self.news.blocks is None else self.news.blocks * self.task.parts
        if len(self.delivered) == units:
            self.recorder.check_found(self.news.found)
            self.recorder.note(self.news.report.notes)
            self.closing.close()
            self.recorder.close()
        if not unit.lines:
            return ()
        lines = unit.lines.splitlines(keepends=True)
        return (read_row(line, "a row of a worker").row for line in lines)

    def lost(self, why: str) -> DataError:
        """What to say if units never came."""
        block = 0
        while all((block, part) in self.delivered for part in range(self.task.parts)):
            block += 1
        first, last = block * BLOCK_TEXTS, (block + 1) * BLOCK_TEXTS - 1
        return DataError(
            f"Ray gave up at block {block}, texts {first:,} to {last:,} ({why}): is there memory "
            "for the model as often as there are workers (--workers)? What is stored is kept; go "
            "on with --resume, without --engine ray if one of these texts is the cause"
        )


@dataclass(frozen=True)
class RayEngine:
    """Measures on the workers of a cluster."""

    cluster: Cluster

    def perform(self, cells: Sequence[Cell], store: RunStore, load: Load) -> Generator[Progress]:
        """As `runs.perform_cells`; an error of one cell ends all."""
        with ExitStack() as opened:
            opened_cells, placed = _opened(self.cluster, cells, store, load, opened)
            pipeline = _Pipeline(self.cluster, opened_cells, placed)
            opened.callback(pipeline.stop)
            yield from pipeline.run()


class _Pipeline:
    """The pipeline of cells, drawn by a thread of its own so that the driver can stop at once."""

    def __init__(
        self, cluster: Cluster, cells: Sequence[OpenCell], placed: Sequence[Placed]
    ) -> None:
        self._cluster, self._cells, self._placed = cluster, cells, placed
        self._heard = set[str]()  # actors that have measured something
        self._queue: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._draw, daemon=True, name="ray-data")
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the thread; while it waits for Ray, the end of the connection does so."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(2 * _POLL_SECONDS)

    def run(self) -> Generator[Progress]:
        """Store what comes, and say how it goes."""
        for cell in self._cells:
            yield self._progress(cell, dropped_bytes=cell.recorder.dropped_bytes)
        self._thread.start()
        item: Any = ()
        while item is not None and self._open():
            item = ()  # nothing yet
            with suppress(queue.Empty):
                item = self._queue.get(timeout=_POLL_SECONDS)
            if not ray.is_initialized():  # the program is being ended: what is stored is kept
                return
            if isinstance(item, RayError) and not isinstance(item, RayTaskError):
                raise self._open()[0].lost(first_line(item)) from item
            if isinstance(item, BaseException):
                raise item
            if item:
                self._heard.add(item.worker)
                cell = self._cells[item.cell]
                if not cell.recorder.closed:
                    yield self._progress(cell, rows=cell.take(item))
                # The rest is measured, unless no process lives long enough for any unit.
                if cell.given_up > self._cluster.workers:
                    break
            else:
                yield from map(self._progress, self._open())
        for cell in self._open():
            raise cell.lost(f"its processes ended {TRIES} times")
        for cell in self._cells:
            yield self._progress(cell)

    def _open(self) -> list[OpenCell]:
        return [cell for cell in self._cells if not cell.recorder.closed]

    def _dataset(self) -> Any:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # each unit is given out by itself, at once
        tasks = [cell.task for cell in self._cells]
        # Texts are read on this machine alone.
        here = ray.get_runtime_context().get_node_id()
        numbers: Any = ray.data.from_items([*range(len(tasks))], override_num_blocks=len(tasks))
        units = numbers.map_batches(
            read,
            fn_args=(tasks,),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=0,
            concurrency=min(len(tasks), 2),
            label_selector={"ray.io/node-id": here},
        )
        # Two for each worker, so that none waits for the driver and none hoards what others want.
        pool = ray.data.ActorPoolStrategy(
            size=self._cluster.workers, max_tasks_in_flight_per_actor=2
        )
        counting = ray.remote(num_cpus=0, label_selector={"ray.io/node-id": here})(Attempts)
        self._attempts = counting.remote()  # lives as long as this pipeline
        return units.map_batches(
            Worker,
            fn_constructor_args=(tasks, self._placed, self._attempts),
            batch_size=None,
            batch_format="pyarrow",
            compute=pool,
            num_cpus=self._cluster.threads,
        )

    def _draw(self) -> None:
        """The thread: finished units, then None, or what went wrong."""
        try:
            tables: Any = self._dataset().iter_batches(batch_size=None, batch_format="pyarrow")
            for table in tables:
                for unit in units_of(table):
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

    def _progress(self, cell: OpenCell, **changes: Any) -> Progress:
        return Progress(
            cell.recorder.info,
            cell.recorder.running,
            cell.news.report.expected,
            cell.recorder.running.seen,
            tokens=cell.tokens,
            workers=len(self._heard),
            warnings=cell.news.report.warnings,
            stop=cell.recorder.close,
            **changes,
        )


def _opened(
    cluster: Cluster, cells: Sequence[Cell], store: RunStore, load: Load, opened: ExitStack
) -> tuple[list[OpenCell], list[Placed]]:
    """Check what can be checked before runs are made, load the models here, open the runs."""
    plan = cells[0].plan
    resumed = [
        opened.enter_context(resume(store, cell.run)) if cell.run else None for cell in cells
    ]
    sources = [_checked(cell) for cell in cells]
    paths = paths_of(plan.model) + (paths_of(plan.baseline) if plan.baseline else [])
    here, others = describe(paths), [] if cluster.local else machines(paths)
    check_versions(here, others)
    model = load(plan.model)
    baseline = None
    placed = [place("model", plan.model, model, cluster.threads, here, others)]
    if plan.baseline is not None:
        baseline = load(plan.baseline)
        placed.append(place("baseline", plan.baseline, baseline, cluster.threads, here, others))
    found = []
    for cell, source, old in zip(cells, sources, resumed, strict=True):
        recorder = old or opened.enter_context(begin(cell, store, model, baseline))
        recorder.check_models(model, baseline)
        config = recorder.info.config
        parts = PARTS if config.metric.covers_the_text else 1
        task = CellTask(recorder.name, source, config, parts, ray.put(dict(recorder.stored)))
        found.append(OpenCell(recorder, task, opened.enter_context(ExitStack())))
    for each in found:
        each.closing.enter_context(each.recorder.under_way(cluster.to_dict()))
    return found, placed


def _checked(cell: Cell) -> TextSource:
    """The texts of a cell as another process finds them, after a look at the first one."""
    source, config = cell.plan.source, cell.plan.config
    if source.kind == STDIN:
        raise OptionError(
            "other processes cannot read standard input: save the texts to a file, or leave out "
            "--engine ray"
        )
    if config.mask_stream == "collator":
        raise OptionError(
            "the mask stream 'collator' draws for each text after all texts before it, so it "
            "cannot be shared out: leave out --engine ray, or take the masks of each text"
        )
    with open_texts(replace(source, shuffle=False, samples=1)) as texts:
        next(texts)
    if source.kind in (FILE, FOLDER) or (source.kind == DATASET and is_folder(source.where)):
        return replace(source, where=str(Path(source.where).expanduser().absolute()))
    return source
