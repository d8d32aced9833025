"""A run as one self-contained HTML page: figures, charts with their tables, worst tokens.

It holds the chart library and asks for nothing from outside, so it opens offline and in ten years.
Everything that comes from texts, tokens or models is escaped by the template.
"""

from __future__ import annotations

from pathlib import Path

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import Summary
from fillmask_ui.runs import Run, RunInfo
from fillmask_ui.show.charts import chart_library, charts
from fillmask_ui.show.figures import change_text, comparison_table, figures_table, outlook_text
from fillmask_ui.show.render import render

SHOWN_TOKENS = 40


def write_report(run: Run, target: Path) -> None:
    """Write the page of a run.

    Args:
        run: any run with measured texts, also one that is not done.
        target: the file.

    Raises:
        DataError: if no text was measured, or the file cannot be written.
    """
    page = report_html(run.summary(), run.info, run.state)
    try:
        target.write_text(page, "utf-8")
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}") from error


def report_html(summary: Summary, info: RunInfo, state: str) -> str:
    """The page as text.

    Args:
        summary: figures of the run.
        info: its choices.
        state: `done`, or why it holds only a part of the texts.
    """
    names = (info.model["name"], info.baseline["name"] if info.baseline else "baseline")
    parts = {"model": info.model, "baseline": info.baseline, "texts": info.texts}
    return render(
        "report.html",
        summary=summary,
        info=info,
        state=state,
        names=names,
        figures=figures_table(summary, names),
        differences=comparison_table(summary),
        change=change_text(summary),
        outlook=outlook_text(summary),
        charts=charts(summary, names=names),
        choices={**parts, "config": info.config.to_dict()},
        library=chart_library(),
        shown_tokens=SHOWN_TOKENS,
    )
