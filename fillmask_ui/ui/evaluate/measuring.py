"""An evaluation as a job: it stores each row, so that what was measured can be resumed.

Cancelling ends the run at once with the rows on disk; the current batch is finished and dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fillmask_ui.cluster import LOCAL, EngineChoice, open_engine
from fillmask_ui.evaluation import MeanSoFar, Summary
from fillmask_ui.runs import Engine, Progress, Run, RunInfo, RunStore, compare
from fillmask_ui.runs.compare import compared_info
from fillmask_ui.runs.perform import Pace
from fillmask_ui.show.numbers import duration
from fillmask_ui.show.sentences import speed_text
from fillmask_ui.ui.background import Waiting
from fillmask_ui.ui.job import Job, Work

if TYPE_CHECKING:
    from fillmask_ui.models.model_choice import ModelChoice
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.runs.perform import Load
    from fillmask_ui.ui.session import Session

FIGURES_SECONDS = 1.0  # between two sets of figures
# `perform` or `perform_rest`, still to be given the model loader and the engine.
Measure = Callable[["Load", Engine | None], Generator[Progress]]


@dataclass(frozen=True, eq=False)
class Result:
    """A stored run, or two compared, or a run as it grows."""

    info: RunInfo  # of two runs, with the second's model as baseline
    summary: Summary | None  # the figures; None before there are any
    history: tuple[MeanSoFar, ...] = ()  # of the mean; empty where two are compared
    done: bool = True  # whether all texts are in it
    expected: int | None = None  # texts in all; None if unknown


def stored_result(
    folder: Path, _rows: int, other: Path | None = None, _other_rows: int = 0
) -> Result:
    """The figures of a run, or of two; the row counts are cache keys for growing runs."""
    run = Run(folder)
    if other is not None:
        second = Run(other)
        return Result(compared_info(run, second), compare(run, second))
    running = run.running()
    return Result(run.info, running.summary(), running.history())


def measuring(session: Session, store: RunStore, measure: Measure, engine: EngineChoice) -> Work:
    """The work of a job; `so_far` of its steps is a `Result`, once the run has begun."""

    def work(job: Job) -> Generator[Waiting]:
        def load(choice: ModelChoice) -> MaskedLM:
            job.report(Waiting("Loading the model…"))
            model = session.model(choice, job.report)
            job.report(Waiting("Reading the texts…"))  # an unwanted job makes no run
            return model

        if engine.engine != LOCAL:
            yield Waiting("Starting Ray…")
        with open_engine(engine) as opened:
            yield Waiting("Reading the texts…")
            with closing(measure(load, opened)) as steps:
                last = yield from _followed(job, steps)
        run, running = store.open(last.info.name), last.running
        summary = running.summary() if running.texts else None
        yield Waiting(so_far=Result(run.info, summary, running.history(), run.state == "done"))

    return work


def _followed(job: Job, steps: Generator[Progress]) -> Generator[Waiting, None, Progress]:
    """Measure to the end; returns the last step."""
    step = next(steps)
    job.on_cancel(step.stop)
    pace, told_at = Pace(step), time.monotonic()
    result = Result(step.info, None, done=False, expected=step.expected)
    yield _progress(step, pace, result)
    for step in steps:
        result = replace(result, info=step.info, expected=step.expected)
        if step.through is not None:
            pace.add(step)
            if step.running.texts and time.monotonic() - told_at >= FIGURES_SECONDS:
                summary = step.running.summary(quick=True)
                result = replace(result, summary=summary, history=step.running.history())
                told_at = time.monotonic()  # however long they took
        yield _progress(step, pace, result)
    return step


def _progress(step: Progress, pace: Pace, result: Result) -> Waiting:
    """A step in words: texts, speed and the time left."""
    # An engine measures whole blocks before it returns their rows.
    through = max(float(step.running.seen), step.through or 0.0)
    total = f" of {step.expected:,}" if step.expected else ""
    speed = speed_text(step.info, step.workers, pace.tokens_per_second)
    left = "" if pace.seconds_left is None else f"{duration(pace.seconds_left)} left"
    text = ", ".join(filter(None, (f"{int(through):,}{total} texts", speed, left)))
    return Waiting(text, min(1.0, through / step.expected) if step.expected else 0.0, result)
