"""`fillmask-ui report`: a run as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fillmask_ui.cli.options import file_option, with_options
from fillmask_ui.cli.runs import RunName, store
from fillmask_ui.cli.terminal import say


@with_options
def report(
    run: RunName,
    *,
    output: Annotated[Path, file_option("The page to write.", "--output", "-o")] = Path(
        "report.html"
    ),
) -> None:
    """Write a run as one HTML page: figures, charts with their tables, worst tokens."""
    from fillmask_ui.show.report import write_report

    opened = store().open(run)
    write_report(opened, output)
    say(f"{output} ({output.stat().st_size / 1e6:.1f} MB), run {opened.info.name}")
