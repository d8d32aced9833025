"""What `fillmask-ui eval` and `fillmask-ui runs` show of a run: progress, figures, JSON."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

from rich.panel import Panel
from rich.text import Text

from fillmask_ui.cli.terminal import count_bar, print_line, print_table, tell, wide_console
from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.catalogue import SPLITS
from fillmask_ui.runs import Progress, RunInfo
from fillmask_ui.runs.info import DONE
from fillmask_ui.runs.perform import Pace
from fillmask_ui.show import figures
from fillmask_ui.show.numbers import duration
from fillmask_ui.show.sentences import comparison_lines, speed_text


def show_progress(steps: Generator[Progress], *, quiet: bool) -> Progress:
    """Draw a run while it is performed (`quiet`: not on standard output), and return its end."""
    with closing(steps):
        step = next(steps)
        if step.dropped_bytes:
            tell(f"dropped a half-written last line of {step.dropped_bytes} bytes")
        if step.info.state == DONE:
            tell(f"run {step.info.name} is done already")
        else:
            if not quiet:
                _print_head(step.info, step.expected)
            tell(f"run {step.info.name}")
        try:
            with run_bar(step, "texts") as show:
                for step in steps:
                    show(step)
        except KeyboardInterrupt:
            command = f"fillmask-ui eval --resume {step.info.name}"
            tell(f"\nstopped; {step.running.seen} texts are kept: {command}")
            raise
    return step


@contextmanager
def run_bar(first: Progress, description: str) -> Iterator[Callable[[Progress], None]]:
    """A function to call with each progress of one run after the `first`; in a pipe lines."""
    pace = Pace(first)

    def values(step: Progress) -> dict[str, Any]:
        total, now = step.expected, ", ".join(_now_texts(pace, step))
        return {"completed": int(step.through or 0), "total": total, "now": now}

    def line(step: Progress) -> str:
        of = f" of {step.expected:,}" if step.expected else ""
        left = [] if pace.seconds_left is None else [f"{duration(pace.seconds_left)} left"]
        return ", ".join([f"{int(step.through or 0):,}{of} texts", *_now_texts(pace, step), *left])

    with count_bar(values, line, description=description, **values(first)) as bar:

        def show(step: Progress) -> None:
            if step.through is not None:
                pace.add(step)
                bar(step)

        yield show


def _now_texts(pace: Pace, step: Progress) -> list[str]:
    """How fast a run goes, on how many workers, and the mean of its texts so far."""
    running = step.running
    mean = f"mean NLL {running.mean_nll_nats:.4f} nats" if running.texts else ""
    speed = speed_text(step.info, step.workers, pace.tokens_per_second)
    return [text for text in (speed, mean) if text]


def run_values(summary: Summary, info: RunInfo) -> dict[str, Any]:
    """The object that `--json` prints of a run."""
    own = {"notes": list(info.notes), "signature": info.signature, "run": info.name}
    return summary.to_dict() | own


def _print_head(info: RunInfo, expected: int | None) -> None:
    """The panel with the model, and a line each for task, device, texts and samples."""
    wide_console().print(Panel(Text(_model_text(info.model)), title="Evaluating", expand=False))
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
        print_line(f"{name}: {value}")


def _model_text(model: Any) -> str:
    return f"{model['name']} ({model['architecture']}, {model['runtime']}, {model['precision']})"


def print_figures(summary: Summary, info: RunInfo) -> None:
    """The tables of figures, the verdict, and what a reader should know."""
    names = ("Value", "Baseline value")
    print_table(figures.figures_table(summary, names, summary.metric_name).headed("Metric"))
    for split in ("by_kind", "by_part"):
        groups = figures.groups_table([summary.model], split)
        if len(groups.rows) > 1:
            print_table(groups.headed("Tokens that are", f"By {SPLITS[split]}"))
    if summary.comparison is not None:
        print_table(figures.comparison_table(summary).headed("Model and baseline"))
    notes = (f"Note: {note}" for note in (*info.notes, *summary.alarms))
    for line in (*comparison_lines(summary), *notes):
        print_line(line)
    print_line(info.signature, "dim")
