"""What `fillmask-ui eval` and `fillmask-ui runs` print: panel, lines, tables, progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fillmask_ui.evaluation import GroupFigures, ModelFigures, RunningSummary, Summary
    from fillmask_ui.intervals import Interval
    from fillmask_ui.runs import RunInfo
    from fillmask_ui.texts import SourceReport

# In a pipe a line a tenth of the way, but no more often than this.
_QUIET_SECONDS = 10.0
PIPE_WIDTH = 140


@contextmanager
def eval_progress(
    expected: int | None,
) -> Iterator[Callable[[float, RunningSummary], None]]:
    """A function to call with the texts that are through and the figures so far.

    On a terminal a bar on standard error with the time left; else a quiet line now and then.

    Args:
        expected: number of texts, where known.
    """
    if not sys.stderr.isatty():
        yield _quiet_lines(expected)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[mean]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("texts", total=expected, mean="")

        def show(through: float, running: RunningSummary) -> None:
            bar.update(task, completed=int(through), mean=_mean(running))

        yield show


def _mean(running: RunningSummary) -> str:
    if not running.texts:
        return ""
    return f"mean NLL {running.mean_nll_nats:.4f} nats"


def _quiet_lines(expected: int | None) -> Callable[[float, RunningSummary], None]:
    last = {"time": time.monotonic(), "tenth": 0}

    def show(through: float, running: RunningSummary) -> None:
        now = time.monotonic()
        tenth = int(10 * through / expected) if expected else 0
        if now - last["time"] < _QUIET_SECONDS or (expected and tenth == last["tenth"]):
            return
        last.update(time=now, tenth=tenth)
        of = f" of {expected:,}" if expected else ""
        sys.stderr.write(f"{int(through):,}{of} texts, {_mean(running)}\n")
        sys.stderr.flush()

    return show


def wide_console() -> Console:
    """The terminal, or in a pipe lines that are wide enough for the tables."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)


def print_head(info: RunInfo, report: SourceReport) -> None:
    """The panel with the model, and a line each for task, device, texts and samples."""
    from rich.panel import Panel
    from rich.text import Text

    console = wide_console()
    console.print(Panel(Text(_model_words(info.model)), title="Evaluating", expand=False))
    expected = "all" if report.expected is None else f"{report.expected:,}"
    lines = {
        "Task": "fill-mask",
        "Device": info.model["device"],
        "Dataset": info.texts.get("where") or info.texts.get("kind", ""),
        "Samples": expected,
        "Metric": info.config.signature,
    }
    if info.baseline:
        lines["Baseline"] = _model_words(info.baseline)
    for name, value in lines.items():
        console.print(Text(f"{name}: {value}"), soft_wrap=True)


def _model_words(model: Any) -> str:
    return f"{model['name']} ({model['architecture']}, {model['runtime']}, {model['precision']})"


def print_figures(summary: Summary, info: RunInfo) -> None:
    """The metric table, the split by kind, the verdict, and what a reader should know."""
    from rich.text import Text

    console = wide_console()
    console.print(metric_table(summary))
    for title, groups in (
        ("By what the model saw", summary.model.by_kind),
        ("By part of the word", summary.model.by_part),
    ):
        if len(groups) > 1:
            console.print(group_table(title, groups))
    if summary.comparison is not None:
        for line in comparison_lines(summary):
            console.print(Text(line), soft_wrap=True)
    for note in (*info.notes, *summary.alarms):
        console.print(Text(f"Note: {note}"), soft_wrap=True)
    console.print(Text(info.signature, style="dim"), soft_wrap=True)


def metric_table(summary: Summary) -> Table:
    """Metric, value and interval; the baseline's beside them where there is one."""
    from rich.table import Table

    table = Table()
    table.add_column("Metric")
    for name in ("", "Baseline ") if summary.baseline else ("",):
        table.add_column(f"{name}Value".capitalize(), justify="right")
        table.add_column("95 % interval", justify="right")
    both = [summary.model] if summary.baseline is None else [summary.model, summary.baseline]
    rows: list[tuple[str, Callable[[ModelFigures], str], Callable[[ModelFigures], str]]] = [
        (
            summary.scheme.figure_key,
            lambda m: f"{m.metric:.4f}",
            lambda m: words(m.metric_interval),
        ),
        ("mean NLL (nats)", lambda m: f"{m.mean_nll_nats:.4f}", lambda m: words(m.interval)),
        ("mean NLL (bits)", lambda m: f"{m.mean_nll_bits:.4f}", _nothing),
        (
            "NLL per character (bits)",
            lambda m: f"{m.nll_per_character_bits:.4f}",
            _nothing,
        ),
        (
            "perplexity",
            lambda m: f"{m.perplexity:,.3f}",
            lambda m: words(m.perplexity_interval),
        ),
        ("top-1 accuracy", lambda m: f"{m.top1_accuracy:.4f}", _nothing),
        ("top-5 accuracy", lambda m: f"{m.top5_accuracy:.4f}", _nothing),
        ("mean rank", lambda m: f"{m.mean_rank:,.1f}", _nothing),
        ("mean entropy (nats)", lambda m: f"{m.mean_entropy_nats:.4f}", _nothing),
        ("tokens", lambda m: f"{m.tokens:,}", _nothing),
    ]
    for name, value, interval in rows:
        table.add_row(name, *(cell for m in both for cell in (value(m), interval(m))))
    padding = [""] * (2 * len(both) - 1)
    table.add_row("texts", f"{summary.texts:,}", *padding)
    for reason, count in summary.skipped.items():
        table.add_row(f"skipped: {reason}", f"{count:,}", *padding)
    if any(m.truncated for m in both):
        table.add_row(
            "texts cut at the end", *(cell for m in both for cell in (f"{m.truncated:,}", ""))
        )
    return table


def _nothing(_: ModelFigures) -> str:
    return ""


def group_table(title: str, groups: Iterable[GroupFigures]) -> Table:
    """Figures of the parts of a split."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("Tokens that are")
    for heading in ("Tokens", "Mean NLL (nats)", "95 % interval", "Top-1", "Top-5", "Mean rank"):
        table.add_column(heading, justify="right")
    for group in groups:
        table.add_row(
            group.name,
            f"{group.tokens:,}",
            f"{group.mean_nll_nats:.4f}",
            words(group.interval),
            f"{group.top1_accuracy:.4f}",
            f"{group.top5_accuracy:.4f}",
            f"{group.mean_rank:,.1f}",
        )
    return table


def comparison_lines(summary: Summary) -> Iterator[str]:
    """The verdict and what the two models differ in, in words."""
    comparison = summary.comparison
    if comparison is None:
        return
    span = words(comparison.interval, lambda value: f"{value:+.2%}")
    yield (
        f"Verdict: {comparison.verdict.label} ({summary.compared_metric} changes by "
        f"{comparison.relative_change:+.2%}" + (f", 95 % interval {span})" if span else ")")
    )
    if comparison.verdict.further_texts:
        yield f"About {comparison.verdict.further_texts:,} further texts would settle it."
    if comparison.agreement is not None:
        yield (
            f"Same best guess for {comparison.agreement:.2%} of the tokens; {comparison.flips:,} "
            f"flipped ({comparison.lost:,} right only in the baseline, {comparison.won:,} right "
            "only in the model)"
        )
    if comparison.mean_kl_nats is not None:
        yield (
            f"KL divergence {comparison.mean_kl_nats:.6f} nats (reverse "
            f"{comparison.mean_kl_reverse_nats:.6f}); |logit difference| mean "
            f"{comparison.mean_abs_logit_difference:.6f}, largest "
            f"{comparison.max_abs_logit_difference:.6f}"
        )


def words(
    interval: Interval | None, render: Callable[[float], str] = lambda value: f"{value:,.4f}"
) -> str:
    """An interval for reading; nothing where there is none."""
    if interval is None:
        return ""
    return f"{render(interval.low)} to {render(interval.high)}"
