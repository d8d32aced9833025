"""What `fillmask-ui eval` and `fillmask-ui runs` show of a run: progress, figures, JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fillmask_ui.cli.printing import table, wide_console
from fillmask_ui.evaluation.catalogue import (
    COMPARISON_FIGURES,
    GROUP_FIGURES,
    LOSS,
    MODEL_FIGURES,
    SPLITS,
    Figure,
)
from fillmask_ui.runs.store import DONE
from fillmask_ui.show.numbers import figure_text, interval_text, signed_percent

if TYPE_CHECKING:
    from rich.table import Table

    from fillmask_ui.evaluation import Comparison, GroupFigures, RunningSummary, Summary
    from fillmask_ui.runs import Progress, RunInfo

# In a pipe one line per tenth of the way, but no more often than this.
_QUIET_SECONDS = 10.0
_INTERVAL = ">95 % interval"


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
        yield lambda through, running: bar.update(
            task, completed=int(through), mean=_mean_text(running)
        )


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
    from rich.panel import Panel
    from rich.text import Text

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
    from rich.text import Text

    console = wide_console()
    console.print(_model_table(summary))
    for split in ("by_kind", "by_part"):
        groups = getattr(summary.model, split)
        if len(groups) > 1:
            console.print(_group_table(f"By {SPLITS[split]}", groups))
    comparison = summary.comparison
    if comparison is not None:
        console.print(_comparison_table(comparison))
        for line in _comparison_lines(comparison, summary.compared_metric):
            console.print(Text(line), soft_wrap=True)
    for note in (*info.notes, *summary.alarms):
        console.print(Text(f"Note: {note}"), soft_wrap=True)
    console.print(Text(info.signature, style="dim"), soft_wrap=True)


def _model_table(summary: Summary) -> Table:
    """A row per figure with its interval; the baseline's beside them where there is one."""
    columns = ["Metric", ">Value", _INTERVAL]
    models = [summary.model]
    if summary.baseline is not None:
        columns += [">Baseline value", _INTERVAL]
        models.append(summary.baseline)
    metric = summary.metric_figure
    figures = (replace(metric, label=metric.key, form=LOSS), *MODEL_FIGURES)
    counts = {"texts": summary.texts}
    counts |= {f"skipped: {reason}": count for reason, count in summary.skipped.items()}
    padding = [""] * (len(columns) - 2)
    rows = [
        *((figure.label, *_cells(figure, models)) for figure in figures),
        *((name, f"{count:,}", *padding) for name, count in counts.items()),
    ]
    return table(columns, rows)


def _group_table(title: str, groups: Iterable[GroupFigures]) -> Table:
    """A row per group of tokens."""
    columns = ["Tokens that are"]
    for figure in GROUP_FIGURES:
        columns += [
            f">{figure.label[0].upper()}{figure.label[1:]}",
            *([_INTERVAL] if figure.interval else []),
        ]
    rows = (
        (
            group.name,
            *(
                cell
                for figure in GROUP_FIGURES
                for cell in _cells(figure, [group])[: 2 if figure.interval else 1]
            ),
        )
        for group in groups
    )
    return table(columns, rows, title)


def _comparison_table(comparison: Comparison) -> Table:
    """A row per figure that two models have together."""
    rows = (
        (figure.label, *_cells(figure, [comparison]))
        for figure in COMPARISON_FIGURES
        if figure.value(comparison) is not None
    )
    return table(("Model and baseline", ">Value", _INTERVAL), rows)


def _cells(figure: Figure, records: Iterable[object]) -> list[str]:
    """Value and interval of a figure, in one record after the other."""
    return [
        cell
        for record in records
        for cell in (figure_text(figure, record), interval_text(figure.interval_of(record)))
    ]


def _comparison_lines(comparison: Comparison, metric: str) -> Iterator[str]:
    """The verdict and what the two models differ in, in words."""
    verdict = comparison.verdict
    interval = interval_text(comparison.interval, signed_percent)
    yield (
        f"Verdict: {verdict.label} ({metric} changes by "
        f"{signed_percent(comparison.relative_change)}"
        + (f", 95 % interval {interval})" if interval else ")")
    )
    if verdict.further_texts:
        yield f"About {verdict.further_texts:,} further texts would settle it."
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
