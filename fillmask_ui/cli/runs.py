"""`fillmask-ui runs`: what was evaluated, and what became of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fillmask_ui.cli.options import Json
from fillmask_ui.cli.printing import print_json, table, wide_console
from fillmask_ui.errors import FillmaskError, OptionError

if TYPE_CHECKING:
    from fillmask_ui.runs import RunStore

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="Name, the beginning of one, or latest.")
]

runs = typer.Typer(help="Evaluation runs: list, show, compare, delete, export.")


def store() -> RunStore:
    """Where runs are kept: `FILLMASK_UI_RUNS`, else the platform's place for user data."""
    from fillmask_ui.runs import RunStore, default_root

    return RunStore(default_root(os.environ, sys.platform, Path.home()))


@runs.command("list")
def list_runs(as_json: Json = False) -> None:
    """List all runs, oldest first."""
    found = store()
    entries = [entry for name in found.names() if (entry := _entry(found, name))]
    if as_json:
        for entry in entries:
            print_json(entry)
    elif not entries:
        typer.echo(f"no runs in {found.root}: make one with fillmask-ui eval")
    else:
        from fillmask_ui.show.numbers import cell_text

        columns = ("run", "state", "model", "metric", ">value", ">rows", "verdict")
        rows = ([cell_text(entry[column.strip(">")]) for column in columns] for entry in entries)
        wide_console().print(table(columns, rows))


def _entry(runs: RunStore, name: str) -> dict[str, Any] | None:
    """A run in a list, as JSON; None, and a line on standard error, if it cannot be opened."""
    try:
        run = runs.open(name)
    except FillmaskError as error:
        # One run of another version must not hide the others.
        sys.stderr.write(f"{name}: {error}\n")
        return None
    info, result = run.info, run.info.result or {}
    return {
        "run": info.name,
        "created": info.created,
        "state": run.state,
        "model": info.model["name"],
        "baseline": info.baseline["name"] if info.baseline else None,
        "metric": info.config.metric,
        "value": result.get("pseudo_perplexity", result.get("cross_entropy")),
        "verdict": result.get("verdict"),
        "rows": run.row_count,
    }


@runs.command()
def show(run: RunName, as_json: Json = False) -> None:
    """Show the figures of a run, computed from its rows."""
    from fillmask_ui.cli.eval_output import print_figures, run_values

    opened = store().open(run)
    summary, info = opened.summary(), opened.info
    if as_json:
        print_json({**run_values(summary, info), "state": opened.state})
        return
    failed = f" ({info.error})" if info.error else ""
    typer.echo(f"{info.name}: {opened.state}{failed}")
    print_figures(summary, info)


@runs.command()
def compare(
    run: RunName,
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The run to measure it by.")],
    as_json: Json = False,
) -> None:
    """Compare two runs over the same texts and masks: paired change and verdict."""
    from fillmask_ui.cli.eval_output import print_figures
    from fillmask_ui.runs import compare as compare_runs

    found = store()
    first, second = found.open(run), found.open(baseline)
    summary = compare_runs(first, second)
    if as_json:
        names = {"run": first.info.name, "baseline_run": second.info.name}
        print_json({**summary.to_dict(), **names})
        return
    typer.echo(f"{first.info.name} against {second.info.name}")
    print_figures(summary, first.info)


@runs.command()
def delete(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Names.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete runs."""
    found = store()
    known = found.names()
    # One run may be named twice, by its name and as `latest`.
    names = dict.fromkeys(name if name in known else found.open(name).info.name for name in runs)
    if not yes:
        if not sys.stdin.isatty():
            raise OptionError("nobody is there to be asked: confirm with --yes")
        typer.confirm(f"delete {', '.join(names)}?", abort=True)
    for name in names:
        typer.echo(f"deleted {found.delete(name)}")


@runs.command()
def export(
    run: RunName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; standard output if none."),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format", help="csv or parquet (a token a row), jsonl (a text a line), json."
        ),
    ] = None,
) -> None:
    """Export the rows of a run."""
    from fillmask_ui.runs.export import FORMATS, write_text
    from fillmask_ui.runs.export import export as export_run

    opened = store().open(run)
    if output is not None:
        count = export_run(opened, output, file_format)
        typer.echo(f"{output}: {count:,} records of run {opened.info.name}")
        return
    chosen = file_format or "csv"
    if chosen == "parquet" or chosen not in FORMATS:
        raise OptionError(f"format {chosen!r} needs a file: give one with --output FILE")
    write_text(opened, sys.stdout, chosen)
