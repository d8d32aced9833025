"""The one table: columns with heading, alignment and format; for shell, page, CSV, Markdown."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import TYPE_CHECKING, Any

from fillmask_ui.files import csv_cell, visible
from fillmask_ui.intervals import Interval
from fillmask_ui.show.numbers import cell_text, with_minus

if TYPE_CHECKING:
    from rich.table import Table as RichTable

# Verdicts stand out where a terminal has colours.
_STYLES = {
    "PASS": "green",
    "AT_RISK": "yellow",
    "REGRESSION": "red",
    "NEAR_CHANCE": "red",
    "INCONCLUSIVE": "dim",
}


_NAME_CHARACTERS, _CUT_CHARACTERS = 32, 24


def _cut(cell: Any, longest: int) -> Any:
    too_long = isinstance(cell, str) and len(cell) > longest
    return f"{cell[: longest - 1]}…" if too_long else cell


@dataclass(frozen=True)
class Column:
    """A heading and how the cells below it are written.

    >>> Column("NLL", ".2f", missing="-").text(0.5), Column("NLL", ".2f", missing="-").text(None)
    ('0.50', '-')
    """

    heading: str
    form: str | Callable[[Any], str] = cell_text  # a format as of `format`, or a function
    missing: str = ""  # written for None
    about: str = ""  # key of `templates/page/explanations.html`: the page explains the heading
    right: bool | None = None  # aligned to the right; None: if any cell is a number
    is_name: bool = False  # given by a user: a terminal does not begin it with a capital

    def text(self, cell: Any) -> str:
        """A cell for reading; strings are written unchanged."""
        if cell is None or isinstance(cell, str):
            return self.missing if cell is None else cell
        return (
            with_minus(format(cell, self.form)) if isinstance(self.form, str) else self.form(cell)
        )


@dataclass(frozen=True)
class Table:
    """Columns, and rows of text, unrounded numbers, intervals or None."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""

    @classmethod
    def of(
        cls, columns: Iterable[str | Column], rows: Iterable[Sequence[Any]], title: str = ""
    ) -> Table:
        """A table; a string among the columns is the heading of one in the usual format."""
        headed = (Column(column) if isinstance(column, str) else column for column in columns)
        return cls(tuple(headed), tuple(tuple(row) for row in rows), title)

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(column.heading for column in self.columns)

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether each column is aligned to the right."""
        return tuple(
            any(isinstance(row[index], int | float | Interval) for row in self.rows)
            if column.right is None
            else column.right
            for index, column in enumerate(self.columns)
        )

    def texts(self) -> list[list[str]]:
        pairs = (zip(self.columns, row, strict=True) for row in self.rows)
        return [[column.text(cell) for column, cell in row] for row in pairs]

    def headed(self, first: str, title: str = "") -> Table:
        """With another first heading, and a title."""
        return replace(
            self, columns=(replace(self.columns[0], heading=first), *self.columns[1:]), title=title
        )

    def without(self, heading: str) -> Table:
        """The table without a column."""
        kept = [index for index, name in enumerate(self.headings) if name != heading]
        rows = tuple(tuple(row[index] for index in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[index] for index in kept), rows=rows)

    def fitted(self, width: int, droppable: Iterable[str]) -> Table:
        """The table in so many characters of a terminal.

        Words are cut at 24 characters, those of the first column at 32; then columns are left out
        in the order of `droppable`.

        >>> table = Table.of(["run", "note"], [["a", "x" * 30]])
        >>> table.fitted(40, ["note"]).headings, table.fitted(20, ["note"]).headings
        (('run', 'note'), ('run',))
        """
        if self._width <= width:
            return self
        cut = [_NAME_CHARACTERS, *[_CUT_CHARACTERS] * (len(self.columns) - 1)]
        rows = (zip(row, cut, strict=True) for row in self.rows)
        table = replace(self, rows=tuple(tuple(_cut(*pair) for pair in row) for row in rows))
        for heading in droppable:
            if table._width <= width:
                break
            table = table.without(heading)
        return table

    @property
    def _width(self) -> int:
        """Characters of the table in a terminal, borders included."""
        cells = zip(self.headings, *self.texts(), strict=True)
        return sum(max(map(len, column)) + 3 for column in cells) + 1

    def to_rich(self) -> RichTable:
        """For the terminal, without its title; long words are folded, not cut."""
        from rich.table import Table as RichTable
        from rich.text import Text

        texts = self.texts()
        drawn = RichTable(show_lines=any("\n" in cell for row in texts for cell in row))
        for column, right in zip(self.columns, self.right, strict=True):
            name = column.heading
            heading = Text(visible(name if column.is_name else name[:1].upper() + name[1:]))
            drawn.add_column(heading, justify="right" if right else "left", overflow="fold")
        for row in texts:
            cells = [Text(visible(cell, lines=True)) for cell in row]
            for cell in cells:
                for word, style in _STYLES.items():
                    cell.highlight_regex(rf"(?m)^{word}$", style)
            drawn.add_row(*cells)
        return drawn

    def to_csv(self) -> str:
        """A line per row, numbers with every digit."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([*map(csv_cell, row)] for row in (self.headings, *self.rows))
        return text.getvalue()
