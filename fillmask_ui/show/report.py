"""A run as one HTML page: figures, charts with their tables, worst tokens."""

from pathlib import Path

from fillmask_ui.files import write_text
from fillmask_ui.records import ROLES
from fillmask_ui.runs import Run, compare_runs
from fillmask_ui.runs.compare import compared_info
from fillmask_ui.show import sentences
from fillmask_ui.show.charts import chart_library, charts
from fillmask_ui.show.figures import comparison_table, figures_table
from fillmask_ui.show.render import render


def write_report(
    run: Run, target: Path, baseline: Run | None = None, *, from_cdn: bool = False
) -> None:
    """Write the page of a run, done or not, or of two runs compared.

    It contains the chart library (4.9 MB) and opens offline. With `from_cdn` a browser fetches the
    library from plotly's server. A `DataError` if no text was measured, the runs do not compare, or
    the file cannot be written.
    """
    if baseline is None:
        summary, info = run.summary(), run.info
    else:
        summary, info = compare_runs(baseline, run), compared_info(baseline, run)
    names = tuple(model["name"] for model in (info.baseline, info.model) if model)
    roles = ROLES if info.baseline else ("", "model")
    parts = {roles[0]: info.baseline, roles[1]: info.model, "texts": info.texts}
    page = render(
        "report.html",
        summary=summary,
        info=info,
        state=run.state,
        measured_by=sentences.engines_text(info.engines),
        names=names,
        figures=figures_table(summary, names),
        differences=comparison_table(summary),
        conclusion=sentences.headline_text(summary),
        measured=sentences.measured_text(summary, info),
        change=sentences.change_text(summary),
        outlook=sentences.outlook_text(summary),
        charts=charts(summary, names=names),
        choices={**parts, "config": info.config.to_dict()},
        library=chart_library(from_cdn=from_cdn),
    )
    write_text(page, target)
