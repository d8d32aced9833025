"""`fillmask-ui sweep`: many evaluations from one file, each a stored run, and one table of them."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, TimeRemainingColumn

from fillmask_ui.cli.eval import FAILING
from fillmask_ui.cli.options import option, with_options
from fillmask_ui.cli.runs import store
from fillmask_ui.cli.sweep_output import print_sweep
from fillmask_ui.cli.terminal import load, print_json, progress_bar
from fillmask_ui.cluster import EngineChoice, open_engine
from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.show.sweep import csv_text, page, write_text
from fillmask_ui.sweeps import Step, Sweep, perform_sweep, read_sweep, sweep_table
from fillmask_ui.sweeps.perform import BEGUN, FAILED, KEPT, MEASURING

if TYPE_CHECKING:
    from fillmask_ui.sweeps import SweepTable


@with_options
def sweep(
    file: Annotated[
        Path,
        typer.Argument(metavar="SWEEP.toml", help="The models, data sets, metrics and seeds."),
    ],
    *,
    engine: EngineChoice,
    table_only: Annotated[
        bool, option("Measure nothing: the table of what is there.", "--table-only")
    ] = False,
    fail_on: Annotated[
        str | None, option("Exit with code 3 on this verdict: regression, at-risk, inconclusive.")
    ] = None,
    csv: Annotated[Path | None, option("Write a line per cell there.", metavar="FILE")] = None,
    html: Annotated[Path | None, option("Write the heat map there.", metavar="FILE")] = None,
    as_json: Annotated[bool, option("Print one JSON object.", "--json")] = False,
) -> None:
    """Measure models x data sets x metrics x seeds, go on where it stopped, print one table."""
    chosen = read_sweep(file)
    _check_output(chosen, fail_on, table_only, csv, html)
    if table_only:
        table = sweep_table(chosen, store())
    else:
        with open_engine(engine) as opened:
            table = sweep_table(chosen, store(), _performed(chosen, opened))
    for target, text in ((csv, csv_text), (html, page)):
        if target is not None:
            write_text(text(table), target)
            sys.stderr.write(f"{target}\n")
    if as_json:
        print_json(table.to_dict())
    else:
        print_sweep(table)
    _exit(table, fail_on)


def _check_output(
    chosen: Sweep, fail_on: str | None, table_only: bool, *targets: Path | None
) -> None:
    if fail_on is not None and fail_on not in FAILING:
        raise OptionError(unknown("verdict to fail on", fail_on, FAILING))
    if fail_on is not None and chosen.baseline is None:
        raise OptionError("--fail-on needs a baseline in the sweep file: without it no verdict")
    if fail_on is not None and table_only:
        raise OptionError("--fail-on judges all cells: leave out --table-only, which makes none")
    for target in targets:
        if target is not None and not target.parent.is_dir():
            raise OptionError(
                f"no folder {str(target.parent)!r} to write {target.name!r} into: make it"
            )


def _performed(chosen: Sweep, engine: Any) -> dict[str, Step]:
    """The last step of each cell by its key; progress on standard error."""
    last: dict[str, Step] = {}
    number = {cell.key: place for place, cell in enumerate(chosen.cells, start=1)}

    def values(step: Step) -> dict[str, Any]:
        if step.progress is None:
            return {}
        place = f"{number[step.cell.key]} of {len(number)}: {step.cell.name}"
        done = int(step.progress.through or step.progress.running.seen)
        return {"description": place, "completed": done, "total": step.progress.expected}

    def say(step: Step) -> None:
        place = f"{number[step.cell.key]} of {len(number)}: {step.cell.name}"
        note = f" ({step.message})" if step.message else ""
        if step.state == BEGUN:
            sys.stderr.write(f"{place}: run {step.run}{note}\n")
        elif step.state == FAILED:
            sys.stderr.write(f"{place}: failed: {step.message}\n")
        elif step.state == KEPT and note:
            sys.stderr.write(f"{place}: {step.message}\n")

    columns = (MofNCompleteColumn(), TimeRemainingColumn())
    steps = perform_sweep(chosen, store(), load, engine)
    try:
        with closing(steps), progress_bar(values, lambda _: None, *columns) as show:
            for step in steps:
                last[step.cell.key] = step
                if step.state != MEASURING:
                    say(step)
                show(step)
    except KeyboardInterrupt:
        command = shlex.join(["fillmask-ui", *sys.argv[1:]])
        sys.stderr.write(f"\nstopped; what was measured is kept, go on with: {command}\n")
        raise
    kept = sum(step.state == KEPT for step in last.values())
    sys.stderr.write(f"{kept} of {len(last)} cells were done before\n" if kept else "")
    return last


def _exit(table: SweepTable, fail_on: str | None) -> None:
    """Exit code 1 if a cell failed, 3 for a verdict that `fail_on` names."""
    bad = [entry for entry in table.entries if fail_on and entry.verdict in FAILING[fail_on]]
    for entry in bad:
        sys.stderr.write(f"{entry.cell.name}: {entry.verdict} (--fail-on {fail_on})\n")
    failed = sum(entry.state == FAILED for entry in table.entries)
    if failed:
        sys.stderr.write(f"error: {failed} of {len(table.entries)} cells failed\n")
        raise typer.Exit(1)
    if bad:
        raise typer.Exit(3)
