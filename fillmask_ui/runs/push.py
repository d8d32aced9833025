"""A stored run in an experiment tracker: figures, intervals, signature, and a row per text.

Login, server, folder and offline mode are the tracker's own: its variables decide, none of ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fillmask_ui.errors import DataError, OptionError, first_line, unknown
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.records import finite
from fillmask_ui.runs.store import Run

PROJECT = "fillmask-ui"  # by default
_TABLE = "rows"  # its name in a tracker; `texts` is a figure


@dataclass(frozen=True)
class Pushed:
    """What a tracker gets of a run."""

    project: str
    name: str  # of the run
    settings: Mapping[str, str]  # the signature, whole and in its parts, and what is no number
    figures: Mapping[str, float]  # of `Summary.to_dict`, `baseline/perplexity` for a nested one
    columns: list[str]
    rows: list[list[Any]]  # one per measured text, a cell a column


def _to_trackio(trackio: Any, pushed: Pushed) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        run = trackio.init(
            project=pushed.project,
            name=pushed.name,
            config=dict(pushed.settings),
            embed=False,
            auto_log_gpu=False,  # what this machine does now is not what the run measured
            auto_log_cpu=False,
        )
        table = trackio.Table(columns=pushed.columns, data=pushed.rows)
        run.log({**pushed.figures, _TABLE: table})
        trackio.finish()
    # It only warns of a server that does not answer, and keeps the run for the next time.
    if failed := [one for one in told if one.category is UserWarning]:
        raise DataError(str(failed[-1].message))


def _to_wandb(wandb: Any, pushed: Pushed) -> None:
    settings = dict(pushed.settings)
    with wandb.init(project=pushed.project, name=pushed.name, config=settings) as run:
        table = wandb.Table(columns=pushed.columns, data=pushed.rows)
        run.log({**pushed.figures, _TABLE: table})


def _to_mlflow(mlflow: Any, pushed: Pushed) -> None:
    mlflow.set_experiment(pushed.project)
    with mlflow.start_run(run_name=pushed.name):
        mlflow.log_params(dict(pushed.settings))
        mlflow.log_metrics(dict(pushed.figures))
        cells = zip(pushed.columns, zip(*pushed.rows, strict=True), strict=True)
        mlflow.log_table({name: [*own] for name, own in cells}, f"{_TABLE}.json")


@dataclass(frozen=True)
class Tracker:
    """A tracker; its name is that of its module and of the extra that installs it."""

    write: Callable[[Any, Pushed], None]  # called with the module
    advice: str  # where it keeps runs, for a push that failed
    # Set where the user has not: by default a server that is gone is asked for minutes.
    variables: Mapping[str, str]


TRACKERS = {
    "trackio": Tracker(
        _to_trackio,
        "TRACKIO_DIR names a folder, TRACKIO_SPACE_ID a Space (log in with: hf auth login)",
        {},
    ),
    "wandb": Tracker(
        _to_wandb,
        "log in with: wandb login; without network set WANDB_MODE=offline",
        {"WANDB_INIT_TIMEOUT": "30"},
    ),
    "mlflow": Tracker(
        _to_mlflow,
        "set MLFLOW_TRACKING_URI to the address of a server; a database on this machine needs "
        "all of MLflow: pip install mlflow",
        {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"},
    ),
}


def push(run: Run, tracker: str, project: str = PROJECT) -> Pushed:
    """Write a run, done or not, as a new run of a tracker's project; what was written is returned.

    Raises:
        OptionError: for an unknown tracker, or a blank project.
        DataError: if the tracker is not installed or does not take the run, or the run has
            measured no text.
    """
    if tracker not in TRACKERS:
        raise OptionError(unknown("tracker", tracker, TRACKERS))
    if not project.strip():
        raise OptionError("the project has no name: give one with --project NAME")
    spec = find_spec(tracker)
    if spec is None or spec.origin is None:  # of a folder such as ./wandb it is None
        raise DataError(f"{tracker} is not installed: pip install 'fillmask-ui[{tracker}]'")
    pushed, own = contents(run, project), TRACKERS[tracker]
    for name, value in own.variables.items():
        os.environ.setdefault(name, value)
    try:
        # Standard output is the command's own.
        with contextlib.redirect_stdout(sys.stderr):
            own.write(import_module(tracker), pushed)
    except Exception as error:  # trackers raise errors of many libraries
        raise DataError(
            f"{tracker} did not take run {pushed.name}, which stays as it is "
            f"({first_line(error, 200)}): {own.advice}"
        ) from error
    return pushed


def contents(run: Run, project: str = PROJECT) -> Pushed:
    """What of a run is pushed; a `DataError` if it has measured no text."""
    info, values = run.info, run.summary().to_dict()
    rows = [_row(row) for row in run.rows() if isinstance(row, EvaluatedText)]
    if not rows:
        raise DataError(f"run {info.name} has measured no text: there is nothing to push")
    parts = (part.partition(":") for part in info.signature.split("|"))
    settings = {_key(name): value for name, _, value in parts}
    settings |= {"signature": info.signature, "created": info.created, "state": run.state}
    if "verdict" in values:
        settings["verdict"] = values["verdict"]
    cells = [list(row.values()) for row in rows]
    return Pushed(project, info.name, settings, dict(_numbers(values)), list(rows[0]), cells)


def _row(row: EvaluatedText) -> dict[str, Any]:
    """The cells of one text; a run measures all its texts with a baseline or none."""
    scores = row.scores
    hardest = int(scores.nll_nats.argmax())
    other = row.other.scores if row.other is not None else row.baseline
    cells = {
        "text_id": row.id,
        "text": row.text,
        "hidden_tokens": len(row.cols),
        "mean_nll_nats": float(scores.nll_nats.mean()),
        "top1_accuracy": float((scores.ranks == 1).mean()),
        "hardest_token": row.tokens[hardest],
        "hardest_nll_nats": float(scores.nll_nats[hardest]),
    }
    if other is not None:
        cells["baseline_mean_nll_nats"] = float(other.nll_nats.mean())
    return dict(finite(cells))


def _numbers(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """All numbers by their path; an interval is two, and what is undefined is left out.

    >>> dict(_numbers({"interval_95": [2.0, 3.1], "by_kind": {"mask": {"rank": 4, "x": None}}}))
    {'interval_95/low': 2.0, 'interval_95/high': 3.1, 'by_kind/mask/rank': 4}
    """
    for key, value in values.items():
        name = above + _key(key)
        if key.endswith("interval_95") and value is not None:
            value = dict(zip(("low", "high"), value, strict=True))  # noqa: PLW2901
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value


def _key(name: str) -> str:
    """A name that every tracker takes."""
    return re.sub(r"[^\w. -]", "_", name)
