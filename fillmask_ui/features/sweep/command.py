"""`fillmask-ui sweep`: many evaluations from one file, each a stored run, and one table of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import typer

import fillmask_ui.features.sweep.sweep as sweeps
from fillmask_ui.cli import options
from fillmask_ui.cli.eval import run_bar
from fillmask_ui.cli.runs import store
from fillmask_ui.cli.terminal import load, print_json, print_line, print_table, tell
from fillmask_ui.errors import FillmaskError
from fillmask_ui.files import check_target, write_text
from fillmask_ui.runs import Engine
from fillmask_ui.runs.engines import EngineChoice, open_engine
from fillmask_ui.show.numbers import cell_text, signed_percent
from fillmask_ui.show.render import render
from fillmask_ui.show.table import Column, Table


@options.with_options
def sweep(
    file: Path = options.argument(..., "SWEEP.toml", "The models, data sets, metrics and seeds."),
    *,
    engine: EngineChoice,
    table_only: bool = options.option(False, "Print the table without measuring.", "--table-only"),
    fail_on: str | None = options.FAIL_ON,
    csv: Path | None = options.file_option(None, "Write a line per cell to this file."),
    html: Path | None = options.file_option(None, "Write the table as a heat map to this file."),
    as_json: bool = options.ONE_JSON,
) -> None:
    """Measure the models, data sets, metrics and seeds of a file, and print one table."""
    chosen = sweeps.read_sweep(file)
    options.check_fail_on(fail_on, chosen.baseline, "baseline in the sweep file")
    for source in {cell.plan.source for cell in chosen.cells}:
        if source.kind in ("file", "folder"):
            for target in (csv, html):
                check_target(target, Path(source.where), folder=source.where)
    with open_engine(engine) as opened:
        failures = {} if table_only else _measured(chosen.cells, opened)
    table = sweeps.sweep_table(chosen, store(), failures)
    if csv is not None:
        rows = [list(cell.values()) for cell in table["cells"]]
        write_text(Table.of(table["cells"][0], rows).to_csv(), csv)
    if html is not None:
        write_text(render("sweep/page.html", sweep=table, pivots=[*pivots(table)]), html)
    if as_json:
        print_json(table)
    else:
        for pivot in pivots(table):
            print_table(pivot)
        for cell in table["cells"]:
            if cell["note"]:
                print_line(f"{cell['model']}, {cell['data']}, {cell['metric']}: {cell['note']}")
    if failures:
        raise typer.Exit(1)
    verdicts = {cell["verdict"] for cell in table["cells"]}
    if fail_on is not None and not verdicts.isdisjoint(options.FAILING[fail_on]):
        tell(f"there is a verdict of --fail-on {fail_on}")
        raise typer.Exit(3)


def _measured(cells: Sequence[sweeps.SweepCell], engine: Engine | None) -> dict[Any, str]:
    """Why cells failed; progress on standard error."""
    stored, failures = sweeps.stored_runs(store()), {}
    load_once = lru_cache(maxsize=1)(load)  # the cells of a model are in a row
    for number, cell in enumerate(cells, start=1):
        name = f"{number} of {len(cells)}: {cell.name}"
        steps = sweeps.measure_cell(cell, stored.get(cell.key), store(), load_once, engine)
        try:
            with closing(steps):
                if first := next(steps, None):
                    tell(f"{name}: run {first.info.name}")
                    with run_bar(first, name) as show:
                        for step in steps:
                            show(step)
        except FillmaskError as error:
            failures[cell] = str(error)
            tell(f"{name}: failed: {error}")
    return failures


def pivots(table: Mapping[str, Any]) -> Iterator[Table]:
    """A table per metric: a row for each model and seed, a column for each data set."""
    names = list(dict.fromkeys(cell["data"] for cell in table["cells"]))
    figures = (Column(name, _figure, right=True, is_name=True) for name in names)
    columns: list[str | Column] = ["model", *figures]
    metrics: Any = defaultdict(lambda: defaultdict(list))
    for cell in table["cells"]:
        seed = "" if cell["seed"] is None else f", seed {cell['seed']}"
        metrics[cell["metric"]][cell["model"] + seed].append(cell)
    for metric, rows in metrics.items():
        yield Table.of(columns, ([name, *cells] for name, cells in rows.items()), metric)
    if spreads := table["over_seeds"]:
        yield Table.of(spreads[0], [list(spread.values()) for spread in spreads], "over seeds")


def _figure(cell: Mapping[str, Any]) -> str:
    """A cell of a pivot."""
    lines = [cell["state"] if cell["value"] is None else cell_text(cell["value"])]
    lines.append(_interval_text(cell["interval_95"], cell_text))
    if cell["relative_change"] is not None:
        lines.append(signed_percent(cell["relative_change"]))
        lines += [
            _interval_text(cell["relative_change_interval_95"], signed_percent),
            cell["verdict"],
        ]
    return "\n".join(filter(None, lines))


def _interval_text(interval: Sequence[float | None] | None, form: Any) -> str:
    return "" if interval is None or None in interval else " to ".join(map(form, interval))
