"""What is checked and opened before the first unit is measured."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayTaskError

from fillmask_ui.cluster.blocks import Stretch, stretches
from fillmask_ui.cluster.connect import Cluster
from fillmask_ui.cluster.ledger import Unit
from fillmask_ui.cluster.placing import (
    Machine,
    Placed,
    check_texts,
    check_versions,
    describe,
    machines,
    paths_of,
    place,
)
from fillmask_ui.cluster.worker import CellTask
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.measure import DEFAULT_BATCH_TOKENS
from fillmask_ui.runs import Cell, Recorder, RunStore, resume
from fillmask_ui.runs.perform import Load, begin
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.texts.files import is_folder
from fillmask_ui.texts.reading import count_texts, shards
from fillmask_ui.texts.source import DATASET, FILE, FOLDER, STDIN

# Units of a block where each token is a reading: some seconds each, not minutes.
PARTS = 16


@dataclass(eq=False)
class OpenCell:
    """A cell whose run is open for writing."""

    number: int
    source: TextSource
    recorder: Recorder
    stretches: list[Stretch]  # what the reading tasks read
    closing: ExitStack  # ends the run: done, stopped or failed
    available: int | None = None  # rows of the data, where that is known
    expected: int | None = None  # texts in all, where that is known
    delivered: set[Unit] = field(default_factory=set)
    found: int = 0  # rows of before whose texts are still there
    tokens: int = 0  # scored since it was opened
    through: float = 0.0  # texts, those under way by share of the work
    ended: bool = False

    def end(self, error: FillmaskError | None) -> None:
        """Close the run, which has failed with an error, or else is done.

        Raises:
            FillmaskError: if it has nothing to be done with, as no text could be measured.
        """
        self.ended = True
        if error is None:
            self.closing.close()
        else:
            self.closing.__exit__(type(error), error, None)


@dataclass(frozen=True, eq=False)
class Group:
    """Cells of one model and baseline, ready to be measured."""

    cells: list[OpenCell]
    tasks: list[CellTask]  # for the workers, in the same order
    model: Placed
    baseline: Placed | None


def prepare(
    cluster: Cluster, cells: Sequence[Cell], store: RunStore, load: Load, opened: ExitStack
) -> Group:
    """Check all that can be checked, load the models here, open the runs.

    Args:
        cluster: that is connected.
        cells: of one model and one baseline.
        store: of their runs.
        load: makes a model of a choice.
        opened: what is to be closed at the end.

    Raises:
        FillmaskError: if something cannot be had or does not fit; new runs are not made then.
    """
    plan = cells[0].plan
    choices = [choice for choice in (plan.model, plan.baseline) if choice is not None]
    resumed = [
        opened.enter_context(resume(store, cell.run)) if cell.run else None for cell in cells
    ]
    sources = [_checked(cell) for cell in cells]
    here, others = _checked_machines(cluster, sources, [p for c in choices for p in paths_of(c)])
    counted = [_counted(source) for source in sources]
    models = [load(choice) for choice in choices]
    baseline = models[1] if len(models) > 1 else None
    placed = [
        place(what, choice, model, cluster, here, others)
        for what, choice, model in zip(("model", "baseline"), choices, models, strict=False)
    ]
    going, tasks = [], []
    for number, (cell, found) in enumerate(zip(cells, resumed, strict=True)):
        recorder = found or opened.enter_context(begin(cell, store, models[0], baseline))
        recorder.check_models(models[0], baseline)
        closing = opened.enter_context(ExitStack())
        going.append(_opened(number, sources[number], counted[number], recorder, closing))
        tasks.append(_task(recorder))
    return Group(going, tasks, placed[0], placed[1] if baseline else None)


def _checked(cell: Cell) -> TextSource:
    """The texts of a cell as workers are to find them; the first one is read here.

    A wrong column or a missing file shows before anything is loaded.
    """
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
    local = source.kind in (FILE, FOLDER) or is_folder(source.where)
    if local and source.kind in (FILE, FOLDER, DATASET):
        return replace(source, where=str(Path(source.where).expanduser().absolute()))
    return source


def _checked_machines(
    cluster: Cluster, sources: Sequence[TextSource], models: Sequence[str]
) -> tuple[Machine, list[Machine]]:
    """This machine and all of the cluster, which have the same versions and the texts."""
    texts = [source.where for source in sources if Path(source.where).is_absolute()]
    paths = [*texts, *models]
    here = describe(paths)
    others = [] if cluster.local else machines(paths)
    check_versions(here, others)
    check_texts(texts, here, others)
    return here, others


def _counted(source: TextSource) -> list[int]:
    """Texts of each file of a folder that is read in its own order, counted by the cluster."""
    files = shards(source)
    if len(files) == 1:
        return []
    count = ray.remote(num_cpus=0)(count_texts)
    try:
        return ray.get([count.remote(file) for file in files])
    except RayTaskError as error:
        raise error.cause if isinstance(error.cause, FillmaskError) else error from None


def _opened(
    number: int, source: TextSource, counts: list[int], recorder: Recorder, closing: ExitStack
) -> OpenCell:
    parts = PARTS if recorder.info.config.scheme.covers_the_text else 1
    tasks = stretches(number, source, shards(source), counts)
    tasks = [replace(stretch, parts=parts) for stretch in tasks]
    cell = OpenCell(number, source, recorder, tasks, closing)
    if counts:
        total = sum(counts)
        cell.expected = min(total, source.samples or total)
        # As one process would know it: in its own order a folder is read no further than asked.
        cell.available = total if source.samples is None or total < source.samples else None
        if recorder.info.texts.get("available") is not None:
            cell.available = total
    return cell


def _task(recorder: Recorder) -> CellTask:
    """What workers need to know of a cell."""
    config: EvaluationConfig = recorder.info.config
    config = replace(config, batch_tokens=config.batch_tokens or DEFAULT_BATCH_TOKENS)
    stored: Any = None
    if recorder.stored:
        pairs = sorted(recorder.stored.items())
        ids = np.array([index for index, _ in pairs], np.int64)
        stored = ray.put((ids, np.array([checksum for _, checksum in pairs], np.uint32)))
    return CellTask(recorder.name, config, stored)
