"""Assembles the commands and turns errors meant for the user into a message and an exit code."""

import gc
import os
import sys
import traceback
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperCommand

from fillmask_ui.cli.serve import serve
from fillmask_ui.errors import explain
from fillmask_ui.files import visible

# Imported when they are called, and what `--help` says of them.
_COMMANDS = {
    "predict": "Show the most probable words at each mask, with probability and NLL.",
    "surprise": "Show the loss of every word, each hidden in turn, and what the model wanted.",
    "layers": "Show what each layer would say at each mask, with the model's own head.",
    "differ": "Find the sentences of texts on which two models differ most.",
    "unmask": "Fill many masks step by step: which position first, and with what.",
    "learn": "Open the page at a chapter of the course on the masked-LM loss.",
    "class": "Open the wall of a class that guesses on its phones, against the model.",
    "models": "List the models at hand: the embedded ones and those in the local cache.",
    "eval": "Measure the loss of a model over texts: cross-entropy, pseudo-perplexity, and more.",
    "sweep": "Measure models x data sets x metrics x seeds of a file, and print one table.",
    "check": "Run an ONNX file on all providers and levels here, and compare the logits.",
    "diagnose": "Find the parts of a quantized model that cost its loss.",
    "report": "Write a run as one HTML page: figures, charts with their tables, worst tokens.",
    "train": "Train a masked language model on text, from weights or from scratch.",
    "export": "Write a PyTorch model as ONNX in float32, and compare it with PyTorch.",
    "quantize": "Make quantized variants of a model in full precision, and measure them.",
    "package": "Make a folder to ship of a trained model.",
    "space": "Write the page as a folder that a Hugging Face Space runs, ready to upload.",
    "site": "Write a page that any static host serves, with the model in the browser.",
    "runs": "Evaluation runs: list, show, compare, delete, export, push.",
}

# The modules of those that stand beside a related one.
_HOMES = {
    "surprise": "predict",
    "layers": "predict",
    "check": "diagnose",
    "class": "serve",
    "learn": "serve",
    "report": "runs",
    "export": "quantize",
    "package": "train",
    "space": "site",
}
# Done when their reader leaves (`| head`).
_PRINTING = ("predict", "surprise", "layers", "differ", "unmask", "models", "runs")

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@cache
def _loaded(name: str) -> Any:
    """A command, or a group of them, with its options."""
    module = import_module(f"fillmask_ui.cli.{_HOMES.get(name, name)}")
    found = getattr(module, {"eval": "evaluate", "class": "class_"}.get(name, name))
    if isinstance(found, typer.Typer):
        return typer.main.get_group(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(found)
    return typer.main.get_command(alone)


class _Late(TyperCommand):
    """A command that is loaded when it is called or its options are read."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        del self.params  # which come from `__getattr__` now

    def __getattr__(self, name: str) -> Any:
        return getattr(_loaded(str(self.name)), name)

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        return _loaded(str(self.name)).make_context(*arguments, **settings)


app = typer.Typer(
    name="fillmask-ui",
    context_settings=_SETTINGS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.callback(invoke_without_command=True)(serve)
for _name, _help in _COMMANDS.items():
    app.command(_name, cls=_Late, help=_help)(lambda: None)


def run() -> None:
    """Entry point of `fillmask-ui`.

    Exit codes: 0 done, 1 a failure outside the input (model, network, data, disk), 2 wrong input,
    70 a bug, 130 interrupted. `--traceback` anywhere, or FILLMASK_UI_DEBUG=1, shows where an error
    arose.
    """
    traced = "--traceback" in sys.argv or bool(os.environ.get("FILLMASK_UI_DEBUG"))
    sys.argv = [argument for argument in sys.argv if argument != "--traceback"]
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows or in a C locale is not UTF-8, and words are not ASCII.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    # Searching for cycles takes longer than a prediction, at the start and at the end.
    gc.set_threshold(50_000)
    try:
        try:
            _call()
        finally:
            sys.stdout.flush()  # while its failure can still be told
    except (SystemExit, BrokenPipeError) as end:
        # Typer ends with 1 when the reader has gone, and raises from the BrokenPipeError.
        if isinstance(end, BrokenPipeError) or isinstance(end.__context__, BrokenPipeError):
            _drop_output()
            raise SystemExit(int("".join(sys.argv[1:2]) not in _PRINTING)) from None
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of a Rust library is no `Exception`
        if _interrupted(error):
            sys.stderr.write("\ninterrupted\n")
            raise SystemExit(130) from None
        if traced:
            traceback.print_exc()
        if isinstance(error, OSError):
            _drop_output()
        said, code = explain(error)
        sys.stderr.write(f"error: {visible(said)}\n")
        raise SystemExit(code) from None
    finally:
        gc.freeze()


def _drop_output() -> None:
    """Send what is left in the buffers nowhere, or Python fails on it again as it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C, or what a library made of it while it was imported."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _call() -> None:
    """The command of the command line; it ends with `SystemExit`."""
    if (name := "".join(sys.argv[1:2])) in _COMMANDS:
        # Without reading the page's own options, which takes a while.
        _loaded(name)(sys.argv[2:], prog_name=f"fillmask-ui {name}", **_SETTINGS)
    else:
        app(prog_name="fillmask-ui")
