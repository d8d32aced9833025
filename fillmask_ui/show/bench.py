"""A benchmark as tables for reading, one per kind of work, and as a page of charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.bench.report import Report, Row
from fillmask_ui.files import write_text
from fillmask_ui.show.figures import Table
from fillmask_ui.show.numbers import three_digits

_SENTENCE = "one sentence of "
_KINDS = (_SENTENCE, "matrix product ")  # works that differ in a size share a table


@dataclass(frozen=True)
class Works:
    """All works of one kind: `sizes` says in what they differ, where there are several."""

    title: str
    table: Table


def works(report: Report) -> tuple[Works, ...]:
    """A table per kind of work, cells as they are read."""
    kinds: dict[str, list[Row]] = {}
    for row in report.rows:
        kind = next((kind for kind in _KINDS if row.work.startswith(kind)), row.work)
        kinds.setdefault(kind, []).append(row)
    return tuple(_works(kind, rows) for kind, rows in kinds.items())


def machine_line(report: Report) -> str:
    """The machine in a sentence."""
    own = report.machine
    versions = ", ".join(f"{name} {version}" for name, version in own["versions"].items())
    return (
        f"{own['cpu']}, {own['cores']} cores ({', '.join(own['features'])}), {own['system']}, "
        f"{three_digits(own['gflops'])} GFLOP/s in float32; Python {own['python']}, {versions}"
    )


def markdown(report: Report) -> str:
    """The tables as Markdown, for a page of documentation."""
    lines = [machine_line(report)]
    for kind in works(report):
        lines += ["", f"### {kind.title[:1].upper()}{kind.title[1:]}", ""]
        marks = ["--:" if number else ":--" for number in _numbers(kind.table)]
        for cells in (kind.table.columns, marks, *kind.table.rows):
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *(f"\n{note}" for note in report.notes)])


def write_page(report: Report, target: Path) -> None:
    """Write the charts, each with its table, as one self-contained HTML page.

    Raises:
        DataError: if the file cannot be written.
    """
    from fillmask_ui.show.charts import chart_library
    from fillmask_ui.show.charts.bench import bench_charts
    from fillmask_ui.show.render import render

    page = render(
        "bench.html",
        machine=machine_line(report),
        notes=report.notes,
        charts=bench_charts(report),
        library=chart_library(),
    )
    write_text(page, target)


def _works(kind: str, rows: Sequence[Row]) -> Works:
    """The columns that any of the rows fills."""
    sizes = [row.work.removeprefix(kind) for row in rows]
    # Others are measured against: the peers, or where there are none the first subject.
    measured = [row for row in rows if row.median is not None]
    rivals = dict.fromkeys([row.subject for row in measured if row.peer])
    rivals = rivals or dict.fromkeys([row.subject for row in measured[:1]])
    unit = rows[0].unit
    columns: dict[str, list[str]] = {"size": sizes, "subject": [row.subject for row in rows]}
    columns[f"median ({unit})"] = [three_digits(row.median) for row in rows]
    for name, label in (("spread", "spread"), ("p95", "p95"), ("p99", "p99")):
        columns[label] = [three_digits(getattr(row, name)) for row in rows]
    columns["loss (nats)"] = ["" if row.loss is None else f"{row.loss:.5f}" for row in rows]
    for rival in rivals:
        ratios = [row.ratios.get(rival) for row in rows]
        columns[f"against {rival}"] = ["" if own is None else f"{own:.2f}x" for own in ratios]
    columns["failed"] = [row.error or "" for row in rows]
    filled = {name: cells for name, cells in columns.items() if any(cells)}
    table = Table(tuple(filled), tuple(zip(*filled.values(), strict=True)))
    title = {_SENTENCE: "one sentence, text in to records out"}.get(kind, kind.strip())
    return Works(title, table)


def _numbers(table: Table) -> Iterator[bool]:
    """For each column, whether it is read from the right."""
    return (name not in ("size", "subject", "failed") for name in table.columns)


def headings(table: Table) -> list[str]:
    """Columns as `cli.terminal.print_table` takes them: `>` before those read from the right."""
    return [
        f">{name}" if number else name
        for name, number in zip(table.columns, _numbers(table), strict=True)
    ]
