"""Assembles the commands and turns errors meant for the user into a message and an exit code."""

from __future__ import annotations

import io
import sys
from functools import cached_property
from typing import Any

import typer
from typer.core import TyperCommand

from fillmask_ui.cli.models import models
from fillmask_ui.cli.package import package
from fillmask_ui.cli.predict import predict
from fillmask_ui.cli.report import report
from fillmask_ui.cli.runs import runs
from fillmask_ui.cli.serve import serve
from fillmask_ui.cli.train import train
from fillmask_ui.errors import FillmaskError, OptionError, TextError

# Those that are done once nobody reads on; an evaluation or a training is not.
_PRINTING = (["predict"], ["models"], ["runs"])
_SETTINGS: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}

app = typer.Typer(
    name="fillmask-ui",
    help="Look inside masked language models. Without a command: start the page.",
    context_settings={"help_option_names": ["-h", "--help"]},
    **_SETTINGS,
)


class _Evaluate(TyperCommand):
    """`eval`, made when it is asked for: what its options are derived from loads numpy."""

    @cached_property
    def made(self) -> Any:
        from fillmask_ui.cli.eval import evaluate

        alone = typer.Typer(add_completion=False, **_SETTINGS)
        alone.command(self.name)(evaluate)
        return typer.main.get_command(alone)

    @property
    def params(self) -> list[Any]:
        return self.made.params

    @params.setter
    def params(self, _: object) -> None:
        """Those of the stand-in, which has none."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        return self.made.make_context(*arguments, **settings)


def evaluate() -> None:
    """Measure the loss of a model over texts: cross-entropy, pseudo-perplexity, and more."""


app.callback(invoke_without_command=True)(serve)
app.command()(predict)
app.command()(models)
app.command("eval", cls=_Evaluate)(evaluate)
app.command()(report)
app.command()(train)
app.command()(package)
app.add_typer(runs, name="runs")


def run() -> None:
    """Entry point of `fillmask-ui`.

    Exit codes: 0 done, 1 a failure outside the input (model, network, data), 2 wrong input,
    130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows or in a C locale is not UTF-8, and words are not ASCII.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app(prog_name="fillmask-ui")
    except FillmaskError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2 if isinstance(error, OptionError | TextError) else 1) from None
    except SystemExit as exit_:
        # The reader has gone (`| head`), of which typer makes a 1.
        if isinstance(exit_.__context__, BrokenPipeError) and sys.argv[1:2] in _PRINTING:
            raise SystemExit(0) from None
        raise
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        raise SystemExit(130) from None
