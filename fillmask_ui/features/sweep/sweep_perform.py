"""perform_sweep(): each cell of a sweep becomes a stored run, or goes on with the one it has."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from fillmask_ui.errors import FillmaskError
from fillmask_ui.features.sweep.sweep_file import Sweep, SweepCell
from fillmask_ui.records import ModelSignature
from fillmask_ui.runs import Cell, Engine, Plan, Progress, Run, RunStore, perform_cells
from fillmask_ui.runs.info import DONE
from fillmask_ui.runs.perform import Load
from fillmask_ui.runs.record import signature_changes

KEPT, BEGUN, MEASURING, MEASURED, FAILED = "kept", "begun", "measuring", "measured", "failed"


@dataclass(frozen=True, eq=False)
class Step:
    """A cell of a sweep at one moment."""

    cell: SweepCell
    state: str  # `kept` (was done before), `begun`, `measuring`, `measured` or `failed`
    run: str | None = None  # name of its run, once it has one
    progress: Progress | None = None  # of the run, while it is measured
    message: str = ""  # why it failed; of one kept or begun, such as why it is measured anew


def perform_sweep(
    sweep: Sweep, store: RunStore, load: Load, engine: Engine | None = None
) -> Generator[Step]:
    """Measure what the stored runs of the sweep lack, a model at a time.

    Close the generator to stop; the next call goes on. A cell that fails does not stop the others.
    Each cell is `kept` or `failed`; or `begun`, `measuring` many times, and `measured` or `failed`.
    """
    stored = stored_runs(sweep, store)
    for model in sweep.models:
        cells = [cell for cell in sweep.cells if cell.model == model]
        yield from _perform_model(cells, stored, store, load, engine)


def _perform_model(
    cells: Sequence[SweepCell],
    stored: Mapping[str, Sequence[Run]],
    store: RunStore,
    load: Load,
    engine: Engine | None,
) -> Iterator[Step]:
    """Measure the cells of one model, which is dropped at the end."""
    try:
        model = load(cells[0].model.value)
    except FillmaskError as error:
        note = f"kept unchecked, as the model cannot be loaded now: {error}"
        for cell in cells:
            if done := [run for run in stored.get(cell.key, ()) if run.info.state == DONE]:
                yield Step(cell, KEPT, done[-1].info.name, message=note)
            else:
                yield Step(cell, FAILED, message=str(error))
        return
    jobs = [_job(cell, stored.get(cell.key, ()), model.signature) for cell in cells]
    yield from (Step(job.cell, KEPT, job.run) for job in jobs if job.over)
    # An engine gets them all, or after an error each alone.
    batches = [[job] for job in jobs] if engine is None else [jobs]
    while batches:
        batch = [job for job in batches.pop(0) if not job.over]
        try:
            if batch:
                yield from _perform_batch(batch, store, lambda _: model, engine)
        except FillmaskError as error:
            if len(batch) > 1:
                batches += [[job] for job in batch]
                continue
            why, run = str(error), batch[0].run
            if run:  # the sweep would go on with it
                anew = f"start a new run (fillmask-ui runs delete {run}, then the sweep again)"
                why = why.replace("start a new run", anew)
            yield Step(batch[0].cell, FAILED, run, message=why)


def stored_runs(sweep: Sweep, store: RunStore) -> dict[str, list[Run]]:
    """The stored runs of a sweep by the keys of their cells, oldest first."""
    found: dict[str, list[Run]] = {}
    for name in store.names():
        try:
            run = store.open(name)
        except FillmaskError:
            continue  # of another version, or broken: not of this sweep
        if run.info.cell.get("sweep") == sweep.name:
            found.setdefault(str(run.info.cell.get("key")), []).append(run)
    return found


@dataclass
class _Job:
    cell: SweepCell
    run: str | None = None  # that it goes on with
    note: str = ""  # why an older run does not count
    over: bool = False  # measured to its end


def _job(cell: SweepCell, runs: Sequence[Run], signature: ModelSignature) -> _Job:
    """The newest run on the model and texts of today counts, one that is done before others."""
    changed = {run.info.name: _changes(run, cell, signature) for run in runs}
    fit = [run.info for run in runs if not changed[run.info.name]]
    if fit:
        best = max(fit, key=lambda info: (info.state == DONE, info.name))
        return _Job(cell, best.name, over=best.state == DONE)
    if not runs:
        return _Job(cell)
    name = runs[-1].info.name
    return _Job(cell, note=f"measured anew, as since run {name} {changed[name]}")


def _changes(run: Run, cell: SweepCell, signature: ModelSignature) -> str:
    """What changed since a run began, in words; other versions may not go on with it."""
    now = signature_changes(run.info.model, signature)
    if run.info.state == DONE:
        now = [change for change in now if change.startswith("sha256 ")]
    changes = [f"the model changed: {'; '.join(now)}"] if now else []
    if run.info.cell.get("texts_sha256") != cell.stored_label.get("texts_sha256"):
        changes.append(f"the texts in {cell.texts.value.where} changed")
    return ", and ".join(changes)


def _perform_batch(
    batch: Sequence[_Job], store: RunStore, load: Load, engine: Engine | None
) -> Iterator[Step]:
    by_key = {job.cell.key: job for job in batch}
    begun = set[str]()
    cells = []
    for job in batch:
        # A stored run has the choices that were resolved for its model.
        plan = Plan.of(store.open(job.run).info) if job.run else job.cell.plan
        cells.append(Cell(plan, job.run, job.cell.stored_label))
    steps: Any = perform_cells(cells, store, load, engine)
    with closing(steps):
        for progress in steps:
            job = by_key[progress.info.cell["key"]]
            job.run = progress.info.name
            job.over = progress.info.state == DONE
            state = MEASURED if job.over else MEASURING
            if not job.over and job.cell.key not in begun:
                begun.add(job.cell.key)
                state = BEGUN
            yield Step(job.cell, state, job.run, progress, job.note)
