"""The figures, the worst tokens and the progress of an evaluation, as HTML."""

import math
from collections.abc import Callable
from dataclasses import replace

from fillmask_ui.evaluation import Summary, TokenExample
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM, GroupFigures
from fillmask_ui.intervals import Interval
from fillmask_ui.runs import Run, RunInfo
from fillmask_ui.runs.compare import ONE_RUN_ONLY
from fillmask_ui.show.figures import (
    ROLES,
    comparison_table,
    figures_table,
    interval_heading,
    models_of,
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
from fillmask_ui.ui.evaluate.tokens import (
    DIFFERENT,
    FoundTokens,
    TokenFilter,
    caption_of,
    token_names,
)
from fillmask_ui.ui.job import Status

# Tokens beside the chart: of two models so many each way, of one twice as many.
WORST_SHOWN = 3
_CONTEXT = 14  # characters on each side


def figures_html(
    summary: Summary, info: RunInfo, *, final: bool = True, so_far: str = "", link: str = ""
) -> str:
    """What was measured: the conclusion, its interval, the figures.

    `so_far` from `so_far_text` qualifies the verdict of an unfinished run; `link` opens the page
    with this result, blank for none.
    """
    models = [model for model in (info.baseline, info.model) if model is not None]
    labels = [model_label(model) for model in models[-len(models_of(summary)) :]]
    return render(
        "page/evaluate/figures.html",
        summary=summary,
        models=models_of(summary),
        roles=ROLES,  # a model alone has the colour of the reference
        labels=labels,
        story=story_text(summary, labels[-1], final=final and not so_far),
        link=link,
        final=final,
        so_far=so_far,
        masked=_masked(summary),
        conclusion=conclusion_text(summary),
        limits=[f"{100 * x:g} %" for x in (info.limits.pass_below, info.limits.risk_below)],
        drawn=_drawn(summary),
        change=change_text(summary),
        outlook=outlook_text(summary),
        interval=interval_heading(summary),
        alarms=[sentence(alarm) for alarm in summary.alarms if alarm != UNCHANGED_ALARM],
    )


def _drawn(summary: Summary) -> tuple[float, Interval, Callable[[float], str]] | None:
    """The change of the conclusion, its interval and how its numbers are written, if it has one."""
    pair = summary.comparison
    if pair is None:
        return None
    change, span = pair.difference_nats, pair.difference_interval
    form: Callable[[float], str] = "{:+g} nats".format
    if summary.metric.scaled:
        change, span, form = pair.relative_change, pair.interval, "{:+.3g} %".format
    if span is None or not all(map(math.isfinite, (change, span.low, span.high))):
        return None
    if summary.metric.scaled:
        change, span = 100 * change, replace(span, low=100 * span.low, high=100 * span.high)
    return (change, span, form) if span.low < span.high else None


def _masked(summary: Summary) -> GroupFigures | None:
    """The figures of mask tokens alone, where unchanged ones flatter the mean."""
    kinds = {group.name: group for group in summary.model.by_kind}
    return kinds.get("mask") if UNCHANGED_ALARM in summary.alarms else None


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
        story=story_text(summary, "") if summary.comparison else "",
        masked=_masked(summary),
        tables=tables,
        unchanged=unchanged,
        info=info,
        measured_by=engines_text(info.engines),
    )


def worst_html(found: FoundTokens, wanted: TokenFilter, *, pair: bool) -> str:
    """A few of the tokens `found` by the filter `wanted`, in their sentences.

    Of two models those whose loss grew most, then those whose loss shrank most.
    """
    numbered = [*enumerate(found.tokens)]
    each_way = pair and wanted.order == DIFFERENT
    if each_way:
        rise = [token for token in numbered if (token[1].difference_nats or 0) > 0]
        fall = [token for token in numbered if (token[1].difference_nats or 0) < 0]
        shown = [*rise[:WORST_SHOWN], *fall[:WORST_SHOWN]]
    else:
        shown = numbered[: 2 * WORST_SHOWN]
    return render(
        "page/evaluate/worst.html",
        tokens=[(number, token, excerpt(token)) for number, token in shown],
        each_way=each_way,
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
