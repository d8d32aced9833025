"""How `fillmask-ui sweep` prints its table: data sets side by side where they fit, else below."""

from __future__ import annotations

from collections.abc import Iterable

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fillmask_ui.cli.terminal import print_line, wide_console
from fillmask_ui.show.sweep import Row, Section, Shown, sections
from fillmask_ui.sweeps import SweepTable

_STYLES = {"PASS": "green", "AT_RISK": "yellow", "REGRESSION": "red", "INCONCLUSIVE": "dim"}


def print_sweep(table: SweepTable) -> None:
    """The tables of all metrics, and what a reader should know of single cells."""
    against = f", against {table.sweep.baseline}" if table.sweep.baseline else ""
    print_line(f"{table.sweep.name}{against}", "bold")
    console = wide_console()
    for section in sections(table):
        wide = _wide(section)
        if Measurement.get(console, console.options, wide).maximum <= console.width:
            console.print(wide)
        else:
            for column, name in enumerate(section.columns):
                console.print(_narrow(section, column, name))
    for entry in table.entries:
        if entry.note:
            print_line(f"{entry.cell.name}: {entry.note}")
    print_line(", ".join(table.versions), "dim")


def _wide(section: Section) -> Table:
    """A column per data set."""
    table = _table(section.title, section, section.columns)
    for row in section.rows:
        table.add_row(*_heading(row, section), *(_lines(cell) for cell in row.cells))
    return table


def _narrow(section: Section, column: int, name: str) -> Table:
    """One data set, with figure, change and verdict beside each other."""
    headings = ["Figure", "Change", "Verdict"]
    compared = any(row.cells[column].change for row in section.rows)
    table = _table(f"{section.title}, {name}", section, headings if compared else headings[:1])
    for row in section.rows:
        cell = row.cells[column]
        parts = [
            Text("\n".join(filter(None, (cell.figure, cell.interval)))),
            Text("\n".join(filter(None, (cell.change, cell.change_interval)))),
            _verdict(cell),
        ]
        table.add_row(*_heading(row, section), *(parts if compared else parts[:1]))
    return table


def _table(title: str, section: Section, headings: Iterable[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", show_lines=True)
    table.add_column("Model")
    if section.seeded:
        table.add_column("Seed")
    for heading in headings:
        table.add_column(Text(heading), justify="right")
    return table


def _heading(row: Row, section: Section) -> list[Text]:
    """Of a row; text of a user is never markup."""
    return [Text(row.model, overflow="fold"), *([Text(row.seed)] if section.seeded else [])]


def _lines(cell: Shown) -> Text:
    """All of a cell below each other."""
    parts = [cell.figure, cell.interval, cell.change, cell.change_interval]
    text = Text("\n".join(filter(None, parts)))
    if cell.verdict:
        text.append("\n").append(_verdict(cell))
    return text


def _verdict(cell: Shown) -> Text:
    return Text(cell.verdict, style=_STYLES.get(cell.verdict, ""))
