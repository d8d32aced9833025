"""Stored runs as tables: their list, and several over the same texts beside each other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fillmask_ui.intervals import Interval
from fillmask_ui.runs.listed import ListedRun, RunBeside
from fillmask_ui.show.figures import INTERVAL
from fillmask_ui.show.numbers import Share, interval_text, signed_percent
from fillmask_ui.show.sentences import engine_names
from fillmask_ui.show.table import Column, Table

CHANGE = Column("change", signed_percent, right=True)
CHANGE_INTERVAL = Column(INTERVAL, lambda span: interval_text(span, signed_percent), right=True)
OF_CHANGE = "interval of the change"
_TIME_CHARACTERS = len("20260102-101500")
# Columns of the list that a narrow terminal leaves out, the first of them first.
LESS_IMPORTANT = ("engines", "texts", "metric", "state", "reference", INTERVAL, "source", "value")


def runs_table(runs: Sequence[ListedRun]) -> Table:
    """A row per run; one without a name has the beginning of its folder's that no other has."""
    folders = [run.run for run in runs]
    rows = [
        (
            run.name or beginning(run.run, folders),
            run.source,
            run.metric,
            run.reference or "",
            run.candidate,
            run.rows,
            run.value,
            run.relative_change,
            interval(run.relative_change_interval_95),
            run.verdict or "",
            run.state,
            engine_names(run.engines),
        )
        for run in runs
    ]
    columns: list[str | Column] = ["run", "source", "metric", "reference", "candidate", "texts"]
    columns += ["value", CHANGE, CHANGE_INTERVAL, "verdict", "state", "engines"]
    table = Table.of(columns, rows)
    measured_here = {row[-1] for row in rows} <= {"", "local"}
    return table.without("engines") if measured_here else table


def beginning(name: str, names: Sequence[str]) -> str:
    """The shortest beginning of a run's name, its time at least, that no other run has.

    >>> beginning("20260102-101500-a", ["20260102-101500-a", "20260102-101502-b"])
    '20260102-101500'
    """
    sizes = range(_TIME_CHARACTERS, len(name))
    alone = (name[:size] for size in sizes if sum(n.startswith(name[:size]) for n in names) == 1)
    return next(alone, name)


def interval(bounds: Sequence[float] | None) -> Interval | None:
    """An interval of JSON; None where an end is unknown."""
    if bounds is None or None in bounds:
        return None
    return Interval(bounds[0], bounds[1], "")


def beside_table(runs: Sequence[RunBeside]) -> Table:
    """A row per run: its figure, and the change from the first."""
    metric = runs[0].summary.metric_figure
    rows = []
    for run, name in zip(runs, labels_of(runs), strict=True):
        values = run.to_dict()
        value, span = values["value"], interval(values["interval_95"])
        if metric.share:
            value, span = Share(value), span and span.map(Share)
        row: list[Any] = [name, values["model"], values["texts"], value, span]
        row += [values["relative_change"]]
        row += [interval(values["relative_change_interval_95"]), values["verdict"] or "reference"]
        rows.append(row)
    of_change = replace(CHANGE_INTERVAL, heading=OF_CHANGE)
    columns = ("run", "model", "texts", metric.label, INTERVAL, CHANGE, of_change, "verdict")
    return Table.of(columns, rows)


def labels_of(runs: Sequence[RunBeside]) -> list[str]:
    """The name that a user gave each run, else the beginning of its folder's."""
    folders = [run.info.name for run in runs]
    return [run.info.title or beginning(run.info.name, folders) for run in runs]
