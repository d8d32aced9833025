"""Writes the commands and their options into docs/command-line.md: `python docs/reference.py`."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import typer

from fillmask_ui.cli.help import value_name
from fillmask_ui.cli.main import app
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.models import ModelChoice
from fillmask_ui.options import all_options
from fillmask_ui.runs.engines import EngineChoice
from fillmask_ui.texts import TextChoice

PAGE = Path(__file__).with_name("command-line.md")
MARK = "<!-- python docs/reference.py writes what follows. -->\n\n"
HEAD = "| option | meaning | default |\n| --- | --- | --- |\n"
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
    shared: dict[str, dict[str, Any]] = {title: {} for title in SHARED}
    contents = sections = ""
    for name, command in commands(typer.main.get_command(app)):
        contents += f"| [`{name}`](#{name.replace(' ', '-')}) | {command.help.splitlines()[0]} |\n"
        rows, used = "", {title: [] for title in SHARED}
        for parameter in command.params:
            if title := SECTIONS.get(parameter.help):
                shared[title][parameter.help] = parameter
                used[title].append(f"`{parameter.opts[0]}`")
            elif "completion" not in parameter.help:
                rows += _row(parameter)
        links = ", ".join(_link(title, names) for title, names in used.items() if names)
        sections += f"## `{name}`\n\n{command.help}\n\n" + (f"{HEAD}{rows}\n" if rows else "")
        sections += f"Shared options: {links}.\n\n" if links else ""
    for title, rows_of in shared.items():
        panels: dict[str, str] = {}
        for parameter in rows_of.values():
            panel = parameter.rich_help_panel or title
            panels[panel] = panels.get(panel, "") + _row(parameter)
        sections += f"## {title}\n\n"
        for panel, rows in panels.items():
            sections += (f"{panel}:\n\n" if len(panels) > 1 else "") + f"{HEAD}{rows}\n"
    return f"| command | what it does |\n| --- | --- |\n{contents}\n{sections.rstrip()}\n"


def commands(command: Any, name: str = "fillmask-ui") -> Iterator[tuple[str, Any]]:
    """Every command, by what is typed to call it."""
    yield name, command
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, inner), f"{name} {inner}")


def _link(title: str, names: list[str]) -> str:
    every = len(names) == list(SECTIONS.values()).count(title)
    return f"[{title}](#{title.lower().replace(' ', '-')}) ({'all' if every else ', '.join(names)})"


def _row(parameter: Any) -> str:
    names = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
    value = value_name(parameter)
    if not names[0].startswith("-"):
        names = [value]
    elif not parameter.is_flag:
        names[0] += f" {value}"
    flags = ", ".join(f"`{name}`" for name in names).replace("|", "\\|")
    default = "required" if parameter.required else parameter.default
    default = {"None": "", "False": "", "True": "on"}.get(str(default), default)
    return f"| {flags} | {escape(parameter.help, quote=False)} | {default} |\n"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text("utf-8").split(MARK)[0] + MARK + reference(), "utf-8")
