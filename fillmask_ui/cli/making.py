"""What `fillmask-ui export` and `fillmask-ui quantize` share: the model's options, the progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fillmask_ui.cli.options import option
from fillmask_ui.cli.terminal import load, progress_bar, tell
from fillmask_ui.models import ModelChoice
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.make import Making, Variant
from fillmask_ui.quantizing.measure import Measuring

Source = Annotated[
    str, typer.Argument(metavar="REF", help="The model, as of --model of other commands.")
]
Output = Annotated[Path, option("Folder to write.", "--output", "-o", metavar="DIR")]
Force = Annotated[
    bool, option("Overwrite files of the same name, and write beside other things.", "--force")
]
Tokenizer = Annotated[
    str | None, option("Where the tokenizer of a single .onnx file comes from.", metavar="ID")
]
Threads = Annotated[int | None, option("Threads that the model computes with.", min=1, metavar="N")]


@contextmanager
def progress() -> Iterator[Callable[[Making | Measuring], None]]:
    """A function that says how far the work is: a bar, or in a pipe a line for each step."""
    said = ""

    def values(step: Making | Measuring) -> dict[str, Any]:
        return {"description": step.message, "completed": step.fraction, "total": 1.0}

    def line(step: Making | Measuring) -> None:
        nonlocal said
        if step.message != said:
            said = step.message
            tell(said)

    with progress_bar(values, line) as show:
        yield show


def loader(choice: ModelChoice, loaded: MaskedLM) -> Callable[[ModelChoice], MaskedLM]:
    """`load`, but for a model that is loaded already."""
    return lambda wanted: loaded if wanted == choice else load(wanted)


def kept_note(made: list[Variant], output: Path) -> None:
    """Say after an interruption what is there."""
    names = ", ".join(variant.path.name for variant in made) or "nothing"
    tell(f"\nstopped; {names} is complete in {output}")
