"""Options that several commands share, declared once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fillmask_ui.protocol import MaskedLM

Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="REF",
        help="embedded, embedded:int8, embedded:torch, a folder, an .onnx file, or a Hugging Face "
        "id with an optional @revision.",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--model-id",
        "--tokenizer",
        metavar="ID",
        help="Where the tokenizer of a single .onnx file comes from: a folder or a hub id.",
    ),
]
OnnxFile = Annotated[
    str | None,
    typer.Option("--onnx-file", metavar="NAME", help="Which ONNX file of a folder or hub id."),
]
Runtime = Annotated[str, typer.Option("--runtime", help="auto, onnx or torch.")]
Provider = Annotated[
    str | None,
    typer.Option("--provider", help="ONNX Runtime execution provider, such as CPU or CUDA."),
]
Device = Annotated[
    str | None, typer.Option("--device", help="PyTorch device, such as cpu or cuda:0.")
]
Dtype = Annotated[
    str | None, typer.Option("--dtype", help="PyTorch weights: float32, float16 or bfloat16.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads of one model call.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


@dataclass(frozen=True)
class ModelChoice:
    """The options that choose a model, as typed."""

    reference: str = "embedded"
    tokenizer: str | None = None
    onnx_file: str | None = None
    runtime: str = "auto"
    provider: str | None = None
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None


def given_options(context: typer.Context, *, beside: Collection[str] = ()) -> list[str]:
    """Names of the options that were written on the command line, as `--model`.

    Args:
        context: of the command.
        beside: parameters that do not count.
    """
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in beside
        and context.get_parameter_source(parameter.name).name == "COMMANDLINE"
    ]


def load(choice: ModelChoice) -> MaskedLM:
    """The chosen model, with the progress of a download on standard error."""
    from fillmask_ui.cli.progress import download_progress
    from fillmask_ui.models import load_model

    reference = choice.reference
    if reference.endswith(".onnx") or Path(reference).is_dir():
        reference = str(Path(reference).expanduser())
    with download_progress() as update:
        return load_model(
            reference,
            tokenizer=choice.tokenizer,
            onnx_file=choice.onnx_file,
            runtime=choice.runtime,
            provider=choice.provider,
            device=choice.device,
            dtype=choice.dtype,
            threads=choice.threads,
            on_progress=update,
        )
