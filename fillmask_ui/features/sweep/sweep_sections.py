"""A sweep as tables: one per metric, models by data sets, with the heat of each cell."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fillmask_ui.features.sweep.sweep_table import Entry, Spread, SweepTable
from fillmask_ui.show.charts.record_charts import Bars, bars_figure
from fillmask_ui.show.displays import Display, Row, still
from fillmask_ui.show.numbers import cell_text, interval_text, signed_percent
from fillmask_ui.show.table import Column, Table

# Heading of a column of the CSV file -> key of `Entry.to_dict`, and the end of an interval.
_FIRST = ("model", "data", "metric", "seed", "state", "progress", "figure", "unit")
_LAST = ("verdict", "texts", "tokens", "note", "run", "signature")
_COLUMNS: dict[str, tuple[str, int | None]] = {
    **{name: (name, None) for name in _FIRST},
    "value (in unit)": ("value", None),
    "value, 95 % low (in unit)": ("interval_95", 0),
    "value, 95 % high (in unit)": ("interval_95", 1),
    "relative change (share of the baseline)": ("relative_change", None),
    "relative change, 95 % low (share)": ("relative_change_interval_95", 0),
    "relative change, 95 % high (share)": ("relative_change_interval_95", 1),
    "compared by": ("compared_by", None),
    **{name: (name, None) for name in _LAST},
}


class Shown(NamedTuple):
    """One cell, as text; blank if unknown."""

    figure: str = ""  # or the state of a run that is not done
    interval: str = ""  # of the figure; of a run that is not done, how far it is
    change: str = ""
    change_interval: str = ""
    verdict: str = ""
    by: str = ""  # if tokenizers differ, what is compared
    note: int | None = None  # number of its note, from 1
    heat: float | None = None  # from -1, better, to 1, worse; None for a cell without colour

    def __str__(self) -> str:
        *said, note, _ = self
        return "\n".join(filter(None, (*said, f"note {note}" if note else "")))


class Head(NamedTuple):
    """What a row is of: a model with a seed, or over all its seeds."""

    model: str
    seed: str  # `seed 42` or `mean of 2 seeds`; blank for a metric without
    over_seeds: bool = False

    def __str__(self) -> str:
        return f"{self.model}\n{self.seed}".strip()


def notes(table: SweepTable) -> tuple[str, ...]:
    """What to know of single cells, each note once."""
    return tuple(dict.fromkeys(entry.note for entry in table.entries if entry.note))


def sections(table: SweepTable) -> tuple[Table, ...]:
    """A table per metric: rows begin with a `Head`, `Shown` of each data set follow."""
    names = [Column(own.label, right=True, is_name=True) for own in table.sweep.texts]
    found = []
    for metric in table.sweep.metrics:
        own = metric.value.metric
        entries = [entry for entry in table.entries if entry.cell.metric.label == metric.label]
        spreads = [own for own in table.spreads if own.cell.metric.label == metric.label]
        key = own.figure_key.replace("_", " ")
        unit = f" ({own.unit})" if own.unit else ""
        title = metric.label if metric.label == own.name else f"{metric.label}: {key}"
        rows = _rows(table, entries, spreads)
        found.append(Table.of(("model", *names), rows, f"{title}{unit}"))
    return tuple(found)


def by_data(section: Table) -> Iterator[Table]:
    """A table per data set, for a narrow terminal."""
    first, *names = section.columns
    for place, name in enumerate(names, start=1):
        rows = ((row[0], row[place]) for row in section.rows)
        columns = first, Column("figure", right=True)
        yield Table.of(columns, rows, f"{section.title}, {name.heading}")


def _rows(
    table: SweepTable, entries: Sequence[Entry], spreads: Sequence[Spread]
) -> Iterator[tuple[Head | Shown, ...]]:
    heats = _heats(table, entries)
    for model in table.sweep.models:
        own = [entry for entry in entries if entry.cell.model.label == model.label]
        for seed in dict.fromkeys(entry.cell.seed for entry in own):
            chosen = (entry for entry in own if entry.cell.seed == seed)
            cells = (_shown(table, entry, heats.get(entry.cell.key)) for entry in chosen)
            yield Head(model.label, "" if seed is None else f"seed {seed}"), *cells
        over = {own.cell.texts.label: own for own in spreads if own.cell.model.label == model.label}
        if over:
            most = max(len(spread.seeds) for spread in over.values())
            cells = (_spread(over.get(texts.label)) for texts in table.sweep.texts)
            yield Head(model.label, f"mean of {most} seeds", over_seeds=True), *cells


def _shown(table: SweepTable, entry: Entry, heat: float | None) -> Shown:
    note = notes(table).index(entry.note) + 1 if entry.note else None
    if entry.value is None:
        state = "not measured" if entry.state == "missing" else entry.state
        return Shown(state, entry.progress, note=note)
    is_baseline = table.sweep.baseline == entry.cell.model.label
    return Shown(
        cell_text(entry.value),
        interval_text(entry.interval, cell_text),
        "" if entry.change is None else signed_percent(entry.change),
        interval_text(entry.change_interval, signed_percent),
        "baseline" if is_baseline else entry.verdict,
        "by character" if entry.comparison and entry.comparison.unit == "character" else "",
        note,
        heat,
    )


def _spread(spread: Spread | None) -> Shown:
    if spread is None:
        return Shown()
    change, deviation = spread.mean_change, spread.change_deviation
    return Shown(
        f"{cell_text(spread.mean)} ± {cell_text(spread.deviation) or 'unknown'}",
        change="" if change is None else f"{signed_percent(change)} ± {deviation:.2%}",
    )


def _heats(table: SweepTable, entries: Sequence[Entry]) -> dict[str, float]:
    """Of each cell: its change, full at the border of REGRESSION; without a baseline its figure.

    Figures go from the lowest of a data set to the highest: those of two do not compare.
    """
    if table.sweep.baseline is not None:
        full = abs(table.sweep.limits.risk_below) or 1.0
        return {
            own.cell.key: max(-1.0, min(1.0, own.change / full))
            for own in entries
            if own.change is not None and not math.isnan(own.change)
        }
    found: dict[str, float] = {}
    for texts in table.sweep.texts:
        values = {
            entry.cell.key: entry.value
            for entry in entries
            if entry.cell.texts.label == texts.label and entry.value is not None
        }
        known = [value for value in values.values() if math.isfinite(value)]
        low, high = min(known, default=0.0), max(known, default=0.0)
        if high > low:
            found |= {k: 2 * (min(own, high) - low) / (high - low) - 1 for k, own in values.items()}
    return found


def cells_table(table: SweepTable) -> Table:
    """A row per cell, numbers in full."""
    found = (entry.to_dict() for entry in table.entries)
    rows = (
        [own[key] if end is None else own[key] and own[key][end] for key, end in _COLUMNS.values()]
        for own in found
    )
    return Table.of(_COLUMNS, rows)


def page(table: SweepTable) -> str:
    """One self-contained HTML page: a heat map per metric, and how it was made."""
    from fillmask_ui.show.render import render

    return render(
        "sweep/page.html",
        table=table,
        sections=sections(table),
        notes=notes(table),
        full=abs(table.sweep.limits.risk_below) or 1.0,
        made=[entry for entry in table.entries if entry.run is not None],
    )


def _rows(table: SweepTable) -> Iterator[Row]:
    cells = cells_table(table)
    yield from (dict(zip(cells.headings, row, strict=True)) for row in cells.rows)


def _html(table: SweepTable) -> Iterator[str]:
    yield still("sweep/sections.html", sections=sections(table), notes=notes(table))


def _figure(table: SweepTable) -> Any:
    column, form = "value (in unit)", ""
    if table.sweep.baseline is not None:
        column, form = "relative change (share of the baseline)", "+.2%"
    drawn = Bars(("data", "metric", "seed", "model"), (column,), column, form)
    return bars_figure([*_rows(table)], drawn)


DISPLAY = Display(_rows, _html, _figure)
