"""Progress on standard error: a bar on a terminal, for a download nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from fillmask_ui.models import LoadProgress
    from fillmask_ui.models.choice import ModelChoice
    from fillmask_ui.protocol import MaskedLM


def load(choice: ModelChoice) -> MaskedLM:
    """The chosen model, with the progress of a download on standard error."""
    from fillmask_ui.models import load_choice
    from fillmask_ui.texts.lines import is_folder

    if choice.reference.endswith(".onnx") or (choice.reference and is_folder(choice.reference)):
        # Its name in signatures is without `./` before and `/` behind, as a shell completes it.
        choice = replace(choice, reference=str(Path(choice.reference).expanduser()))
    with download_progress() as update:
        return load_choice(choice, update)


@contextmanager
def download_progress() -> Iterator[Callable[[LoadProgress], None]]:
    """A function to pass as `on_progress`; the bar appears with the first report."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import DownloadColumn, TimeRemainingColumn

    with terminal_bar(DownloadColumn(), TimeRemainingColumn()) as update:

        def show(progress: LoadProgress) -> None:
            # Reading a file from the disk is too short for a bar.
            if progress.stage == "download":
                update(
                    description=progress.message,
                    completed=progress.done_bytes or 0,
                    total=progress.total_bytes,
                )

        yield show


@contextmanager
def terminal_bar(
    *columns: ProgressColumn, description: str = "", **task: Any
) -> Iterator[Callable[..., None]]:
    """A bar on the terminal's standard error that is gone when it is through.

    Args:
        columns: behind the bar.
        description: before it.
        task: `total` and fields of the columns, as of `rich.progress.Progress.add_task`.

    Yields:
        What moves the bar, as `rich.progress.Progress.update` does; it is there from the first
        call on.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    before = (TextColumn("{task.description}", markup=False), BarColumn())
    with Progress(*before, *columns, console=Console(stderr=True), transient=True) as progress:
        own = progress.add_task(description, visible=False, **task)
        yield partial(progress.update, own, visible=True)
