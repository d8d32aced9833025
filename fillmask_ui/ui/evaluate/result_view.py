"""The figures, the worst tokens and the progress of an evaluation, as HTML."""

import math
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.evaluation import History, MeanSoFar, RunningSummary, Summary, TokenExample
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.runs import Run, RunInfo, compare
from fillmask_ui.runs.compare import ONE_RUN_ONLY, compared_info
from fillmask_ui.show.figures import (
    comparison_table,
    figures_table,
    interval_heading,
    models_of,
    roles_of,
)
from fillmask_ui.show.numbers import duration
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import (
    change_text,
    conclusion_text,
    engines_text,
    model_label,
    outlook_text,
    speed_text,
    story_text,
)
from fillmask_ui.ui.components import notice_html
from fillmask_ui.ui.evaluate.job import JobStatus
from fillmask_ui.ui.evaluate.tokens import FoundTokens, TokenFilter, caption_of, token_names

# Tokens in the story, and characters of context on each side.
WORST_SHOWN = 3
_CONTEXT = 60


def figures_html(
    summary: Summary, info: RunInfo, *, final: bool = True, so_far: str = "", link: str = ""
) -> str:
    """The story of what was measured: a verdict, a sentence, the main figure.

    `so_far` from `so_far_text` qualifies the verdict of an unfinished run; `link` opens the page
    with this result, blank for none.
    """
    names = roles_of(summary)
    models = [model for model in (info.baseline, info.model) if model is not None]
    labels = [model_label(model) for model in models[-len(names) :]]
    kinds = {group.name: group for group in summary.model.by_kind}
    return render(
        "page/evaluate/figures.html",
        summary=summary,
        models=models_of(summary),
        names=names,
        labels=labels,
        story=story_text(summary, labels[-1], final=final and not so_far),
        link=link,
        final=final,
        so_far=so_far,
        masked=kinds.get("mask") if UNCHANGED_ALARM in summary.alarms else None,
        conclusion=conclusion_text(summary),
        change=change_text(summary),
        outlook=outlook_text(summary),
        interval=interval_heading(summary),
        alarms=[sentence(alarm) for alarm in summary.alarms if alarm != UNCHANGED_ALARM],
    )


def so_far_text(summary: Summary, expected: int | None) -> str:
    """How many of the `expected` texts an unfinished run has; None if the total is unknown."""
    skipped = {**summary.skipped, ONE_RUN_ONLY: 0}
    seen = summary.texts + sum(skipped.values())
    return f"so far, {seen:,}{_of(expected)} texts"


def _of(expected: int | None) -> str:
    return f" of {expected:,}" if expected else ""


def all_figures_html(summary: Summary, info: RunInfo) -> str:
    """Every figure in tables, and the signature of the run."""
    tables = [figures_table(summary), comparison_table(summary)]
    unchanged = UNCHANGED_ALARM if UNCHANGED_ALARM in summary.alarms else ""
    return render(
        "page/evaluate/all_figures.html",
        tables=tables,
        unchanged=unchanged,
        info=info,
        measured_by=engines_text(info.engines),
    )


def worst_html(found: FoundTokens, wanted: TokenFilter, *, pair: bool) -> str:
    """The first tokens of the table `found` by the filter `wanted`, in their sentences."""
    shown = found.tokens[:WORST_SHOWN]
    return render(
        "page/evaluate/worst.html",
        tokens=[(token, excerpt(token)) for token in shown],
        count=found.count,
        caption=caption_of(wanted),
        narrowed=wanted.low > 0 or wanted.high < math.inf,
        low=wanted.low,
        high=f"{wanted.high:g}" if wanted.high < math.inf else "any",
        pair=pair,
        names=token_names(found),
    )


def excerpt(token: TokenExample, around: int = _CONTEXT) -> tuple[str, str]:
    """About `around` characters before and after a token, cut between words."""
    before, after = token.text[: token.start], token.text[token.end :]
    if len(before) > around:
        before = before[-around:]
        before = "… " + (before.partition(" ")[2] or before)
    if len(after) > around:
        after = after[:around]
        after = (after.rpartition(" ")[0] or after) + " …"
    return before, after


def sentence(message: str) -> str:
    """A message with a capital and one full stop.

    >>> sentence("see ../a.csv"), sentence("it failed.")
    ('See ../a.csv.', 'It failed.')
    """
    return f"{message[:1].upper()}{message[1:]}".rstrip(".") + "."


def progress_html(status: JobStatus) -> str:
    """The progress of a job, in words and as a bar."""
    total = _of(status.expected)
    notes = " ".join(sentence(note) for note in (status.info.notes if status.info else ()))
    if status.state == "waiting":
        return notice_html("busy", status.message, status.fraction)
    if status.state == "running":
        speed = speed_text(status.info, status.workers, status.tokens_per_second)
        left = "" if status.seconds_left is None else f"{duration(status.seconds_left)} left"
        # An engine measures whole blocks before it returns their rows.
        through = max(status.seen, int(status.through))
        text = ", ".join(filter(None, (f"{through:,}{total} texts", speed, left)))
        return notice_html("busy", text, status.fraction or 0.0)
    if status.state == "failed":
        kept = " What was measured is kept in the list of runs." if status.seen else ""
        return notice_html("error", sentence(status.message) + kept)
    if status.state == "stopped" and not status.seen:
        return notice_html("hint", f"Stopped before anything was measured. {notes}".strip())
    if status.state == "stopped":
        kept = "They are kept: resume the run below to measure the rest."
        return notice_html("hint", f"Stopped after {status.seen:,}{total} texts. {kept} {notes}")
    return notice_html("hint" if notes else "none", notes)


@dataclass(frozen=True, eq=False)
class Result:
    """A stored run, or two compared."""

    info: RunInfo  # of two runs, with the second's model as baseline
    summary: Summary  # the figures
    history: tuple[MeanSoFar, ...]  # of the mean; empty where two are compared
    done: bool = True  # whether all texts are in it
    expected: int | None = None  # texts in all; None if unknown


def stored_result(
    folder: Path, _rows: int, other: Path | None = None, _other_rows: int = 0
) -> Result:
    """The figures of a run, or of two; the row counts are cache keys for growing runs."""
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
