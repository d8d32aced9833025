"""How `fillmask-ui sweep` prints its table: data sets side by side where they fit, else below."""

from __future__ import annotations

from collections.abc import Iterable

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fillmask_ui.cli.terminal import print_line, wide_console
from fillmask_ui.show.sweep import Row, Section, Shown, notes, sections
from fillmask_ui.sweeps import SweepTable

_STYLES = {"PASS": "green", "AT_RISK": "yellow", "REGRESSION": "red", "INCONCLUSIVE": "dim"}


def print_sweep(table: SweepTable) -> None:
    """The tables of all metrics, and what a reader should know of single cells."""
    against = f", against {table.sweep.baseline}" if table.sweep.baseline else ""
    print_line(f"{table.sweep.name}{against}", "bold")
    console = wide_console()
    unbounded = console.options.update(width=10_000)
    for section in sections(table):
        wide = _wide(section)
        if Measurement.get(console, unbounded, wide).maximum <= console.width:
            _print(section.title, wide)
        else:
            for column, name in enumerate(section.columns):
                _print(f"{section.title}, {name}", _narrow(section, column))
    for number, note in enumerate(notes(table), start=1):
        print_line(f"Note {number}: {note}")
    print_line(", ".join(table.versions), "dim")


def _print(title: str, table: Table) -> None:
    print_line(f"\n{title}", "italic")
    wide_console().print(table)


def _wide(section: Section) -> Table:
    """A column per data set."""
    table = _table(section.columns)
    for row in section.rows:
        table.add_row(_heading(row), *(_lines(cell) for cell in row.cells))
    return table


def _narrow(section: Section, column: int) -> Table:
    """One data set, with the figures and what is said of the baseline beside each other."""
    compared = any(row.cells[column].change for row in section.rows)
    headings = ["Figure", *["Change"] * compared]
    table = _table(headings)
    for row in section.rows:
        cell = row.cells[column]
        parts = [_joined(cell.figure, cell.interval, _note(cell)), _against(cell)]
        table.add_row(_heading(row), *parts[: len(headings)])
    return table


def _table(headings: Iterable[str]) -> Table:
    table = Table(show_lines=True)
    table.add_column("Model", overflow="fold")
    for heading in headings:
        table.add_column(Text(heading), justify="right", overflow="fold")
    return table


def _heading(row: Row) -> Text:
    """Model and seed; text of a user is never markup."""
    seed = f"{row.seed} seeds" if row.over_seeds else row.seed and f"seed {row.seed}"
    return _joined(row.model, seed)


def _lines(cell: Shown) -> Text:
    """All of a cell below each other."""
    parts = (_joined(cell.figure, cell.interval), _against(cell), Text(_note(cell)))
    return Text("\n").join(part for part in parts if part)


def _against(cell: Shown) -> Text:
    """What is said of the baseline."""
    verdict = Text(cell.verdict, style=_STYLES.get(cell.verdict, ""))
    parts = (_joined(cell.change, cell.change_interval), verdict, Text(cell.by))
    return Text("\n").join(part for part in parts if part)


def _joined(*parts: str) -> Text:
    return Text("\n".join(filter(None, parts)))


def _note(cell: Shown) -> str:
    return f"note {cell.note}" if cell.note else ""
