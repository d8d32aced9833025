"""`fillmask-ui sweep`: many evaluations from one file, each a stored run, and one table of them."""

import shlex
import sys
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path

import typer

from fillmask_ui.cli import options
from fillmask_ui.cli.eval import run_bar
from fillmask_ui.cli.runs import store
from fillmask_ui.cli.terminal import fits, load, print_json, print_line, print_table, tell
from fillmask_ui.errors import OptionError
from fillmask_ui.features.sweep.sweep_file import Sweep, SweepCell, read_sweep
from fillmask_ui.features.sweep.sweep_perform import (
    BEGUN,
    FAILED,
    KEPT,
    MEASURING,
    Step,
    perform_sweep,
)
from fillmask_ui.features.sweep.sweep_sections import by_data, cells_table, notes, page, sections
from fillmask_ui.features.sweep.sweep_table import SweepTable, sweep_table
from fillmask_ui.files import check_target, write_text
from fillmask_ui.runs import Engine
from fillmask_ui.runs.engines import EngineChoice, open_engine


@options.with_options
def sweep(
    file: Path = options.argument(..., "SWEEP.toml", "The models, data sets, metrics and seeds."),
    *,
    engine: EngineChoice,
    table_only: bool = options.option(
        False, "Measure nothing: the table of what is there.", "--table-only"
    ),
    fail_on: str | None = options.FAIL_ON,
    csv: Path | None = options.file_option(None, "Write a line per cell there."),
    html: Path | None = options.file_option(None, "Write the heat map there."),
    as_json: bool = options.ONE_JSON,
) -> None:
    """Measure models x data sets x metrics x seeds of a file, and print one table."""
    chosen = read_sweep(file)
    options.check_fail_on(fail_on, chosen.baseline, "baseline in the sweep file")
    if fail_on is not None and table_only:
        raise OptionError("--fail-on judges all cells: leave out --table-only, which makes none")
    texts = {cell.texts.value for cell in chosen.cells}
    read = [own.where for own in texts if own.kind in ("file", "folder")]
    for target, own in product((csv, html), read):
        check_target(target, Path(own), folder=own)
    if table_only:
        table = sweep_table(chosen, store())
    else:
        with open_engine(engine) as opened:
            table = sweep_table(chosen, store(), _performed(chosen, opened))
    for target, text in ((csv, lambda own: cells_table(own).to_csv()), (html, page)):
        if target is not None:
            write_text(text(table), target)
            tell(str(target))
    if as_json:
        print_json(table.to_dict())
    else:
        print_sweep(table)
    _exit(table, fail_on)


def _performed(chosen: Sweep, engine: Engine | None) -> dict[str, Step]:
    """The last step of each cell by its key; progress on standard error."""
    last: dict[str, Step] = {}
    said = set[str]()
    number = {cell.key: place for place, cell in enumerate(chosen.cells, start=1)}
    steps = perform_sweep(chosen, store(), load, engine)
    try:
        # A bar for each cell, as between them a model is fetched, with a bar of its own.
        with closing(steps), ExitStack() as opened:
            shown: SweepCell | None = None
            for step in steps:
                last[step.cell.key] = step
                place = f"{number[step.cell.key]} of {len(number)}: {step.cell.name}"
                if step.state == MEASURING and step.progress is not None:
                    if step.cell is not shown:
                        opened.close()
                        shown, show = step.cell, opened.enter_context(run_bar(step.progress, place))
                    show(step.progress)
                    continue
                opened.close()
                shown = None
                if line := _line(step, said):
                    tell(f"{place}: {line}")
    except KeyboardInterrupt:
        command = shlex.join(["fillmask-ui", *sys.argv[1:]])
        tell(f"\nstopped; what was measured is kept, go on with: {command}")
        raise
    if kept := sum(step.state == KEPT for step in last.values()):
        tell(f"{kept} of {len(last)} cells were done before")
    return last


def _line(step: Step, said: set[str]) -> str:
    """What to say of a cell that begins or ends; why it fails once, not for each of its model."""
    if step.state == BEGUN:
        return f"run {step.run}" + (f" ({step.message})" if step.message else "")
    if step.state == FAILED:
        why = "as above" if step.message in said else step.message
        said.add(step.message)
        return f"failed: {why}"
    return step.message if step.state == KEPT else ""


def print_sweep(table: SweepTable) -> None:
    """The tables of all metrics, and what a reader should know of single cells."""
    against = f", against {table.sweep.baseline}" if table.sweep.baseline else ""
    print_line(f"{table.sweep.name}{against}", "bold")
    for section in sections(table):
        for shown in (section,) if fits(section) else by_data(section):
            print_line("")
            print_table(shown)
    for number, note in enumerate(notes(table), start=1):
        print_line(f"Note {number}: {note}")
    print_line(", ".join(table.versions), "dim")


def _exit(table: SweepTable, fail_on: str | None) -> None:
    """Exit code 1 if a cell failed, 3 for a verdict that `fail_on` names."""
    verdicts = options.FAILING[fail_on] if fail_on else ()
    bad = [entry for entry in table.entries if entry.verdict in verdicts]
    for entry in bad:
        tell(f"{entry.cell.name}: {entry.verdict} (--fail-on {fail_on})")
    failed = sum(entry.state == FAILED for entry in table.entries)
    if failed:
        tell(f"error: {failed} of {len(table.entries)} cells failed")
        raise typer.Exit(1)
    if bad:
        raise typer.Exit(3)
