"""`fillmask-ui train` and `package`: train a masked language model on text, and ship it."""

from __future__ import annotations

import importlib.util
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fillmask_ui.cli.options import option, with_options
from fillmask_ui.cli.terminal import progress_bar, say, tell
from fillmask_ui.errors import ModelError
from fillmask_ui.files import check_target
from fillmask_ui.training.corpus import CorpusPart
from fillmask_ui.training.training_recipe import LogRow, TrainingRecipe

if TYPE_CHECKING:
    from fillmask_ui.training.training_run import TrainingRun


def need_torch() -> None:
    """Stop with what to install if PyTorch is missing."""
    if importlib.util.find_spec("torch") is None:
        raise ModelError(
            "this command needs PyTorch, which is not installed: pip install 'fillmask-ui[torch]'"
        )


@with_options
def train(
    text: Annotated[
        list[str],
        option(
            "Text, one paragraph a line, plain or .gz, or a folder of such files; repeat for "
            "several. A share such as :0.4 takes that part of the paragraphs, :3 reads each "
            "three times an epoch.",
            metavar="FILE[:SHARE]",
        ),
    ],
    output: Annotated[Path, option("Folder of the run.", "--output", "-o", metavar="DIR")],
    *,
    init: Annotated[
        str | None, option("Weights to continue from: a folder or a hub id.", metavar="REF")
    ] = None,
    config: Annotated[
        Path | None, option("Start from scratch with this Hugging Face config.", metavar="FILE")
    ] = None,
    vocabulary_size: Annotated[
        int | None,
        option(
            "With --init: trim the vocabulary to N tokens. With --config: size of the "
            "tokenizer that is trained on the text (16,000).",
            metavar="N",
        ),
    ] = None,
    recipe: TrainingRecipe,
    threads: Annotated[int | None, option("CPU threads.", min=1)] = None,
) -> None:
    """Train a masked language model on text, from weights or from scratch.

    The folder of the run holds the log, a plot of the loss, a checkpoint and, at the end, the
    model. The same command goes on where an interrupted run stopped; Ctrl-C ends the step under
    way, saves and stops.
    """
    need_torch()
    from fillmask_ui.show.charts.run_charts import loss_figure
    from fillmask_ui.training.training_run import CHECKPOINT, RunRequest, prepare, read_log

    texts = tuple(map(CorpusPart.parse, text))
    request = RunRequest(texts, output, init, config, vocabulary_size, threads)
    run = prepare(request, replace(recipe, validation_minutes=recipe.checkpoint_minutes))
    plot = output / "loss.html"
    check_target(plot)
    say(describe(run))
    bar = progress_bar(
        lambda row: {"completed": row.progress, "figures": row_text(row)},
        row_text,
        "{task.fields[figures]}",
        total=1.0,
        figures="",
    )
    with bar as show, interruption() as stop:
        for row in run.rows(stop=stop):
            show(row)
    if not run.trainer.finished:
        kept = f"step {run.trainer.state.step:,} is in {output / CHECKPOINT}"
        tell(f"stopped; {kept}: the same command goes on from there")
        raise typer.Exit(130)
    loss_figure(read_log(run.log)).write_html(plot, include_plotlyjs=True)
    say(f"done: model, log and loss.html in {output}")


def describe(run: TrainingRun) -> str:
    """One paragraph on what will happen."""
    from fillmask_ui.training.training_run import missing_note

    trainer = run.trainer
    segments, config = trainer.segments, trainer.model.config
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    form = "each on its own" if trainer.network.form.separate else "together"
    went = f"resumed at step {trainer.state.step:,}; " if run.resumed else ""
    if run.missing:
        went += f"{missing_note(run.missing)}; "
    return (
        f"{went}{len(segments.ids):,} tokens of text in {len(segments):,} segments, read {form}; "
        f"{config.model_type} with {parameters:,} weights, {config.vocab_size:,} tokens"
    )


def row_text(row: LogRow) -> str:
    """A row of the log for reading."""
    speed = row.tokens / max(row.elapsed_seconds, 1e-9)
    validation = ""
    minutes = row.elapsed_seconds * (1 - row.progress) / row.progress / 60
    if row.validation_nll_nats is not None:
        validation = f", at 15 % {row.validation_nll_nats:.3f} ({row.validation_top1:.1%} right)"
    return (
        f"step {row.step:,} ({row.progress:.0%}, {minutes:.0f} min left): "
        f"loss {row.train_nll_nats:.3f}{validation}, {row.tokens:,} tokens, {speed:,.0f}/s"
    )


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; a second one interrupts at once, as everywhere."""
    asked = threading.Event()
    usual = signal.getsignal(signal.SIGINT)

    def handle(_number: int, _frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, usual)

    # A job in the background ignores it.
    if callable(usual):
        signal.signal(signal.SIGINT, handle)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, usual)


def package(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a training run, or of a model.")
    ],
    output: Annotated[Path, option("Folder to write.", "--output", "-o", metavar="DIR")],
    vocabulary_size: Annotated[
        int | None, option("Trim the vocabulary to N tokens that --text uses.", metavar="N")
    ] = None,
    text: Annotated[
        list[str] | None,
        option("Text whose tokens stay; repeat for several.", metavar="FILE[:SHARE]"),
    ] = None,
    calibration: Annotated[
        str | None,
        option(
            "Choose the int8 scheme by the loss on this text; without it: int8.",
            metavar="FILE[:SHARE]",
        ),
    ] = None,
    evaluate: Annotated[
        str | None, option("Held-out text to measure for the card.", metavar="FILE[:SHARE]")
    ] = None,
    cloze: Annotated[
        Path | None,
        option("Cloze list to measure: JSON lines with text and accepted.", metavar="FILE"),
    ] = None,
    baseline: Annotated[
        str | None, option("A model to measure beside it, such as the start.", metavar="REF")
    ] = None,
    compare: Annotated[
        str | None, option("Earlier spelling of --baseline.", metavar="REF", hidden=True)
    ] = None,
    notes: Annotated[
        Path | None, option("Markdown that the model card begins with.", metavar="FILE")
    ] = None,
) -> None:
    """Make a folder to ship of a trained model.

    Weights are halved, ONNX graphs in full precision and int8 are made that share them, their
    agreement with PyTorch is checked, and the model card says what was measured.
    """
    need_torch()
    from fillmask_ui.training.package_model import PackageRequest
    from fillmask_ui.training.package_model import package as make_package

    if compare is not None:
        tell("warning: --compare is gone in the next version; write --baseline")
        baseline = baseline or compare
    kept = tuple(map(CorpusPart.parse, text or ()))
    tuned, held = (CorpusPart.parse(name) if name else None for name in (calibration, evaluate))
    made = make_package(
        PackageRequest(folder, output, kept, vocabulary_size, tuned, held, cloze, baseline, notes),
        report=tell,
    )
    size = f"{made.size_bytes:,} bytes"
    say(f"{made.folder}: {size}, ONNX and PyTorch within {made.parity:.1e}")
    for one in made.figures:
        parts = [f"{one.name}, {one.vocabulary_size:,} tokens"]
        if one.text is not None:
            parts.append(
                f"cross-entropy {one.text.nll_nats:.4f} nats, top-1 {one.text.top1:.1%}, "
                f"{one.text.nll_per_character_nats:.4f} nats per character"
            )
        if one.cloze is not None:
            parts.append(f"cloze top-1 {one.cloze.top1:.1%}, top-5 {one.cloze.top5:.1%}")
        say("; ".join(parts))
