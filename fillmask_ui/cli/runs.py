"""`fillmask-ui runs`: what was evaluated, and what became of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fillmask_ui.cli.eval_work import store
from fillmask_ui.cli.options import Json
from fillmask_ui.errors import FillmaskError, OptionError

Name = Annotated[str, typer.Argument(metavar="RUN", help="Name, the beginning of one, or latest.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    runs = typer.Typer(help="Evaluation runs: list, show, compare, delete, export.")
    runs.command("list")(list_runs)
    runs.command("show")(show)
    runs.command("compare")(compare)
    runs.command("delete")(delete)
    runs.command("export")(export)
    app.add_typer(runs, name="runs")


def list_runs(as_json: Json = False) -> None:
    """List all runs, oldest first."""
    found = store()
    entries = [entry for entry in map(_entry, found.names()) if entry is not None]
    if as_json:
        for entry in entries:
            typer.echo(json.dumps(entry, ensure_ascii=False))
        return
    if not entries:
        typer.echo(f"no runs in {found.root}: make one with fillmask-ui eval")
        return
    from rich.table import Table
    from rich.text import Text

    from fillmask_ui.cli.eval_output import wide_console

    table = Table("Run", "State", "Model", "Metric")
    for heading in ("Value", "Rows"):
        table.add_column(heading, justify="right")
    table.add_column("Verdict")
    for entry in entries:
        value = "" if entry["value"] is None else f"{entry['value']:.4f}"
        table.add_row(
            Text(entry["run"], overflow="fold"),
            entry["state"],
            Text(entry["model"], overflow="fold"),
            entry["metric"],
            value,
            f"{entry['rows']:,}",
            entry["verdict"] or "",
        )
    wide_console().print(table)


def _entry(name: str) -> dict[str, Any] | None:
    try:
        run = store().open(name)
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


def show(run: Name, as_json: Json = False) -> None:
    """Show the figures of a run, computed from its rows."""
    opened = store().open(run)
    summary = opened.summary()
    if as_json:
        values = {
            **summary.to_dict(),
            "notes": list(opened.info.notes),
            "signature": opened.info.signature,
            "run": opened.info.name,
            "state": opened.state,
        }
        typer.echo(json.dumps(values, ensure_ascii=False))
        return
    from fillmask_ui.cli.eval_output import print_figures

    failed = f" ({opened.info.error})" if opened.info.error else ""
    typer.echo(f"{opened.info.name}: {opened.state}{failed}")
    print_figures(summary, opened.info)


def compare(
    run: Name,
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The run to measure it by.")],
    as_json: Json = False,
) -> None:
    """Compare two runs over the same texts and masks: paired change and verdict."""
    from fillmask_ui.runs import compare as compare_runs

    found = store()
    first, second = found.open(run), found.open(baseline)
    summary = compare_runs(first, second)
    if as_json:
        names = {"run": first.info.name, "baseline_run": second.info.name}
        typer.echo(json.dumps({**summary.to_dict(), **names}, ensure_ascii=False))
        return
    from fillmask_ui.cli.eval_output import print_figures

    typer.echo(f"{first.info.name} against {second.info.name}")
    print_figures(summary, first.info)


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


def export(
    run: Name,
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
