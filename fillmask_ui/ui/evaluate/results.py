"""What was measured and how far a job is, as HTML."""

import math

from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.runs import RunInfo
from fillmask_ui.runs.compare import ONE_RUN_ONLY
from fillmask_ui.show.figures import (
    Names,
    change_text,
    comparison_table,
    figures_table,
    models_of,
    outlook_text,
)
from fillmask_ui.show.render import render
from fillmask_ui.ui.evaluate.job import JobStatus
from fillmask_ui.ui.widgets import notice_html


def names_of(summary: Summary) -> Names:
    """What charts and tables call the models."""
    return ("A",) if summary.baseline is None else ("A", "B")


def figures_html(summary: Summary, info: RunInfo, *, final: bool = True, so_far: str = "") -> str:
    """Everything that was measured, in figures.

    Args:
        summary: so far, or at the end.
        info: of the run.
        final: whether nothing is added for now; a signature and all figures belong to the end.
        so_far: what a verdict is said of where texts are missing, see `so_far_text`.
    """
    names = names_of(summary)
    kinds = {group.name: group for group in summary.model.by_kind}
    return render(
        "page/evaluate/figures.html",
        summary=summary,
        models=models_of(summary),
        info=info,
        names=names,
        unchanged=UNCHANGED_ALARM if UNCHANGED_ALARM in summary.alarms else "",
        masked=kinds.get("mask"),
        so_far=so_far,
        change=change_text(summary),
        outlook=outlook_text(summary),
        alarms=[sentence(alarm) for alarm in summary.alarms if alarm != UNCHANGED_ALARM],
        tables=[figures_table(summary, names), comparison_table(summary)] if final else [],
    )


def so_far_text(summary: Summary, expected: int | None) -> str:
    """How many texts the figures of an unfinished run are of.

    Args:
        summary: so far.
        expected: texts in all; None where that is not known.
    """
    skipped = {**summary.skipped, ONE_RUN_ONLY: 0}
    seen = summary.texts + sum(skipped.values())
    return f"so far, {seen:,}{_of(expected)} texts"


def _of(expected: int | None) -> str:
    return f" of {expected:,}" if expected else ""


def sentence(message: str) -> str:
    """A message with a capital and one full stop.

    >>> sentence("see ../a.csv"), sentence("it failed.")
    ('See ../a.csv.', 'It failed.')
    """
    return f"{message[:1].upper()}{message[1:]}".rstrip(".") + "."


def progress_html(status: JobStatus) -> str:
    """How far a job is, in words and as a bar."""
    total = _of(status.expected)
    notes = " ".join(sentence(note) for note in (status.info.notes if status.info else ()))
    if status.state == "waiting":
        return notice_html("busy", status.message, status.fraction)
    if status.state == "running":
        left = "" if status.seconds_left is None else f", {duration(status.seconds_left)} left"
        return notice_html("busy", f"{status.seen:,}{total} texts{left}", status.fraction or 0.0)
    if status.state == "failed":
        kept = " What was measured is kept in the list of runs." if status.seen else ""
        return notice_html("error", sentence(status.message) + kept)
    if status.state == "stopped" and status.info is None:
        return notice_html("hint", "Stopped before anything was measured.")
    if status.state == "stopped":
        kept = "They are kept: resume the run below to measure the rest."
        return notice_html("hint", f"Stopped after {status.seen:,}{total} texts. {kept} {notes}")
    return notice_html("hint" if notes else "none", notes)


def duration(seconds: float) -> str:
    """A time left for reading.

    >>> duration(3.2), duration(75), duration(7300)
    ('about 4 s', 'about 2 min', 'about 2 h 2 min')
    """
    if seconds < 60:
        return f"about {math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"about {minutes} min" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min"
