"""Assembles the commands and turns errors meant for the user into a message and an exit code."""

import gc
import os
import sys
import traceback
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from typing import Any

import typer

from fillmask_ui.cli.help import HelpCommand, HelpGroup, UsageError, usage_text
from fillmask_ui.cli.serve import serve
from fillmask_ui.errors import explain
from fillmask_ui.extensions import LOOK, MAKE, MEASURE, SERVE, Command, features, load
from fillmask_ui.files import visible
from fillmask_ui.options import OptionValueError

_HELP = {"help_option_names": ["-h", "--help"]}
COMMANDS = {
    "predict": Command(
        "Show the most probable words at each mask.",
        "fillmask_ui.cli.predict:predict",
        LOOK,
        prints=True,
    ),
    "surprise": Command(
        "Show the loss of every word, hidden in turn.",
        "fillmask_ui.cli.predict:surprise",
        LOOK,
        prints=True,
    ),
    "layers": Command(
        "Show what each layer would predict at each mask.",
        "fillmask_ui.cli.predict:layers",
        LOOK,
        prints=True,
    ),
    "differ": Command(
        "Find the sentences on which two models differ most.",
        "fillmask_ui.cli.differ:differ",
        LOOK,
        prints=True,
    ),
    "models": Command(
        "List the models that load without a network, or describe one.",
        "fillmask_ui.cli.models:models",
        LOOK,
        prints=True,
    ),
    "eval": Command(
        "Measure the loss of a model over texts, or of two models.",
        "fillmask_ui.cli.eval:evaluate",
        MEASURE,
    ),
    "report": Command(
        "Write a run as one HTML page with figures and charts.",
        "fillmask_ui.cli.runs:report",
        MEASURE,
    ),
    "runs": Command(
        "List, show, name, compare, delete, export or push stored runs.",
        "fillmask_ui.cli.runs:runs",
        MEASURE,
        prints=True,
    ),
    "version": Command("Print the version.", "fillmask_ui.cli.serve:version", prints=True),
}


@cache
def commands() -> dict[str, Command]:
    """The commands of the core, then those of features."""
    rows = dict(COMMANDS)
    for feature in features():
        rows |= feature.commands
    return rows


def command_of(name: str) -> Command | None:
    """The row of a command; features are looked up only for a name that the core does not have."""
    return COMMANDS.get(name) or commands().get(name)


@cache
def _click_command(name: str) -> Any:
    """A command, or a group of them, with its options; None if there is no such command."""
    row = command_of(name)
    if row is None:
        return None
    target = load(row.target)
    if isinstance(target, typer.Typer):
        for path, row in commands().items():
            group, _, inner = path.partition(" ")
            if inner and group == name:
                target.command(inner, cls=HelpCommand)(load(row.target))
        return typer.main.get_group(target)
    command = typer.Typer(add_completion=False, rich_markup_mode=None)
    command.command(name, cls=HelpCommand)(target)
    return typer.main.get_command(command)


class _Commands(HelpGroup):
    """The commands by their table: one is imported when it is called or its options are read."""

    def list_commands(self, context: Any) -> list[str]:  # noqa: ARG002
        return [name for name in commands() if " " not in name]

    def get_command(self, context: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return _click_command(cmd_name)

    def summaries(self, ctx: Any) -> list[tuple[str, str, str]]:
        panels = (LOOK, MEASURE, MAKE, SERVE)
        rows = [(name, commands()[name]) for name in self.list_commands(ctx)]
        rows.sort(key=lambda row: panels.index(row[1].panel) if row[1].panel in panels else 9)
        return [(name, row.panel, row.help) for name, row in rows]


app = typer.Typer(
    name="fillmask-ui",
    cls=_Commands,
    context_settings=_HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.callback(invoke_without_command=True)(serve)


def run() -> None:
    """Entry point of `fillmask-ui`.

    Exit codes: 0 done, 1 a failure outside the input (model, network, data, disk), 2 wrong input,
    70 a bug, 130 interrupted. `--traceback` anywhere, or FILLMASK_UI_DEBUG=1, shows where an error
    arose; `--help-all` anywhere shows the options of every panel.
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
    except (SystemExit, BrokenPipeError) as error:
        # Typer ends with 1 when the reader has gone, and raises from the BrokenPipeError.
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            _drop_output()
            command = command_of("".join(sys.argv[1:2]))
            raise SystemExit(0 if command and command.prints else 1) from None
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of a Rust library is no `Exception`
        if _interrupted(error):
            sys.stderr.write("\ninterrupted\n")
            raise SystemExit(130) from None
        if traced:
            traceback.print_exc()
        if isinstance(error, OSError):
            _drop_output()
        message, code = _explain(error)
        sys.stderr.write(f"error: {visible(message)}\n")
        raise SystemExit(code) from None
    finally:
        gc.freeze()


def _drop_output() -> None:
    """Send what is left in the buffers nowhere, or Python fails on it again as it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: BaseException) -> tuple[str, int]:
    if isinstance(error, UsageError):
        return usage_text(error), 2
    if isinstance(error, OptionValueError):
        return error.for_shell, 2
    if isinstance(error, typer.Abort):
        return "stopped: nothing was done", 1
    return explain(error)


def _interrupted(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C, or what a library made of it while it was imported."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _call() -> None:
    """The command of the command line; it ends with `SystemExit`."""
    settings: dict[str, Any] = {"standalone_mode": False, "obj": "--help-all" in sys.argv}
    sys.argv = ["--help" if argument == "--help-all" else argument for argument in sys.argv]
    name = "".join(sys.argv[1:2])
    if name and not name.startswith("-") and command_of(name):
        # Without reading the page's own options, which takes a while.
        settings |= {"prog_name": f"fillmask-ui {name}", **_HELP}
        code = _click_command(name)(sys.argv[2:], **settings)
    else:
        code = app(prog_name="fillmask-ui", **settings)
    raise SystemExit(code or 0)
