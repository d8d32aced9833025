"""What `--help` shows, and the line that an unusable command line is answered with.

Options and commands stand in panels. A panel of `BRIEF` has only the names of its options, until
`--help-all` explains them: `eval --help` fits two screens of 80 columns.
"""

from difflib import get_close_matches
from textwrap import fill
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# How the titles of brief panels begin.
BRIEF = ("Loading ", "Reading ", "Metric ", "Limits ", "Engines ")
# What other programs, lm-eval first, call an option of ours.
_ELSEWHERE = {
    "--limit": "--samples",
    "--max-samples": "--samples",
    "--num-samples": "--samples",
    "--batch-size": "--batch-tokens",
    "--max-length": "--max-tokens",
    "--output-path": "--output",
    "--pretrained": "--model",
    "--model-name": "--model",
    "--targets": "--candidate",
    "--input": "--file",
    "--mlm-probability": "--mask-probability",
    "--reference": "--baseline",
    "--candidate": "--model",
}
_ROW: Any = {"subsequent_indent": 23 * " ", "break_on_hyphens": False}
# typer exports neither click nor its own copy of it.
UsageError: Any = typer.BadParameter.__base__


class HelpCommand(TyperCommand):
    """A command whose help has its options in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), formatter, everything=bool(ctx.obj))


class HelpGroup(TyperGroup):
    """A group of commands, which stand in panels above its options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_options(self.get_params(ctx), formatter, everything=bool(ctx.obj))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, panel, summary in self.summaries(ctx):
            panels.setdefault(panel, []).append((name, summary))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def summaries(self, ctx: Any) -> list[tuple[str, str, str]]:
        """Name, panel and first line of help of each command."""
        rows = []
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            rows.append((name, "Commands", command.help.splitlines()[0]))
        return rows


def value_name(parameter: Any) -> str:
    """What stands for the value of an option or argument, such as `REF`."""
    return parameter.metavar or max(parameter.opts, key=len).split("-")[-1].upper()


def _write_options(parameters: list[Any], formatter: Any, *, everything: bool) -> None:
    panels: dict[str, list[Any]] = {}
    for parameter in parameters:
        if not getattr(parameter, "hidden", False):
            title = getattr(parameter, "rich_help_panel", None)
            if parameter.param_type_name == "argument":
                title = "Arguments"
            panels.setdefault(title or "Options", []).append(parameter)
    panels["Options"] = panels.pop("Options")  # the last, as they include --help
    brief = {title: panels[title] for title in panels if title.startswith(BRIEF)}
    for title, members in panels.items():
        if everything or title not in brief:
            with formatter.section(title):
                formatter.write_dl([_row(parameter) for parameter in members])
    if brief and not everything:
        with formatter.section("More, explained by --help-all"):
            for title, members in brief.items():
                names = "  ".join(max(parameter.opts, key=len) for parameter in members)
                row = f"  {title.removeprefix('Metric '):19}  {names}"
                formatter.write(fill(row, formatter.width, **_ROW) + "\n")


def _row(parameter: Any) -> tuple[str, str]:
    """The names of an option or argument, and its help with the default."""
    if parameter.param_type_name == "argument":
        return value_name(parameter), parameter.help or ""
    names = ", ".join(sorted(parameter.opts, key=len))
    if parameter.secondary_opts:
        names = f"--[no-]{names.removeprefix('--')}"
    if not parameter.is_flag:
        names += f" {value_name(parameter)}"
    text = parameter.help or ""
    if parameter.required:
        text += "  [required]"
    elif parameter.default is True and parameter.secondary_opts:
        text += "  [default: on]"
    elif parameter.default not in (None, False, True, "", ()) and not callable(parameter.default):
        text += f"  [default: {parameter.default}]"
    return names, text


def usage_text(error: Any) -> str:
    """One line about a command line that cannot be read, such as one with an unknown option."""
    context = error.ctx
    names = [name for parameter in context.command.params for name in parameter.opts]
    unknown = getattr(error, "option_name", "").replace("_", "-")
    message = str(error.format_message()).strip().removesuffix(".")
    flag, of_pydantic, reason = message.partition(": Input should be ")
    if of_pydantic:  # by which typer checks numbers
        message = f"{flag.split(chr(39))[1]} must be {reason.partition(',')[0]}"
    similar: list[str] = []
    if message.startswith("No such command"):
        typed, names = message.split("'")[1], context.command.list_commands(context)
        message, similar = f"no command {typed!r}", get_close_matches(typed, names, 2, cutoff=0.7)
        if context.parent is None and not similar:
            message += "; without a command, it starts the page"
    elif message.startswith("No such option"):
        similar = [name for name in (_ELSEWHERE.get(unknown, ""), unknown) if name in names]
        similar = similar or get_close_matches(unknown, names, n=2)
        message = f"no option {error.option_name}"
    if similar:
        message += f"; did you mean {' or '.join(similar)}?"
    return f"{message[:1].lower()}{message[1:]} ({context.command_path} --help)"
