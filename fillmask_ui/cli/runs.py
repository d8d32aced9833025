"""`fillmask-ui runs` and `report`: what was evaluated, and its figures."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import typer

from fillmask_ui.cli.help import HelpCommand, HelpGroup
from fillmask_ui.cli.options import ALL_FIGURES, JSON, argument, file_option, option, with_options
from fillmask_ui.cli.terminal import print_json, print_line, print_table, say, tell
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.evaluation import Summary
from fillmask_ui.extensions import features, load
from fillmask_ui.files import text_file, user_folder, visible
from fillmask_ui.records import ROLES
from fillmask_ui.runs import RunInfo, RunStore, compare_runs, tokens
from fillmask_ui.runs.compare import compared_info
from fillmask_ui.runs.info import DONE
from fillmask_ui.show.figures import (
    brief_table,
    comparison_table,
    figures_table,
)
from fillmask_ui.show.numbers import signed_percent
from fillmask_ui.show.sentences import comparison_lines, engine_names, engines_text, slices_note
from fillmask_ui.show.slice_tables import group_table, slice_tables
from fillmask_ui.show.table import Column, Table

RUN_NAME = argument(..., "RUN", "A run: its name, the start of its name, or latest.")

runs = typer.Typer(
    help="List, show, compare, delete, export or push stored runs.",
    cls=HelpGroup,
    rich_markup_mode=None,
)
_command = partial(runs.command, cls=HelpCommand)


def store() -> RunStore:
    """Where runs are kept: `FILLMASK_UI_RUNS`, else the platform's place for user data."""
    return RunStore(user_folder("runs"))


def feature_stores() -> list[Any]:
    """The stores of features, of runs of other kinds that lie beside the evaluations."""
    targets = [target for feature in features() for target in feature.stores]
    return [load(target)(user_folder("runs")) for target in targets]


def feature_run(run: str) -> tuple[Any, str] | None:
    """The store and the name of a feature's run, by its name or the beginning of one.

    None if there is none, or another run begins so.
    """
    if not run:
        return None
    matches = [(None, name) for name in store().names() if name.startswith(run)]
    for feature_store in feature_stores():
        names = feature_store.names()
        matches += [(feature_store, name) for name in names if name.startswith(run)]
    return matches[0] if len(matches) == 1 and matches[0][0] is not None else None


def run_values(summary: Summary, info: RunInfo) -> dict[str, Any]:
    """The object that `--json` prints of a run."""
    about_run = {"notes": list(info.notes), "signature": info.signature, "run": info.name}
    return summary.to_dict() | about_run


def print_figures(
    summary: Summary, info: RunInfo, state: str = DONE, *, everything: bool = False
) -> None:
    """The verdict and a table of the figures that matter; or all figures and the signature."""
    column = info.texts.get("group_column") or ""
    notes = [*info.notes, *summary.group_notes, *summary.alarms]
    if state != DONE:
        notes.insert(0, f"the run is {state}: these are the figures of the texts measured so far")
    for line in comparison_lines(summary, info):
        print_line(line)
    if everything:
        _print_all_figures(summary, column)
    else:
        print_table(brief_table(summary))
        if groups := group_table(summary, column):
            print_table(groups)
    for note in notes:
        print_line(f"Note: {note}")
    if everything:
        print_line(info.signature, "dim")


def _print_all_figures(summary: Summary, column: str) -> None:
    names = ROLES if summary.reference is not None else ("Value",)
    print_table(figures_table(summary, names, summary.metric.figure_key).headed("Metric"))
    if summary.comparison is not None:
        print_table(comparison_table(summary).headed("Reference and candidate"))
    for table in slice_tables(summary, column):
        print_table(table)
    print_line(slices_note(summary))


@_command("list")
def list_runs(as_json: bool = JSON) -> None:
    """List all runs, oldest first."""
    entries = [*_entries()]
    if as_json:
        for entry in entries:
            print_json(entry)
    elif not entries:
        say(f"No runs in {store().root}: make one with fillmask-ui eval.")
    else:
        change = Column("change", signed_percent)
        columns: list[str | Column] = [
            "run",
            "state",
            "model",
            "baseline",
            "value",
            change,
            "verdict",
            "texts",
        ]
        for entry in entries:
            entry["texts"], entry["change"] = entry["rows"], entry.get("relative_change")
            entry["engines"] = engine_names(entry.get("engines", ()))
        if {entry["engines"] for entry in entries} - {"", "local"}:
            columns.append("engines")
        table = Table.of(columns, [])
        rows = [[entry[heading] for heading in table.headings] for entry in entries]
        print_table(Table.of(columns, rows))


def _entries() -> Iterator[dict[str, Any]]:
    """All runs for the list; one that cannot be read is told, and hides no other."""
    readers = dict.fromkeys(store().names(), _run_entry)
    for feature_store in feature_stores():
        readers |= dict.fromkeys(feature_store.names(), feature_store.entry)
    for name in sorted(readers):
        try:
            yield readers[name](name)
        except FillmaskError as error:  # noqa: PERF203 - once a run
            tell(visible(str(error) if name in str(error) else f"{name}: {error}"))


def _run_entry(name: str) -> dict[str, Any]:
    run = store().open(name)
    info, result = run.info, run.info.result or {}
    return {
        "run": info.name,
        "created": info.created,
        "state": run.state,
        "model": info.model["name"],
        "baseline": info.baseline["name"] if info.baseline else None,
        "metric": info.config.metric.name,
        "value": result.get(info.config.metric.figure_key),
        "relative_change": result.get("relative_change"),
        "verdict": result.get("verdict"),
        "rows": run.row_count,
        "engines": info.engines,
    }


@_command()
def show(run: str = RUN_NAME, everything: bool = ALL_FIGURES, as_json: bool = JSON) -> None:
    """Show the figures of a run, computed from its rows."""
    opened = store().open(run)
    summary, info = opened.summary(), opened.info
    if as_json:
        print_json(run_values(summary, info) | {"state": opened.state, "engines": info.engines})
        return
    failed = f" ({info.error})" if info.error else ""
    print_line(f"{info.name}: {opened.state}{failed}")
    if info.engines:
        say(f"measured by: {engines_text(info.engines)}")
    print_figures(summary, info, opened.state, everything=everything)


@_command()
def compare(
    run: str = RUN_NAME,
    baseline: str = argument(..., "BASELINE", "The run to compare with."),
    everything: bool = ALL_FIGURES,
    as_json: bool = JSON,
) -> None:
    """Compare two runs over the same texts and masks: paired change and verdict."""
    candidate, reference = store().open(run), store().open(baseline)
    summary = compare_runs(reference, candidate)
    if as_json:
        names = {"run": candidate.info.name, "baseline_run": reference.info.name}
        print_json(summary.to_dict() | names)
        return
    say(f"reference {reference.info.name}, candidate {candidate.info.name}")
    print_figures(summary, compared_info(reference, candidate), everything=everything)


@_command()
def delete(
    runs: list[str] = argument(
        ..., "RUN...", "Runs: their names, the starts of their names, or latest."
    ),
    yes: bool = option(False, "Do not ask for confirmation.", "--yes", "-y"),
) -> None:
    """Delete runs."""
    evaluations = store()
    # One run may be named twice, by its name and as `latest`.
    stores = {}
    for run in runs:
        run_store, name = feature_run(run) or (evaluations, evaluations.folder(run).name)
        stores[name] = run_store
    if not yes:
        if not sys.stdin.isatty():
            raise OptionError("this is not a terminal to ask a question on: confirm with --yes")
        typer.confirm(f"delete {', '.join(stores)}?", abort=True)
    for name, run_store in stores.items():
        say(f"deleted {visible(run_store.delete(name))}")


@_command()
@with_options
def export(
    run: str = RUN_NAME,
    *,
    output: Path | None = file_option(
        None, "File to write; standard output by default.", "--output", "-o"
    ),
    file_format: str | None = option(
        None,
        "csv or parquet (a row per hidden token), jsonl (a line per text) or json (everything).",
        "--format",
    ),
) -> None:
    """Export the rows of a run."""
    if match := feature_run(run):
        feature_store, name = match
        with text_file(output) if output else nullcontext(sys.stdout) as file:
            feature_store.write_csv(name, file)
        return
    opened = store().open(run)
    if output is not None:
        count = tokens.export(opened, output, file_format)
        say(f"{output}: {count:,} records of run {opened.info.name}")
        return
    chosen = file_format or "csv"
    if chosen == "parquet" or chosen not in tokens.FORMATS:
        raise OptionError(f"format {chosen!r} needs a file: give one with --output FILE")
    tokens.write_text(opened, sys.stdout, chosen)


@with_options
def report(
    run: str = RUN_NAME,
    *,
    output: Path = file_option(Path("report.html"), "HTML file to write.", "--output", "-o"),
    cdn: bool = option(
        False,
        "Fetch the chart library from cdn.plot.ly: a small file that needs a network.",
        "--cdn",
    ),
) -> None:
    """Write a run as one HTML page: figures, charts with their tables, worst tokens."""
    from fillmask_ui.show.report import write_report

    opened = store().open(run)
    write_report(opened, output, from_cdn=cdn)
    say(f"{output} ({output.stat().st_size / 1e6:.1f} MB), run {opened.info.name}")
