"""What commands print: JSON, and tables in which text of a user or a model is never markup."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 140


def print_json(values: Mapping[str, Any]) -> None:
    """One object on one line of standard output."""
    typer.echo(json.dumps(values, ensure_ascii=False))


def wide_console() -> Console:
    """The terminal, or in a pipe lines that are wide enough for the tables."""
    from rich.console import Console

    console = Console()
    return console if sys.stdout.isatty() else Console(width=max(console.width, PIPE_WIDTH))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> Table:
    """A table for `wide_console`.

    Args:
        columns: headings, which get a capital; `>` before one puts its column to the right, as
            numbers are read.
        rows: a cell per column; words that are too long are folded, not cut.
        title: above the table.

    >>> made = table(["word", ">NLL"], [["cat", "0.5000"]])
    >>> [(column.header, column.justify) for column in made.columns]
    [('Word', 'left'), ('NLL', 'right')]
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left")
    for heading in columns:
        right, name = heading.startswith(">"), heading.removeprefix(">")
        made.add_column(name[:1].upper() + name[1:], justify="right" if right else "left")
    for row in rows:
        made.add_row(*(Text(str(cell), overflow="fold") for cell in row))
    return made
