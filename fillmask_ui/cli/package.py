"""`fillmask-ui package`: a trained model as a folder with ONNX, int8 and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fillmask_ui.cli.train import need_torch

if TYPE_CHECKING:
    from fillmask_ui.training.card import Package


def package(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a training run, or of a model.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")],
    vocabulary_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="Trim the vocabulary to N tokens that --text uses."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE[:SHARE]", help="Text whose tokens stay; repeat for several."),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="FILE[:SHARE]",
            help="Choose the int8 scheme by the loss on this text; without it: per channel.",
        ),
    ] = None,
    evaluate: Annotated[
        str | None,
        typer.Option(metavar="FILE[:SHARE]", help="Held-out text to measure for the card."),
    ] = None,
    cloze: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Cloze list to measure: JSON lines with text and accepted."
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(metavar="REF", help="A model to measure beside it, such as the start."),
    ] = None,
    notes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown that the model card begins with."),
    ] = None,
) -> None:
    """Make a folder to ship of a trained model.

    Weights are halved, ONNX graphs in full precision and int8 are made that share them, their
    agreement with PyTorch is checked, and the model card says what was measured.
    """
    need_torch()
    from fillmask_ui.training.card import PackageRequest
    from fillmask_ui.training.corpus import CorpusPart
    from fillmask_ui.training.package import package as make_package

    made = make_package(
        PackageRequest(
            source=folder,
            output=output,
            texts=tuple(CorpusPart.parse(name) for name in text or ()),
            vocabulary_size=vocabulary_size,
            calibration=CorpusPart.parse(calibration) if calibration else None,
            evaluate=CorpusPart.parse(evaluate) if evaluate else None,
            cloze=cloze,
            compare=compare,
            notes=notes,
        ),
        report=lambda line: typer.echo(line, err=True),
    )
    for line in summary_lines(made):
        typer.echo(line)


def summary_lines(made: Package) -> list[str]:
    """What was made and what it scores, a line each."""
    lines = [f"{made.folder}: {made.size_bytes:,} bytes, ONNX and PyTorch within {made.parity:.1e}"]
    for one in made.figures:
        parts = [f"{one.name}, {one.vocabulary_size:,} tokens"]
        if one.text is not None:
            parts.append(
                f"cross-entropy {one.text.nll_nats:.4f} nats, top-1 {one.text.top1:.1%}, "
                f"{one.text.nll_per_character_nats:.4f} nats per character"
            )
        if one.cloze is not None:
            parts.append(f"cloze top-1 {one.cloze.top1:.1%}, top-5 {one.cloze.top5:.1%}")
        lines.append("; ".join(parts))
    return lines
