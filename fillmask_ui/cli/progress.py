"""Progress of a download on standard error: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fillmask_ui.models import LoadProgress


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
        tasks: dict[str, object] = {}

        def update(progress: LoadProgress) -> None:
            if progress.name not in tasks:
                tasks[progress.name] = bar.add_task(progress.name, total=progress.total_bytes)
            bar.update(
                tasks[progress.name], completed=progress.done_bytes, total=progress.total_bytes
            )

        yield update
