"""What commands show: JSON and tables on standard output, progress on standard error.

Text of a user or a model is never markup. In a pipe tables are wide, and there are no bars. What
draws them is imported when something is drawn: `--help` needs none of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fillmask_ui.files import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

    from fillmask_ui.models import LoadProgress
    from fillmask_ui.models.model_choice import ModelChoice
    from fillmask_ui.protocol import MaskedLM


def print_json(values: Mapping[str, Any]) -> None:
    """One object on one line of standard output."""
    typer.echo(json.dumps(values, ensure_ascii=False))


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


def print_table(
    columns: Iterable[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> None:
    """A table of rows; `>` before a heading puts its column to the right, as numbers are read.

    Headings get a capital, and words that are too long are folded, not cut.

    >>> print_table(["word", ">NLL"], [["cat", "12.5000"]])
    ┏━━━━━━┳━━━━━━━━━┓
    ┃ Word ┃     NLL ┃
    ┡━━━━━━╇━━━━━━━━━┩
    │ cat  │ 12.5000 │
    └──────┴─────────┘
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for heading in columns:
        name = heading.removeprefix(">")
        table.add_column(
            name[:1].upper() + name[1:], justify="left" if name == heading else "right"
        )
    for row in rows:
        table.add_row(*(Text(visible(str(cell), lines=True), overflow="fold") for cell in row))
    wide_console().print(table)


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


def load(choice: ModelChoice) -> MaskedLM:
    """The chosen model, with the progress of a download on standard error."""
    from fillmask_ui.models.load import load_choice

    reference = choice.reference
    if reference.endswith(".onnx") or (reference != "embedded" and _is_folder(reference)):
        # Its name in signatures is without `./` before and `/` behind, as a shell completes it.
        choice = replace(choice, reference=str(Path(reference).expanduser()))
    with download_progress() as show:
        return load_choice(choice, show)


def _is_folder(reference: str) -> bool:
    from fillmask_ui.texts.files import is_folder

    return bool(reference) and is_folder(reference)


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
