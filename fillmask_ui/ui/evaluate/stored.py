"""The figures of stored runs, as the page shows them."""

from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.evaluation import History, MeanSoFar, RunningSummary, Summary
from fillmask_ui.runs import Run, RunInfo, compare
from fillmask_ui.runs.compare import compared_info


@dataclass(frozen=True, eq=False)
class Result:
    """A stored run, or two compared, as the page shows it."""

    info: RunInfo  # of the run; where two are compared, with the other's model as its baseline
    summary: Summary  # the figures
    history: tuple[MeanSoFar, ...]  # of the mean; empty where two are compared
    done: bool = True  # whether all texts are in it
    expected: int | None = None  # texts that there will be then; None where that is not known


def stored_result(
    folder: Path, _rows: int, other: Path | None = None, _other_rows: int = 0
) -> Result:
    """The figures of a run, or of two; the numbers of rows tell a run from what it grows to."""
    run = Run(folder)
    if other is not None:
        second = Run(other)
        return Result(compared_info(run, second), compare(run, second), ())
    running = RunningSummary(
        config=run.info.config,
        vocabulary_size=run.info.model["vocabulary_size"],
        limits=run.info.limits,
    )
    history = History()
    for row in run.rows():
        running.add(row)
        history.add(row)
    return Result(run.info, running.summary(), history.means())
