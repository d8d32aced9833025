"""`fillmask-ui eval`: the loss of a model over texts, alone or against a baseline."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fillmask_ui.cli.eval_output import print_figures, run_values, show_progress
from fillmask_ui.cli.options import (
    FailOn,
    OneJson,
    file_option,
    given_options,
    option,
    with_options,
)
from fillmask_ui.cli.runs import store
from fillmask_ui.cli.terminal import load, tell
from fillmask_ui.cluster import LOCAL, EngineChoice, open_engine
from fillmask_ui.errors import DataError, OptionError, unknown
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.files import write_text
from fillmask_ui.intervals import Limits
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.options import options_of
from fillmask_ui.runs import Plan, perform, perform_rest
from fillmask_ui.texts import TextChoice

# Which verdicts `--fail-on` turns into exit code 3.
FAILING = {
    "regression": ("REGRESSION",),
    "at-risk": ("AT_RISK", "REGRESSION"),
    "inconclusive": ("INCONCLUSIVE", "AT_RISK", "REGRESSION"),
}


@with_options
def evaluate(
    context: typer.Context,
    *,
    model: ModelChoice,
    baseline: Annotated[
        str | None, option("A second model: paired difference and verdict.", metavar="REF")
    ] = None,
    task: Annotated[str, option("Always fill-mask.")] = "fill-mask",
    texts: TextChoice,
    config: EvaluationConfig,
    limits: Limits,
    fail_on: FailOn = None,
    where: EngineChoice,
    resume: Annotated[str | None, option("Go on with a stopped run.", metavar="RUN")] = None,
    output: Annotated[Path | None, file_option("Write the JSON there.", "--output", "-o")] = None,
    as_json: OneJson = False,
) -> None:
    """Measure the loss of a model over texts: cross-entropy, pseudo-perplexity, and more."""
    if task != "fill-mask":
        raise OptionError(unknown("task", task, ["fill-mask"]))
    if fail_on is not None and fail_on not in FAILING:
        raise OptionError(unknown("verdict to fail on", fail_on, FAILING))
    if fail_on is not None and baseline is None and resume is None:
        raise OptionError("--fail-on needs a --baseline: without one there is no verdict")
    if resume is None:
        second = None if baseline is None else model.second(baseline)
        plan = Plan(model, second, config, texts.source(), limits)
        measure = partial(perform, plan, store(), load)
    else:
        # Where a run is measured is no choice of its own: it may go on elsewhere.
        beside = {"resume", "output", "as_json", "fail_on", *options_of(EngineChoice)}
        if given := given_options(context, beside=beside):
            raise OptionError(
                f"a resumed run has its own choices: leave out {', '.join(given)}, or start a new "
                "run"
            )
        info = store().open(resume).info
        if fail_on is not None and info.baseline is None:
            raise OptionError(
                f"--fail-on needs a baseline, and run {info.name} has none: leave it out"
            )
        measure = partial(perform_rest, resume, store(), load)
    if where.engine != LOCAL:
        tell("starting Ray...")
    with open_engine(where) as engine:
        done = show_progress(measure(engine), quiet=as_json)
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
        print_figures(summary, done.info)
    if fail_on is not None and values.get("verdict") in FAILING[fail_on]:
        tell(f"the verdict is {values['verdict']} (--fail-on {fail_on})")
        raise typer.Exit(3)
