"""Progress of a download on standard error: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID

    from fillmask_ui.models import LoadProgress
    from fillmask_ui.models.choice import ModelChoice
    from fillmask_ui.protocol import MaskedLM


def load(choice: ModelChoice) -> MaskedLM:
    """The chosen model, with the progress of a download on standard error."""
    from fillmask_ui.models import load_choice
    from fillmask_ui.texts.lines import is_folder

    if choice.reference.endswith(".onnx") or is_folder(choice.reference):
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
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def update(progress: LoadProgress) -> None:
            # Reading a file from the disk is too short for a bar.
            if progress.stage != "download":
                return
            if progress.stage not in tasks:
                tasks[progress.stage] = bar.add_task(progress.message)
            bar.update(
                tasks[progress.stage],
                description=progress.message,
                completed=progress.done_bytes or 0,
                total=progress.total_bytes,
            )

        yield update
