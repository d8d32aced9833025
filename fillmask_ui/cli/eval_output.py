"""What `fillmask-ui eval` and `fillmask-ui runs` show of a run: progress, figures, JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

from rich.panel import Panel
from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from fillmask_ui.cli.printing import table, wide_console
from fillmask_ui.cli.progress import terminal_bar
from fillmask_ui.evaluation import RunningSummary, Summary
from fillmask_ui.evaluation.catalogue import SPLITS
from fillmask_ui.runs import Progress, RunInfo
from fillmask_ui.runs.info import DONE
from fillmask_ui.show.figures import (
    Table,
    comparison_lines,
    comparison_table,
    figures_table,
    groups_table,
)

# In a pipe one line per tenth of the way, but no more often than this.
_QUIET_SECONDS = 10.0


def show_progress(steps: Generator[Progress], *, quiet: bool) -> Progress:
    """Draw a run while it is performed.

    Args:
        steps: from `perform` or `perform_rest`.
        quiet: print nothing on standard output.

    Returns:
        The last step.
    """
    with closing(steps):
        step = next(steps)
        if step.dropped_bytes:
            sys.stderr.write(f"dropped a half-written last line of {step.dropped_bytes} bytes\n")
        if step.info.state == DONE:
            sys.stderr.write(f"run {step.info.name} is done already\n")
        else:
            if not quiet:
                _print_head(step.info, step.expected)
            sys.stderr.write(f"run {step.info.name}\n")
        try:
            with _texts_bar(step.expected) as show:
                for step in steps:
                    if step.through is not None:
                        show(step.through, step.running)
        except KeyboardInterrupt:
            sys.stderr.write(
                f"\nstopped; {step.running.seen} texts are kept: fillmask-ui eval --resume "
                f"{step.info.name}\n"
            )
            raise
    return step


def run_values(summary: Summary, info: RunInfo) -> dict[str, Any]:
    """The object that `--json` prints of a run."""
    return {
        **summary.to_dict(),
        "notes": list(info.notes),
        "signature": info.signature,
        "run": info.name,
    }


@contextmanager
def _texts_bar(expected: int | None) -> Iterator[Callable[[float, RunningSummary], None]]:
    """A function to call with the texts that are through and the figures so far.

    On a terminal a bar on standard error with the time left; else a quiet line now and then.

    Args:
        expected: number of texts, where known.
    """
    if not sys.stderr.isatty():
        yield _quiet_lines(expected)
        return
    columns = (
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[mean]}", markup=False),
    )
    with terminal_bar(*columns, description="texts", total=expected, mean="") as update:
        yield lambda through, running: update(completed=int(through), mean=_mean_text(running))


def _mean_text(running: RunningSummary) -> str:
    return f"mean NLL {running.mean_nll_nats:.4f} nats" if running.texts else ""


def _quiet_lines(expected: int | None) -> Callable[[float, RunningSummary], None]:
    last = {"time": time.monotonic(), "tenth": 0}

    def show(through: float, running: RunningSummary) -> None:
        now = time.monotonic()
        tenth = int(10 * through / expected) if expected else 0
        if now - last["time"] < _QUIET_SECONDS or (expected and tenth == last["tenth"]):
            return
        last.update(time=now, tenth=tenth)
        of = f" of {expected:,}" if expected else ""
        sys.stderr.write(f"{int(through):,}{of} texts, {_mean_text(running)}\n")
        sys.stderr.flush()

    return show


def _print_head(info: RunInfo, expected: int | None) -> None:
    """The panel with the model, and a line each for task, device, texts and samples."""
    console = wide_console()
    console.print(Panel(Text(_model_text(info.model)), title="Evaluating", expand=False))
    lines = {
        "Task": "fill-mask",
        "Device": info.model["device"],
        "Dataset": info.texts.get("where") or info.texts.get("kind", ""),
        "Samples": "all" if expected is None else f"{expected:,}",
        "Metric": info.config.signature,
    }
    if info.baseline:
        lines["Baseline"] = _model_text(info.baseline)
    for name, value in lines.items():
        console.print(Text(f"{name}: {value}"), soft_wrap=True)


def _model_text(model: Any) -> str:
    return f"{model['name']} ({model['architecture']}, {model['runtime']}, {model['precision']})"


def print_figures(summary: Summary, info: RunInfo) -> None:
    """The tables of figures, the verdict, and what a reader should know."""
    console = wide_console()
    figures = figures_table(summary, ("Value", "Baseline value"))
    console.print(_terminal_table(figures, "Metric"))
    for split in ("by_kind", "by_part"):
        groups = groups_table([summary.model], split)
        if len(groups.rows) > 1:
            console.print(_terminal_table(groups, "Tokens that are", f"By {SPLITS[split]}"))
    if summary.comparison is not None:
        console.print(_terminal_table(comparison_table(summary), "Model and baseline"))
    notes = (f"Note: {note}" for note in (*info.notes, *summary.alarms))
    for line in (*comparison_lines(summary), *notes):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(info.signature, style="dim"), soft_wrap=True)


def _terminal_table(shown: Table, first: str, title: str | None = None) -> RichTable:
    """A table of figures for the terminal, its first column under a heading of its own."""
    marks = (">" if numeric else "" for numeric in shown.numeric)
    headings = map("".join, zip(marks, (first, *shown.columns[1:]), strict=True))
    return table(list(headings), shown.texts(), title)
