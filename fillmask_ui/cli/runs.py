"""`fillmask-ui runs` and `report`: what was evaluated, and its figures."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import typer

from fillmask_ui.cli.help import HelpCommand, HelpGroup
from fillmask_ui.cli.options import ALL_FIGURES, JSON, argument, file_option, option, with_options
from fillmask_ui.cli.terminal import (
    print_json,
    print_line,
    print_table,
    say,
    tell,
    wide_console,
)
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.evaluation import Summary
from fillmask_ui.extensions import features, load
from fillmask_ui.files import text_file, user_folder, visible
from fillmask_ui.records import ROLES
from fillmask_ui.runs import RunInfo, RunStore, compare_runs, tokens
from fillmask_ui.runs.compare import compared_info
from fillmask_ui.runs.info import DONE
from fillmask_ui.runs.listed import (
    SORTS,
    ListedRun,
    RunBeside,
    listed_run,
    runs_beside,
    sorted_runs,
)
from fillmask_ui.show.figures import (
    INTERVAL,
    brief_table,
    comparison_table,
    figures_table,
)
from fillmask_ui.show.run_tables import LESS_IMPORTANT, OF_CHANGE, beside_table, runs_table
from fillmask_ui.show.sentences import comparison_lines, engines_text, slices_note
from fillmask_ui.show.slice_tables import group_table, slice_tables

RUN_NAME = argument(..., "RUN", "A run: its name, the start of its name, or latest.")
SORT = option(
    "created",
    f"Order of the runs, ascending: {', '.join(SORTS[:-1])} or {SORTS[-1]}.",
    metavar="BY",
)

runs = typer.Typer(
    help="List, show, name, compare, delete, export or push stored runs.",
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
    sizes = {"size_bytes": info.model.get("size_bytes")}
    if info.baseline:
        sizes |= {"baseline_size_bytes": info.baseline.get("size_bytes"), "speedup": info.speedup}
    about_run = {**sizes, "notes": list(info.notes), "signature": info.signature, "run": info.name}
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
def list_runs(sort: str = SORT, as_json: bool = JSON) -> None:
    """List all runs, by default the oldest first."""
    runs = sorted_runs(_listed_runs(), sort)
    if as_json:
        for run in runs:
            print_json(run.to_dict())
    elif not runs:
        say(f"No runs in {store().root}: make one with fillmask-ui eval.")
    else:
        table = runs_table(runs)
        fitted = table.fitted(wide_console().width, LESS_IMPORTANT)
        print_table(fitted)
        if left_out := [name for name in table.headings if name not in fitted.headings]:
            print_line(f"Not shown in this width: {', '.join(left_out)} (--json has all)", "dim")


def _listed_runs() -> Iterator[ListedRun]:
    """All runs for the list; one that cannot be read is told, and hides no other."""
    readers = dict.fromkeys(store().names(), lambda name: listed_run(store().open(name)))
    for feature_store in feature_stores():
        readers |= dict.fromkeys(feature_store.names(), feature_store.entry)
    for name in sorted(readers):
        try:
            yield readers[name](name)
        except FillmaskError as error:  # noqa: PERF203 - once a run
            tell(visible(str(error) if name in str(error) else f"{name}: {error}"))


@_command()
def rename(
    run: str = RUN_NAME,
    name: str = argument(..., "NAME", "Its new name, in any words; '' for none."),
) -> None:
    """Give a run a name, by which it is listed and found."""
    info = store().rename(run, name)
    say(f"run {info.name} is called {info.title}" if info.title else f"run {info.name} has no name")


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
    reference: str = argument(..., "REFERENCE", "The run to compare with."),
    candidates: list[str] = argument(..., "CANDIDATE...", "One run, or up to five."),
    everything: bool = ALL_FIGURES,
    as_json: bool = JSON,
) -> None:
    """Compare two runs, or up to six, over the same texts: paired changes and verdicts."""
    opened, *others = (store().open(name) for name in (reference, *candidates))
    if len(others) > 1:
        _print_beside(runs_beside([opened, *others]), as_json=as_json)
        return
    (candidate,) = others
    summary = compare_runs(opened, candidate)
    if as_json:
        names = {"reference_run": opened.info.name, "candidate_run": candidate.info.name}
        print_json(summary.to_dict() | names)
        return
    say(f"reference {opened.info.name}, candidate {candidate.info.name}")
    print_figures(summary, compared_info(opened, candidate), everything=everything)


def _print_beside(runs: Sequence[RunBeside], *, as_json: bool) -> None:
    """Several runs, a row each, against the first."""
    if as_json:
        metric = runs[0].summary.metric.name
        print_json({"metric": metric, "runs": [run.to_dict() for run in runs]})
        return
    table = beside_table(runs)
    print_table(table.fitted(wide_console().width, ("texts", INTERVAL, "model", OF_CHANGE)))
    say("Changes are relative to the first run, the reference, and paired by text.")


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
