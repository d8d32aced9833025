"""What commands read and print: texts, JSON and tables on standard output, progress beside them.

Text of users and models is never markup. In a pipe tables are wide, and there are no bars. What
draws them is imported on use: `--help` needs none of it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from fillmask_ui.errors import DataError, FillmaskError, OptionError, TextError
from fillmask_ui.files import expanded, visible
from fillmask_ui.records import finite

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from fillmask_ui.models import LoadProgress
    from fillmask_ui.models.model_choice import ModelChoice
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.show.table import Table

T = TypeVar("T")

# In a pipe one line per tenth of the way, but no more often than this.
_QUIET_SECONDS = 10.0


def print_json(values: Mapping[str, Any]) -> None:
    """One object on one line; infinite numbers become null."""
    typer.echo(json.dumps(finite(values), ensure_ascii=False))


def say(text: str) -> None:
    """A line of standard output, at once, without loading what draws tables."""
    print(visible(text, lines=True), flush=True)


def tell(text: str) -> None:
    """A line of standard error: progress and failures."""
    sys.stderr.write(f"{visible(text, lines=True)}\n")


def warn(text: str) -> None:
    """A line of standard error that a reader should see before any figure."""
    tell(f"warning: {text}")


def wide_console() -> Console:
    """The terminal; in a pipe lines have at least 140 characters, for the tables."""
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


def folder_to_write(directory: str, *, force: bool) -> Path:
    """The folder of a command that writes many files; an `OptionError` if it must not."""
    target = expanded(directory)
    if not directory.strip():
        raise OptionError("DIR is empty: name a folder to write, such as ./page")
    if target.exists() and not target.is_dir():
        raise OptionError(f"{directory} is a file: name a folder to write")
    names = sorted(path.name for path in target.iterdir()) if target.is_dir() else []
    if names and not force:
        raise OptionError(
            f"{directory} exists and holds {', '.join(names[:3])}: name another folder, or use "
            "--force to write into this one"
        )
    return target


@dataclass(frozen=True)
class InputSentences:
    """The sentences of a command line, or of a file or standard input as its lines are used."""

    texts: Iterable[str]
    several: bool  # whether errors are numbered
    streamed: bool = False  # from standard input, whose writer may wait for each answer

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)


def sentences_of(texts: list[str] | None, file: str | None, advice: str) -> InputSentences:
    """The sentences of a command line and then those of a file; `-` is standard input.

    Standard input is also read if there is nothing else, and a file or a pipe stands there.

    Raises:
        OptionError: at once, if there is no text; `advice` shows how to write one.
        DataError: while lines are read, if there is no text.
    """
    from fillmask_ui.texts.files import is_file

    texts = texts or []
    if file is None and (texts == ["-"] or (not texts and _is_fed(sys.stdin))):
        texts, file = [], "-"
    if file is None:
        if not texts:
            raise OptionError(f"no text was given: write one{advice}")
        return InputSentences(texts, len(texts) > 1)
    if file != "-" and not is_file(file):
        raise OptionError(f"no file {file!r}: give an existing text file, or - for standard input")
    return InputSentences(chain(texts, _lines(file, needed=not texts)), True, file == "-")


def _is_fed(stream: Any) -> bool:
    """Whether a file or a pipe stands at standard input, not a terminal or nothing."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError, AttributeError):  # closed, or replaced by an object in memory
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _lines(file: str, *, needed: bool) -> Iterator[str]:
    from fillmask_ui.filling.prompt import MAX_CHARACTERS
    from fillmask_ui.texts.files import file_bytes, standard_input

    data = standard_input() if file == "-" else file_bytes(file, name=repr(file))
    for line in data.lines(keep=MAX_CHARACTERS + 1):  # a longer one is refused
        if line.strip():
            needed = False
            yield line
    if needed:
        raise DataError(f"{data.name} has no text: write one sentence per line")


def show_each(
    results: Iterable[Any], show: Callable[[Any], None], *, as_json: bool, several: bool
) -> None:
    """Print the result for each text: JSON by its `to_dict`, or what `show` prints.

    A `FillmaskError` among the results is printed as an error, with the number of its text if there
    are `several`; the other texts are still answered, and the exit code is 2.
    """
    failed = False
    for number, result in enumerate(results, start=1):
        if isinstance(result, FillmaskError):
            text = f"text {number}: " if several else ""
            tell(f"error: {text}{result}")
            failed = True
        elif as_json:
            print_json(result.to_dict())
        else:
            show(result)
    if failed:
        raise typer.Exit(2)


def attempts(look: Callable[[str], Any], texts: Iterable[str]) -> Iterator[Any]:
    """What `look` finds in each text, or the `TextError` that it raises."""
    for text in texts:
        try:
            yield look(text)
        except TextError as error:  # noqa: PERF203 - once a text
            yield error


@contextmanager
def progress_bar(*columns: str, pause: float = 0.0, **task: Any) -> Iterator[Callable[..., None]]:
    """A function to call with a line and the fields of a bar: the bar on a terminal, else the line.

    The bar appears with the first call; a line that repeats the last one is left out.

    Args:
        *columns: behind description and bar: names of rich's columns, or a template of text.
        pause: seconds between two lines; then there is one per tenth of a known `total`, too.
        **task: fields of the bar before the first call, as of `rich.progress.Progress.add_task`.
    """
    update: Callable[..., None] | None = None
    last_text, last_time, last_tenth = "", time.monotonic(), 0

    def draw(_: str, **fields: Any) -> None:
        nonlocal update
        if update is None:
            from rich import progress as bars
            from rich.console import Console

            drawn = (
                bars.TextColumn(column, markup=False) if "{" in column else getattr(bars, column)()
                for column in ("{task.description}", "BarColumn", *columns)
            )
            progress = bars.Progress(*drawn, console=Console(stderr=True), transient=True)
            opened.enter_context(progress)
            number = progress.add_task(**{"description": "", **task})
            update = partial(progress.update, number)
        update(**fields)

    def tell_new(text: str, completed: float = 0, total: float | None = None, **_: Any) -> None:
        nonlocal last_text, last_time, last_tenth
        time_now = time.monotonic()
        tenth = int(10 * completed / total) if total else 0
        too_soon = pause and (time_now - last_time < pause or (total and tenth == last_tenth))
        if text and text != last_text and not too_soon:
            last_text, last_time, last_tenth = text, time_now, tenth
            tell(text)

    with ExitStack() as opened:
        yield draw if sys.stderr.isatty() else tell_new


def count_bar(**task: Any) -> AbstractContextManager[Callable[..., None]]:
    """A bar that counts to `total`, if known, with a `status`; in a pipe a line at times."""
    columns = ("MofNCompleteColumn", "TimeRemainingColumn", "{task.fields[status]}")
    return progress_bar(*columns, pause=_QUIET_SECONDS, status="", **task)


def results(steps: Generator[Any], kind: type[T] | tuple[type[T], ...]) -> Iterator[T]:
    """The results of this kind among steps; others have a `message` and a `fraction` for a bar."""
    with closing(steps), progress_bar(total=1.0) as show:
        for step in steps:
            if isinstance(step, kind):
                yield step
            else:
                show(step.message, description=step.message, completed=step.fraction)


@contextmanager
def download_progress() -> Iterator[Callable[[LoadProgress], None]]:
    """A function to pass as `on_progress`; other steps than downloads are too short for a bar."""
    with progress_bar("DownloadColumn", "TimeRemainingColumn") as bar:

        def show(step: LoadProgress) -> None:
            if step.stage == "download":
                done = step.done_bytes or 0
                bar("", description=step.message, completed=done, total=step.total_bytes)

        yield show


def load(choice: ModelChoice, open_as: Callable[..., Any] | None = None) -> MaskedLM:
    """The chosen model, with the progress of a download on standard error, as `load_choice`."""
    from fillmask_ui.models.load import load_choice

    with download_progress() as show:
        return load_choice(choice, show, open_as)
