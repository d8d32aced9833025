"""Writes the commands and their options into docs/command-line.md: `python docs/reference.py`."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import typer

from fillmask_ui.cli.help import value_name
from fillmask_ui.cli.main import app
from fillmask_ui.cli.options import HOST, PORT, PUBLIC
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
SECTIONS |= {option.help: "Serving the page" for option in (HOST, PORT, PUBLIC)}


def reference() -> str:
    """The commands, their options, and the options that they share, as Markdown."""
    all_commands = list(commands(typer.main.get_command(app)))
    shared: dict[str, dict[str, Any]] = {title: {} for title in SECTIONS.values()}
    for _, command in all_commands:
        for parameter in command.params:
            if title := SECTIONS.get(parameter.help):
                shared[title][parameter.help] = parameter
    contents = sections = ""
    for name, command in all_commands:
        summary, _, explanation = command.help.partition("\n")
        rows, used = "", {title: [] for title in shared}
        for parameter in command.params:
            if title := SECTIONS.get(parameter.help):
                used[title].append(parameter)
            elif "completion" not in parameter.help:
                rows += _row(parameter)
        paragraphs = [explanation.strip(), f"{HEAD}{rows}".strip() if rows else ""]
        links = ", ".join(_link(title, used[title], shared[title]) for title in used if used[title])
        if links:
            paragraphs.append(f"Shared options: {links}.")
        label = f"`{name.removeprefix('fillmask-ui ')}`"
        if any(paragraphs):
            sections += "\n\n".join([f"## `{name}`", *filter(None, paragraphs)]) + "\n\n"
            label = f"[{label}](#{name.replace(' ', '-')})"
        contents += f"| {label} | {summary} |\n"
    for title, parameters in shared.items():
        panels: dict[str, str] = {}
        for parameter in parameters.values():
            panel = parameter.rich_help_panel or title
            panels[panel] = panels.get(panel, "") + _row(parameter)
        sections += f"## {title}\n\n{HEAD}"
        for panel, rows in panels.items():
            # Options of a single metric are below a row with its name.
            of_a_metric = title == "Metrics" and panel.startswith("Metric ")
            sections += (f"| **{panel}** |\n" if of_a_metric else "") + rows
        sections += "\n"
    return f"| command | what it does |\n| --- | --- |\n{contents}\n{sections.rstrip()}\n"


def commands(command: Any, name: str = "fillmask-ui") -> Iterator[tuple[str, Any]]:
    """Every command, by what is typed to call it."""
    yield name, command
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, inner), f"{name} {inner}")


def _link(title: str, used: list[Any], shared: dict[str, Any]) -> str:
    """A link to shared options, with those that a command has, or all but those that it lacks."""
    listed = ", ".join(f"`{parameter.opts[0]}`" for parameter in used)
    used_help = {parameter.help for parameter in used}
    missing = [f"`{lacks.opts[0]}`" for lacks in shared.values() if lacks.help not in used_help]
    link = f"[{title}](#{title.lower().replace(' ', '-')})"
    if not missing:
        return link
    return f"{link} ({listed if len(used) <= len(missing) else 'all but ' + ', '.join(missing)})"


def _row(parameter: Any) -> str:
    names = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
    value = value_name(parameter)
    if not names[0].startswith("-"):
        names = [value]
    elif not parameter.is_flag:
        names[0] += f" {value}"
    flags = ", ".join(f"`{name}`" for name in names).replace("|", "\\|")
    default = "required" if parameter.required else parameter.default
    default = {"None": "", "False": "", "True": "on", "()": ""}.get(str(default), str(default))
    cells = [flags, escape(parameter.help, quote=False), *([default] if default else [])]
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text("utf-8").split(MARK)[0] + MARK + reference(), "utf-8")
