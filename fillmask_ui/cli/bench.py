"""`fillmask-ui bench`: this machine's speed, also of what is usually used instead."""

from dataclasses import replace
from pathlib import Path

from fillmask_ui.bench.contenders import DEFAULT_MODELS, BenchConfig
from fillmask_ui.bench.rounds import Report, run_bench
from fillmask_ui.cli.options import ONE_JSON, file_option, option, with_options
from fillmask_ui.cli.terminal import print_json, print_line, print_table, results, say, tell
from fillmask_ui.errors import OptionError
from fillmask_ui.show.bench import bench_tables, machine_line, markdown, write_bench_page


@with_options
def bench(
    *,
    model: list[str] | None = option(
        None,
        "A model to measure; repeat for several. embedded and embedded:int8 by default.",
        "--model",
        "-m",
        metavar="REF",
    ),
    config: BenchConfig,
    plot: Path | None = file_option(None, "Write charts as an HTML page.", metavar="FILE.html"),
    as_markdown: bool = option(False, "Print Markdown tables.", "--markdown"),
    as_json: bool = ONE_JSON,
) -> None:
    """Measure this machine's speed, also of what is usually used instead."""
    if as_json and as_markdown:
        raise OptionError("--json and --markdown were both given: choose one")
    steps = run_bench(replace(config, models=tuple(model or DEFAULT_MODELS)))
    (report,) = results(steps, Report)
    for note in report.notes:
        tell(note)
    if plot is not None:
        write_bench_page(report, plot)
        tell(f"{plot} ({plot.stat().st_size / 1e6:.1f} MB)")
    if as_json:
        print_json(report.to_dict())
    elif as_markdown:
        say(markdown(report))
    else:
        print_line(machine_line(report))
        for table in bench_tables(report):
            print_table(table)
