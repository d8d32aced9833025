"""`fillmask-ui eval`: the loss of a model over texts, alone or against a baseline."""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from fillmask_ui.cli import options
from fillmask_ui.cli.runs import print_figures, run_values, store
from fillmask_ui.cli.terminal import count_bar, load, tell, warn
from fillmask_ui.errors import DataError, OptionError, unknown
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.files import write_text
from fillmask_ui.intervals import Limits
from fillmask_ui.models.load import local_files
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.options import options_of
from fillmask_ui.runs import Plan, RunInfo, RunProgress, perform, perform_rest
from fillmask_ui.runs.engines import LOCAL, EngineChoice, open_engine
from fillmask_ui.runs.info import DONE
from fillmask_ui.runs.perform import Pace
from fillmask_ui.show.numbers import duration
from fillmask_ui.show.sentences import speed_text
from fillmask_ui.texts import GroupedTextChoice


@options.with_options
def evaluate(
    context: typer.Context,
    *,
    model: ModelChoice,
    baseline: str | None = options.BASELINE,
    task: str = options.option(
        "fill-mask", "Always fill-mask; accepted for compatibility.", hidden=True
    ),
    texts: GroupedTextChoice,
    config: EvaluationConfig,
    limits: Limits,
    fail_on: str | None = options.FAIL_ON,
    where: EngineChoice,
    resume: str | None = options.option(
        None, "Continue a stopped run with its own choices.", metavar="RUN"
    ),
    output: Path | None = options.file_option(
        None, "Also write the JSON to this file.", "--output", "-o"
    ),
    everything: bool = options.ALL_FIGURES,
    as_json: bool = options.ONE_JSON,
) -> None:
    """Measure the loss of a model over texts: cross-entropy, pseudo-perplexity, and more."""
    if task != "fill-mask":
        raise OptionError(unknown("task", task, ["fill-mask"]))
    reference: object = baseline
    if resume is None:
        baseline_choice = None if baseline is None else model.second(baseline)
        for choice in (model, baseline_choice):
            if choice is not None:
                local_files(choice)  # refuses what names no model before anything is started
        plan = Plan(model, baseline_choice, config, texts.source(), limits)
        measure = partial(perform, plan, store(), load)
    else:
        # A run may be resumed by another engine.
        allowed = {"resume", "output", "as_json", "fail_on", "everything"}
        allowed |= {*options_of(EngineChoice)}
        if flags := options.typed_flags(context, ignored=allowed):
            raise OptionError(
                f"a resumed run keeps its own options: leave out {', '.join(flags)}, or start a "
                "new run"
            )
        reference = store().open(resume).info.baseline
        measure = partial(perform_rest, resume, store(), load)
    options.check_fail_on(fail_on, reference, "--baseline")
    if where.engine != LOCAL:
        tell("starting Ray...")
    with open_engine(where) as engine:
        done = _performed(measure(engine), quiet=as_json)
    summary = done.running.summary()
    values = run_values(summary, done.info)
    text = json.dumps(values, ensure_ascii=False)
    if output is not None:  # first, as standard output may be closed or full
        try:
            write_text(f"{text}\n", output)
        except DataError as error:
            raise DataError(f"{error}; the run is kept as {done.info.name}") from error
    if as_json:
        typer.echo(text)
    else:
        print_figures(summary, done.info, everything=everything)
        if not everything:
            tell(f"all figures: fillmask-ui runs show {done.info.name} --all")
    if fail_on is not None and values.get("verdict") in options.FAILING[fail_on]:
        tell(f"the verdict is {values['verdict']} (--fail-on {fail_on})")
        raise typer.Exit(3)


def _performed(steps: Generator[RunProgress], *, quiet: bool) -> RunProgress:
    """The end of a run, drawn while it is performed (`quiet`: not on standard output)."""
    with closing(steps):
        step = next(steps)
        if step.dropped_bytes:
            tell(f"dropped a half-written last line of {step.dropped_bytes} bytes")
        if step.info.state == DONE:
            tell(f"run {step.info.name} is done already")
        else:
            if not quiet:
                _print_head(step.info, step.expected)
            tell(f"run {step.info.name}")
        try:
            with run_bar(step, "texts") as show:
                for step in steps:
                    show(step)
        except KeyboardInterrupt:
            command = f"fillmask-ui eval --resume {step.info.name}"
            tell(f"\nstopped; {step.running.seen} texts are kept: {command}")
            raise
    return step


def _print_head(info: RunInfo, expected: int | None) -> None:
    """What is evaluated, as far as it matters while one waits; on standard error."""
    tell(f"Model: {_model_text(info.model)}")
    if info.baseline:
        tell(f"Reference: {_model_text(info.baseline)}")
    tell("Task: fill-mask")
    tell(f"Device: {info.model['device']}")
    tell(f"Dataset: {info.texts.get('where') or info.texts.get('kind', '')}")
    tell(f"Samples: {'all' if expected is None else f'{expected:,}'}")
    tell(f"Metric: {info.config.signature}")


def _model_text(model: Any) -> str:
    return f"{model['name']} ({model['architecture']}, {model['runtime']}, {model['precision']})"


@contextmanager
def run_bar(first: RunProgress, description: str) -> Iterator[Callable[[RunProgress], None]]:
    """A function to call with each progress of one run after the `first`; in a pipe lines."""
    pace, start, warned = Pace(first), int(first.through or 0), 0

    def show(step: RunProgress) -> None:
        nonlocal warned
        for warning in step.warnings[warned:]:
            warn(warning)
        warned = len(step.warnings)
        if step.through is None:
            return
        pace.add(step)
        running, done = step.running, int(step.through)
        mean = f"mean NLL {running.mean_nll_nats:.4f} nats" if running.texts else ""
        speed = speed_text(step.info, step.workers, pace.tokens_per_second)
        status = ", ".join(text for text in (speed, mean) if text)
        counted = f"{done:,} of {step.expected:,} texts" if step.expected else f"{done:,} texts"
        left = "" if pace.seconds_left is None else f"{duration(pace.seconds_left)} left"
        line = ", ".join(text for text in (counted, status, left) if text)
        bar(line, completed=done, total=step.expected, status=status)

    with count_bar(description=description, completed=start, total=first.expected) as bar:
        yield show
