"""`fillmask-ui train`: train a masked language model on text files."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fillmask_ui.cli.options import with_options
from fillmask_ui.errors import ModelError
from fillmask_ui.training.recipe import LogRow, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from fillmask_ui.training.run import PreparedRun


def need_torch() -> None:
    """Stop with what to install.

    Raises:
        ModelError: if PyTorch is missing.
    """
    if importlib.util.find_spec("torch") is None:
        raise ModelError(
            "this command needs PyTorch, which is not installed: pip install 'fillmask-ui[torch]'"
        )


@with_options
def train(
    text: Annotated[
        list[str],
        typer.Option(
            metavar="FILE[:SHARE]",
            help="Text, one paragraph a line, plain or .gz, or a folder of such files; repeat for "
            "several. A share such as :0.4 takes that part of the paragraphs, :3 reads each "
            "three times an epoch.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the run.")
    ],
    *,
    init: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Weights to continue from: a folder or a hub id."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Start from scratch with this Hugging Face config."),
    ] = None,
    vocabulary_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --init: trim the vocabulary to N tokens. With --config: size of the "
            "tokenizer that is trained on the text (16,000).",
        ),
    ] = None,
    recipe: Recipe,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
) -> None:
    """Train a masked language model on text, from weights or from scratch.

    The folder of the run holds the log, a plot of the loss, a checkpoint and, at the end, the
    model. The same command goes on where an interrupted run stopped; Ctrl-C ends the step under
    way, saves and stops.
    """
    need_torch()
    from fillmask_ui.training.corpus import CorpusPart
    from fillmask_ui.training.run import RunRequest, prepare, read_log

    recipe = replace(recipe, validation_minutes=recipe.checkpoint_minutes)
    request = RunRequest(
        texts=tuple(CorpusPart.parse(name) for name in text),
        output=output,
        init=init,
        config=config,
        vocabulary_size=vocabulary_size,
        threads=threads,
    )
    run = prepare(request, recipe)
    typer.echo(describe(run))
    with training_progress() as show, interruption() as stop:
        for row in run.rows(stop=stop):
            show(row)
    if not run.trainer.finished:
        typer.echo(
            f"stopped; step {run.trainer.state.step:,} is in {run.checkpoint}: the same command "
            "goes on from there",
            err=True,
        )
        raise typer.Exit(130)
    _write_plot(output / "loss.html", read_log(run.log))
    typer.echo(f"done: model, log and loss.html in {output}")


def describe(run: PreparedRun) -> str:
    """One paragraph on what will happen."""
    from fillmask_ui.training.weights import missing_note

    trainer = run.trainer
    segments = trainer.segments
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    form = "each on its own" if trainer.network.form.separate else "together"
    went = f"resumed at step {trainer.state.step:,}; " if run.resumed else ""
    if run.missing:
        went += f"{missing_note(run.missing)}; "
    return (
        f"{went}{len(segments.ids):,} tokens of text in {len(segments):,} segments, read {form}; "
        f"{trainer.model.config.model_type} with {parameters:,} weights, "
        f"{trainer.model.config.vocab_size:,} tokens"
    )


def row_text(row: LogRow) -> str:
    """A row of the log for reading."""
    speed = row.tokens / max(row.elapsed_seconds, 1e-9)
    left = ""
    if row.progress > 0:
        seconds = row.elapsed_seconds * (1 - row.progress) / row.progress
        left = f", {seconds / 60:.0f} min left"
    validation = ""
    if row.validation_nll_nats is not None:
        validation = f", at 15 % {row.validation_nll_nats:.3f} ({row.validation_top1:.1%} right)"
    return (
        f"step {row.step:,} ({row.progress:.0%}{left}): loss {row.train_nll_nats:.3f}{validation}, "
        f"{row.tokens:,} tokens, {speed:,.0f}/s"
    )


@contextmanager
def training_progress() -> Iterator[Callable[[LogRow], None]]:
    """A bar with the time left on a terminal, a line a row elsewhere; on standard error."""
    if not sys.stderr.isatty():
        yield lambda row: typer.echo(row_text(row), err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("warming up", total=1.0)
        yield lambda row: bar.update(task, completed=row.progress, description=row_text(row))


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; a second one interrupts at once, as everywhere."""
    asked = threading.Event()
    usual = signal.getsignal(signal.SIGINT)
    # Only the main thread may handle signals, and a job in the background ignores this one.
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield asked.is_set
        return

    def handle(_number: int, _frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, handle)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, usual)


def _write_plot(path: Path, rows: list[LogRow]) -> None:
    from fillmask_ui.show.charts.explore import loss_figure

    loss_figure(rows).write_html(path, include_plotlyjs=True)
