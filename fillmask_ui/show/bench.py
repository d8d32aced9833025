"""A benchmark as tables, one per kind of work, and as a page of charts."""

from collections.abc import Sequence
from pathlib import Path

from fillmask_ui.bench.rounds import Report, Row
from fillmask_ui.files import write_text
from fillmask_ui.show.numbers import three_digits
from fillmask_ui.show.table import Column, Table

_SENTENCE = "one sentence of "
_KINDS = (_SENTENCE, "matrix product ")  # works that differ in a size share a table


def bench_tables(report: Report) -> tuple[Table, ...]:
    """A table per kind of work, without the columns that none of its rows fills."""
    kinds: dict[str, list[Row]] = {}
    for row in report.rows:
        kind = next((kind for kind in _KINDS if row.work.startswith(kind)), row.work)
        kinds.setdefault(kind, []).append(row)
    return tuple(_table(kind, rows) for kind, rows in kinds.items())


def _table(kind: str, rows: Sequence[Row]) -> Table:
    # Others are measured against: the peers, or where there are none the first subject.
    measured = [row for row in rows if row.median is not None]
    rivals = dict.fromkeys([row.subject for row in measured if row.peer])
    rivals = rivals or dict.fromkeys([row.subject for row in measured[:1]])
    columns: tuple[str | Column, ...] = (
        *("size", "subject", Column(f"median ({rows[0].unit})", three_digits)),
        *(Column(name, three_digits) for name in ("spread", "p95", "p99")),
        Column("loss (nats)", ".5f"),
        *(Column(f"against {rival}", lambda ratio: f"{ratio:.2f}x") for rival in rivals),
        "failed",
    )
    cells = (
        (
            *(row.work.removeprefix(kind), row.subject),
            *(row.median, row.spread, row.p95, row.p99, row.loss),
            *(row.ratios.get(rival) for rival in rivals),
            row.error,
        )
        for row in rows
    )
    title = {_SENTENCE: "one sentence, text in to records out"}.get(kind, kind.strip())
    return Table.of(columns, cells, title).filled()


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
    tables = (
        f"\n### {table.title[:1].upper()}{table.title[1:]}\n\n{table.to_markdown()}"
        for table in bench_tables(report)
    )
    return "\n".join([machine_line(report), *tables, *(f"\n{note}" for note in report.notes)])


def write_bench_page(report: Report, target: Path) -> None:
    """Write the charts, each with its table, as one self-contained HTML page."""
    from fillmask_ui.show.charts import chart_library
    from fillmask_ui.show.charts.run_charts import bench_charts
    from fillmask_ui.show.render import render

    page = render(
        "bench.html",
        machine=machine_line(report),
        notes=report.notes,
        charts=bench_charts(report),
        library=chart_library(),
    )
    write_text(page, target)
