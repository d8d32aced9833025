"""`fillmask-ui package`: a trained model as a folder with ONNX, int8 and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fillmask_ui.cli.options import option
from fillmask_ui.cli.terminal import say, tell
from fillmask_ui.cli.train import need_torch
from fillmask_ui.training.corpus import CorpusPart


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
