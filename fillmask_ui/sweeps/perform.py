"""perform_sweep(): each cell of a sweep becomes a stored run, or goes on with the one it has."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from fillmask_ui.errors import FillmaskError
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import ModelSignature
from fillmask_ui.runs import Cell, Engine, Plan, Progress, Run, RunStore, perform_cells
from fillmask_ui.runs.info import DONE
from fillmask_ui.runs.perform import Load
from fillmask_ui.runs.record import signature_changes
from fillmask_ui.sweeps.plan import Sweep, SweepCell

KEPT, BEGUN, MEASURING, MEASURED, FAILED = "kept", "begun", "measuring", "measured", "failed"


@dataclass(frozen=True, eq=False)
class Step:
    """A cell of a sweep at one moment."""

    cell: SweepCell
    state: str  # `kept` (was done before), `begun`, `measuring`, `measured` or `failed`
    run: str | None = None  # name of its run, once it has one
    progress: Progress | None = None  # of the run, while it is measured
    # why it failed; of one that is kept or begun, what to know, such as why it is measured anew
    message: str = ""


def perform_sweep(
    sweep: Sweep, store: RunStore, load: Load, engine: Engine | None = None
) -> Generator[Step]:
    """Measure what the stored runs of the sweep lack, a model at a time.

    Close the generator to stop; the next call goes on. A cell that fails does not stop the others.

    Args:
        sweep: all choices.
        store: of the runs.
        load: makes a model of a choice; called once for each model.
        engine: as of `perform_cells`, which then has all cells of a model at once.

    Yields:
        Of each cell `kept` or `failed`; or `begun`, `measuring` many times, and `measured` or
        `failed`.
    """
    loaded = _OneModel(load)
    stored = stored_runs(sweep, store)
    for model in sweep.models:
        cells = [cell for cell in sweep.cells if cell.model == model]
        jobs = []
        try:
            signature = loaded(model.value).signature
        except FillmaskError as error:
            yield from _without_model(cells, stored, str(error))
            continue
        for cell in cells:
            found = _usable(cell, stored.get(cell.key, ()), signature)
            name = None if found.run is None else found.run.info.name
            if found.run is not None and found.run.info.state == DONE:
                yield Step(cell, KEPT, name)
            else:
                jobs.append(_Job(cell, name, found.note))
        yield from _perform_jobs(jobs, store, loaded, engine)


def stored_runs(sweep: Sweep, store: RunStore) -> dict[str, list[Run]]:
    """The stored runs of a sweep by the keys of their cells, oldest first."""
    found: dict[str, list[Run]] = {}
    for name in store.names():
        try:
            run = store.open(name)
        except FillmaskError:
            continue  # of another version, or broken: it is no run of this sweep
        if run.info.cell.get("sweep") == sweep.name:
            found.setdefault(str(run.info.cell.get("key")), []).append(run)
    return found


class _OneModel:
    """`load`, which keeps the model that was asked for last and drops it before the next."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._choice: ModelChoice | None = None
        self._model: MaskedLM | None = None

    def __call__(self, choice: ModelChoice) -> MaskedLM:
        if self._model is None or choice != self._choice:
            self._model = None
            self._choice, self._model = choice, self._load(choice)
        return self._model


@dataclass(frozen=True, eq=False)
class _Found:
    run: Run | None = None  # that counts for a cell
    note: str = ""  # why an older one does not


def _usable(cell: SweepCell, runs: Sequence[Run], signature: ModelSignature) -> _Found:
    """The newest run of a cell on the model and texts of today, one that is done before others."""
    changed = {run.info.name: _changes(run, cell, signature) for run in runs}
    fit = [run for run in runs if not changed[run.info.name]]
    if fit:
        return _Found(max(fit, key=lambda run: (run.info.state == DONE, run.info.name)))
    if not runs:
        return _Found()
    name = runs[-1].info.name
    return _Found(note=f"measured anew, as since run {name} {changed[name]}")


def _changes(run: Run, cell: SweepCell, signature: ModelSignature) -> str:
    """What is not as it was when a run began, in words; other versions may not go on with it."""
    now = signature_changes(run.info.model, signature)
    if run.info.state == DONE:
        now = [change for change in now if change.startswith("sha256 ")]
    changes = [f"the model changed: {'; '.join(now)}"] if now else []
    if run.info.cell.get("texts_sha256") != cell.stored_label.get("texts_sha256"):
        changes.append(f"the texts in {cell.texts.value.where} changed")
    return ", and ".join(changes)


def _without_model(
    cells: Iterable[SweepCell], stored: Mapping[str, Sequence[Run]], why: str
) -> Iterator[Step]:
    """Of a model that cannot be had: what is done is kept, the rest fails."""
    for cell in cells:
        done = [run for run in stored.get(cell.key, ()) if run.info.state == DONE]
        if done:
            note = f"kept unchecked, as the model cannot be loaded now: {why}"
            yield Step(cell, KEPT, done[-1].info.name, message=note)
        else:
            yield Step(cell, FAILED, message=why)


@dataclass
class _Job:
    """A cell to be measured."""

    cell: SweepCell
    run: str | None  # that it goes on with
    note: str = ""
    over: bool = False  # measured to its end

    def to_cell(self, store: RunStore) -> Cell:
        # A stored run has the choices that were resolved for its model.
        plan = Plan.of(store.open(self.run).info) if self.run else self.cell.plan
        return Cell(plan, self.run, self.cell.stored_label)


def _perform_jobs(
    jobs: Sequence[_Job], store: RunStore, load: Load, engine: Engine | None
) -> Iterator[Step]:
    """Measure cells of one model; an engine gets them all, or after an error each alone."""
    batches = [[job] for job in jobs] if engine is None else [list(jobs)]
    while batches:
        batch = [job for job in batches.pop(0) if not job.over]
        if not batch:
            continue
        try:
            yield from _perform_batch(batch, store, load, engine)
        except FillmaskError as error:
            if len(batch) > 1:
                batches += [[job] for job in batch]
            else:
                (job,) = batch
                yield Step(job.cell, FAILED, job.run, message=_advice(job.run, str(error)))


def _advice(run: str | None, error: str) -> str:
    """An error with what to do about it in a sweep, which goes on with stored runs by itself."""
    anew = f"start a new run (fillmask-ui runs delete {run}, then the sweep again)"
    return error.replace("start a new run", anew) if run else error


def _perform_batch(
    batch: Sequence[_Job], store: RunStore, load: Load, engine: Engine | None
) -> Iterator[Step]:
    by_key = {job.cell.key: job for job in batch}
    begun = set[str]()
    steps: Any = perform_cells([job.to_cell(store) for job in batch], store, load, engine)
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
