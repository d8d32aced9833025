"""Writes the commands and their options into docs/command-line.md: `python docs/reference.py`."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import typer

from fillmask_ui.cli.main import app
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.models import ModelChoice
from fillmask_ui.options import all_options
from fillmask_ui.runs.engines import EngineChoice
from fillmask_ui.texts import TextChoice

PAGE = Path(__file__).with_name("command-line.md")
MARK = "<!-- python docs/reference.py writes what follows. -->\n\n"
# Options that several commands share: a section each.
SHARED = {
    "Choosing a model": ModelChoice,
    "Choosing texts": TextChoice,
    "Metrics": EvaluationConfig,
    "Filling step by step": UnmaskingConfig,
    "Engines": EngineChoice,
}
SECTIONS = {option.help: title for title, kind in SHARED.items() for option in all_options(kind)}


def reference() -> str:
    """The commands, their options, and the options that they share, as Markdown."""
    shared: dict[str, dict[str, str]] = {title: {} for title in SHARED}
    contents = sections = ""
    for name, command in commands(typer.main.get_command(app)):
        about = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help)
        contents += f"| [`{name}`](#{name.replace(' ', '-')}) | {about.split(chr(10))[0]} |\n"
        rows, links = "", dict.fromkeys(SHARED, "")
        for parameter in command.params:
            if title := SECTIONS.get(parameter.help):
                shared[title][parameter.help] = row(parameter)
                links[title] += f", `{parameter.opts[0]}`"
            elif "completion" not in parameter.help:
                rows += row(parameter)
        sections += f"## `{name}`\n\n{about}\n\n{table([rows])}"
        for title, names in links.items():
            anchor = title.lower().replace(" ", "-")
            sections += f"[{title}](#{anchor}): {names[2:]}.\n\n" if names else ""
    for title, rows_of in shared.items():
        sections += f"## {title}\n\n{table(rows_of.values())}"
    return f"| command | what it does |\n| --- | --- |\n{contents}\n{sections.rstrip()}\n"


def commands(command: Any, name: str = "fillmask-ui") -> Iterator[tuple[str, Any]]:
    """Every command, by what is typed to call it."""
    yield name, command
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, inner), f"{name} {inner}")


def table(rows: Iterable[str]) -> str:
    """A table of options; nothing without rows."""
    text = "".join(rows)
    return f"| option | meaning | default |\n| --- | --- | --- |\n{text}\n" if text else ""


def row(parameter: Any) -> str:
    """The row of one option or argument."""
    names = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
    value = parameter.metavar or names[0].split("-")[-1].upper()
    if not names[0].startswith("-"):  # an argument
        names = [value]
    elif not parameter.is_flag:
        names[0] += f" {value}"
    flags = ", ".join(f"`{name}`" for name in names).replace("|", "\\|")
    default = {None: "", False: "", True: "on"}.get(parameter.default, parameter.default)
    default = "required" if parameter.required else default
    return f"| {flags} | {escape(parameter.help, quote=False)} | {default} |\n"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text("utf-8").split(MARK)[0] + MARK + reference(), "utf-8")
