"""`fillmask-ui train` and `package`: train a masked language model on text, and ship it."""

from __future__ import annotations

import importlib.util
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from fillmask_ui.cli.options import with_options
from fillmask_ui.cli.terminal import progress_bar, say, tell
from fillmask_ui.errors import ModelError, how_to_install
from fillmask_ui.features.train.training_recipe import (
    LogRow,
    PackageRequest,
    RunRequest,
    TrainingRecipe,
)
from fillmask_ui.files import check_target
from fillmask_ui.publishing.hub_push import HubTarget

if TYPE_CHECKING:
    from fillmask_ui.features.train.training_run import TrainingRun


def need_torch() -> None:
    """Stop with what to install if PyTorch is missing."""
    if importlib.util.find_spec("torch") is None:
        raise ModelError(
            f"this command needs PyTorch, which is not installed: {how_to_install('torch')}"
        )


@with_options
def train(*, request: RunRequest, recipe: TrainingRecipe) -> None:
    """Train a masked language model on text, from weights or from scratch.

    The folder of the run holds the log, a plot of the loss, a checkpoint and, at the end, the
    model. Ctrl-C finishes the current step, saves and stops; the same command then continues.
    """
    need_torch()
    from fillmask_ui.features.train.loss_chart import loss_figure
    from fillmask_ui.features.train.training_run import CHECKPOINT, prepare, read_log

    run = prepare(request, recipe)
    output = request.output
    plot = output / "loss.html"
    check_target(plot)
    say(describe(run))
    bar = progress_bar("{task.fields[figures]}", total=1.0, figures="")
    with bar as show, interruption() as stop:
        for row in run.rows(stop=stop):
            text = row_text(row)
            show(text, completed=row.progress, figures=text)
    if not run.trainer.finished:
        saved = f"step {run.trainer.state.step:,} is in {output / CHECKPOINT}"
        tell(f"stopped; {saved}: the same command goes on from there")
        raise typer.Exit(130)
    loss_figure(read_log(run.log)).write_html(plot, include_plotlyjs=True)
    say(f"done: model, log and loss.html in {output}")


def describe(run: TrainingRun) -> str:
    """One paragraph on what will happen."""
    from fillmask_ui.features.train.training_run import missing_note

    trainer = run.trainer
    segments, config = trainer.segments, trainer.model.config
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    form = "each on its own" if trainer.network.form.separate else "together"
    remarks = f"resumed at step {trainer.state.step:,}; " if run.resumed else ""
    if run.missing:
        remarks += f"{missing_note(run.missing)}; "
    return (
        f"{remarks}{len(segments.ids):,} tokens of text in {len(segments):,} segments, "
        f"read {form}; "
        f"{config.model_type} with {parameters:,} weights, {config.vocab_size:,} tokens"
    )


def row_text(row: LogRow) -> str:
    """A row of the log for reading."""
    speed = row.tokens / max(row.elapsed_seconds, 1e-9)
    validation = ""
    minutes = row.elapsed_seconds * (1 - row.progress) / row.progress / 60
    if row.validation_nll_nats is not None:
        validation = f", at 15% {row.validation_nll_nats:.3f} ({row.validation_top1:.1%} right)"
    return (
        f"step {row.step:,} ({row.progress:.0%}, {minutes:.0f} min left): "
        f"loss {row.train_nll_nats:.3f}{validation}, {row.tokens:,} tokens, {speed:,.0f}/s"
    )


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; a second one interrupts at once, as everywhere."""
    pressed = threading.Event()
    usual = signal.getsignal(signal.SIGINT)

    def handle(_number: int, _frame: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, usual)

    # A job in the background ignores it.
    if callable(usual):
        signal.signal(signal.SIGINT, handle)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, usual)


@with_options
def package(
    *,
    request: PackageRequest,
    target: HubTarget,
) -> None:
    """Make a model folder to publish from a training run.

    It stores the weights in half precision, makes ONNX graphs in full precision and int8, checks
    them against PyTorch, and writes a model card with what was measured.
    """
    need_torch()
    from fillmask_ui.features.train import package_model

    packaged = package_model.package(request, report=tell)
    size = f"{packaged.size_bytes:,} bytes"
    say(f"{packaged.folder}: {size}, ONNX and PyTorch within {packaged.parity:.1e}")
    for model in packaged.figures:
        parts = [f"{model.name}, {model.vocabulary_size:,} tokens"]
        if model.text is not None:
            scores = model.text.model
            parts.append(
                f"cross-entropy {scores.mean_nll_nats:.4f} nats, top-1 {scores.top1_accuracy:.1%}, "
                f"{scores.nll_per_character_nats:.4f} nats per character"
            )
        if model.cloze is not None:
            parts.append(f"cloze top-1 {model.cloze.top1:.1%}, top-5 {model.cloze.top5:.1%}")
        say("; ".join(parts))
    if address := target.push(packaged.folder):
        tell(f"pushed to {address}")
