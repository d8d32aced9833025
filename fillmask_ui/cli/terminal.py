"""What commands read and show: texts, JSON and tables on standard output, progress beside them.

Text of a user or a model is never markup. In a pipe tables are wide, and there are no bars. What
draws them is imported when something is drawn: `--help` needs none of it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fillmask_ui.errors import DataError, FillmaskError, OptionError, TextError
from fillmask_ui.files import visible
from fillmask_ui.records import finite

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

    from fillmask_ui.models import LoadProgress
    from fillmask_ui.models.model_choice import ModelChoice
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.show.table import Table

# In a pipe one line per tenth of the way, but no more often than this.
_QUIET_SECONDS = 10.0


def print_json(values: Mapping[str, Any]) -> None:
    """One object on one line of standard output; infinite numbers become null."""
    typer.echo(json.dumps(finite(values), ensure_ascii=False))


def say(text: str) -> None:
    """A line of standard output, at once; it does not load what draws tables."""
    print(visible(text, lines=True), flush=True)


def tell(text: str) -> None:
    """A line of standard error: what goes on, and what failed."""
    sys.stderr.write(f"{visible(text, lines=True)}\n")


def wide_console() -> Console:
    """The terminal, or in a pipe lines of at least 140 characters, for the tables."""
    from rich.console import Console

    console = Console()
    return console if sys.stdout.isatty() else Console(width=max(console.width, 140))


def print_line(text: str, style: str = "") -> None:
    """A line of any length, which is not folded."""
    from rich.text import Text

    wide_console().print(Text(visible(text, lines=True), style), soft_wrap=True)


def print_table(table: Table) -> None:
    """A table of `show/` with its title.

    >>> from fillmask_ui.show.table import Column, Table
    >>> print_table(Table.of(["word", Column("NLL", ".4f")], [["cat", 12.5]]))
    ┏━━━━━━┳━━━━━━━━━┓
    ┃ Word ┃     NLL ┃
    ┡━━━━━━╇━━━━━━━━━┩
    │ cat  │ 12.5000 │
    └──────┴─────────┘
    """
    if table.title:
        print_line(table.title, "italic")
    wide_console().print(table.to_rich())


def fits(table: Table) -> bool:
    """Whether a table can be printed without a folded cell."""
    from rich.measure import Measurement

    console = wide_console()
    unbounded = console.options.update(width=10_000)
    return Measurement.get(console, unbounded, table.to_rich()).maximum <= console.width


def show_each(
    results: Iterable[Any], show: Callable[[Any], None], *, as_json: bool, several: bool
) -> None:
    """What was found of each text: JSON by its `to_dict`, or what `show` prints.

    A `FillmaskError` among the results is told and costs the other texts nothing; `several` texts
    are told apart by their numbers.

    Raises:
        typer.Exit: with code 2 if there was one.
    """
    failed = False
    for number, found in enumerate(results, start=1):
        if isinstance(found, FillmaskError):
            tell(f"error: {f'text {number}: ' if several else ''}{found}")
            failed = True
        elif as_json:
            print_json(found.to_dict())
        else:
            show(found)
    if failed:
        raise typer.Exit(2)


def attempts(look: Callable[[str], Any], texts: Iterable[str]) -> Iterator[Any]:
    """What `look` finds in each text, or the `TextError` that it raises."""

    def attempt(text: str) -> Any:
        try:
            return look(text)
        except TextError as error:
            return error

    return map(attempt, texts)


def check_file(file: str) -> None:
    """An `OptionError` unless there is such a file; `-` is standard input."""
    from fillmask_ui.texts.files import is_file

    if file != "-" and not is_file(file):
        raise OptionError(f"no file {file!r}: give an existing text file, or - for standard input")


def file_texts(file: str, *, needed: bool) -> Iterator[str]:
    """Lines of a file, or of standard input as they come; blank ones are left out.

    Raises:
        DataError: if it cannot be read, is not UTF-8, or has no text and one is needed.
    """
    from fillmask_ui.filling.prompt import MAX_CHARACTERS
    from fillmask_ui.texts.files import file_bytes, standard_input

    data = standard_input() if file == "-" else file_bytes(file, name=repr(file))
    for line in data.lines(keep=MAX_CHARACTERS + 1):  # of which a longer one is refused
        if line.strip():
            needed = False
            yield line
    if needed:
        raise DataError(f"{data.name} has no text: one sentence a line is wanted")


@contextmanager
def progress_bar(
    values: Callable[[Any], dict[str, Any]],
    in_pipe: Callable[[Any], None],
    *columns: ProgressColumn,
    transient: bool = True,
    **task: Any,
) -> Iterator[Callable[[Any], None]]:
    """A function to call with each report: a bar on a terminal, `in_pipe` elsewhere.

    `values` is what a report changes of the bar, as of `rich.progress.Progress.update`, which
    appears with the first change; `task` is the bar until then, as of `add_task`. A `transient`
    bar is gone when it is through.
    """
    if not sys.stderr.isatty():
        yield in_pipe
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (bars.TextColumn("{task.description}", markup=False), bars.BarColumn(), *columns)
    with bars.Progress(*columns, console=Console(stderr=True), transient=transient) as progress:
        own = progress.add_task(**{"description": "", "visible": False, **task})

        def show(report: Any) -> None:
            if changes := values(report):
                progress.update(own, visible=True, **changes)

        yield show


@contextmanager
def step_bar() -> Iterator[Callable[[Any], None]]:
    """A bar for reports with a `message` and a `fraction`; in a pipe a line per new message."""
    said = ""

    def values(step: Any) -> dict[str, Any]:
        return {"description": step.message, "completed": step.fraction, "total": 1.0}

    def line(step: Any) -> None:
        nonlocal said
        if step.message != said:
            said = step.message
            tell(said)

    with progress_bar(values, line) as show:
        yield show


@contextmanager
def count_bar(
    values: Callable[[Any], dict[str, Any]], line: Callable[[Any], str], **task: Any
) -> Iterator[Callable[[Any], None]]:
    """A bar that counts to `total`, if it is known; `now` stands behind it. In a pipe a line."""
    from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn

    last = {"time": time.monotonic(), "tenth": 0}

    def in_pipe(report: Any) -> None:
        changes, now = values(report), time.monotonic()
        total = changes["total"]
        tenth = int(10 * changes["completed"] / total) if total else 0
        if now - last["time"] >= _QUIET_SECONDS and not (total and tenth == last["tenth"]):
            last.update(time=now, tenth=tenth)
            tell(line(report))

    behind = TextColumn("{task.fields[now]}", markup=False)
    columns = (MofNCompleteColumn(), TimeRemainingColumn(), behind)
    with progress_bar(values, in_pipe, *columns, **{"now": "", **task}) as show:
        yield show


def load(choice: ModelChoice) -> MaskedLM:
    """The chosen model, with the progress of a download on standard error."""
    from fillmask_ui.models.load import load_choice

    reference = choice.reference
    local = reference.endswith(".onnx")
    if not local and reference not in ("", "embedded"):
        from fillmask_ui.texts.files import is_folder

        local = is_folder(reference)
    if local:
        # Its name in signatures is without `./` before and `/` behind, as a shell completes it.
        choice = replace(choice, reference=str(Path(reference).expanduser()))
    with download_progress() as show:
        return load_choice(choice, show)


@contextmanager
def download_progress() -> Iterator[Callable[[LoadProgress], None]]:
    """A function to pass as `on_progress`; the bar appears with the first report."""

    def values(progress: LoadProgress) -> dict[str, Any]:
        done, total = progress.done_bytes or 0, progress.total_bytes
        return {"description": progress.message, "completed": done, "total": total}

    with ExitStack() as opened:
        bar: Callable[[LoadProgress], None] | None = None

        def show(progress: LoadProgress) -> None:
            nonlocal bar
            # Reading a file from the disk is too short for a bar.
            if progress.stage != "download":
                return
            if bar is None:
                from rich.progress import DownloadColumn, TimeRemainingColumn

                columns = (DownloadColumn(), TimeRemainingColumn())
                bar = opened.enter_context(progress_bar(values, lambda _: None, *columns))
            bar(progress)

        yield show
