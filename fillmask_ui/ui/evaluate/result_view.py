"""The figures, the worst tokens and the progress of an evaluation, as HTML."""

import math

from fillmask_ui.evaluation import Summary, TokenExample
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.runs import Run, RunInfo
from fillmask_ui.runs.compare import ONE_RUN_ONLY
from fillmask_ui.show.figures import (
    comparison_table,
    figures_table,
    interval_heading,
    models_of,
    roles_of,
)
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import (
    change_text,
    conclusion_text,
    engines_text,
    model_label,
    outlook_text,
    story_text,
)
from fillmask_ui.ui.components import notice_html
from fillmask_ui.ui.evaluate.tokens import FoundTokens, TokenFilter, caption_of, token_names
from fillmask_ui.ui.job import Status

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


def ending_html(status: Status, run: Run | None, expected: int | None = None) -> str:
    """How a job has ended, with the notes of its run if it made one."""
    notes = " ".join(sentence(note) for note in (run.info.notes if run else ()))
    measured = run.row_count if run else 0
    if status.state == "failed":
        kept = " What was measured is kept in the list of runs." if measured else ""
        return notice_html("error", sentence(status.message) + kept)
    if status.state == "stopped" and run and measured:
        kept = "They are kept: resume the run below to measure the rest."
        said = f"Stopped after {measured:,}{_of(expected)} texts. {kept}"
        return notice_html("hint", f"{said} {notes}".strip())
    if status.state == "stopped":
        return notice_html("hint", f"Stopped before anything was measured. {notes}".strip())
    return notice_html("hint" if notes else "none", notes)


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
