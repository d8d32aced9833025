"""A stored run in an experiment tracker: figures, intervals, signature, and a row per text.

Login, server, folder and offline mode are the tracker's own: its variables decide.
"""

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

from fillmask_ui.errors import DataError, OptionError, first_line, how_to_install, unknown
from fillmask_ui.evaluation import EvaluatedText
from fillmask_ui.records import finite
from fillmask_ui.runs.store import Run

_COLUMNS = ("text_id", "text", "hidden_tokens", "mean_nll_nats", "top1_accuracy", "hardest_token")
_TABLE = "rows"  # `texts` is a figure


@dataclass(frozen=True)
class Pushed:
    """What a tracker gets of a run."""

    name: str  # of the run
    settings: dict[str, str]  # the signature, whole and in parts, and what else is no number
    figures: dict[str, float]  # of `Summary.to_dict`, `reference/perplexity` for a nested one
    columns: list[str]
    rows: list[list[Any]]  # one per measured text, a cell a column


def _to_trackio(trackio: Any, run: Pushed, project: str) -> None:
    # What this machine does now is not what the run measured.
    quiet: dict[str, Any] = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        tracked = trackio.init(project=project, name=run.name, config=run.settings, **quiet)
        tracked.log({**run.figures, _TABLE: trackio.Table(columns=run.columns, data=run.rows)})
        trackio.finish()
    # It only warns of a server that does not answer, and keeps the run for the next time.
    if failures := [warning for warning in caught if warning.category is UserWarning]:
        raise DataError(str(failures[-1].message))


def _to_wandb(wandb: Any, run: Pushed, project: str) -> None:
    with wandb.init(project=project, name=run.name, config=run.settings) as tracked:
        tracked.log({**run.figures, _TABLE: wandb.Table(columns=run.columns, data=run.rows)})


def _to_mlflow(mlflow: Any, run: Pushed, project: str) -> None:
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=run.name):
        mlflow.log_params(run.settings)
        mlflow.log_metrics(run.figures)
        columns = {name: [row[index] for row in run.rows] for index, name in enumerate(run.columns)}
        mlflow.log_table(columns, f"{_TABLE}.json")


@dataclass(frozen=True)
class Tracker:
    """A tracker, named as its module and as the extra that installs it."""

    write: Callable[[Any, Pushed, str], None]  # called with the module and the project
    advice: str  # for a push that failed
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


def push(run: Run, tracker: str, project: str = "fillmask-ui") -> Pushed:
    """Write a run, done or not, as a new run of a tracker's project; what was written is returned.

    A `DataError` if nothing was measured, or the tracker is missing or does not take the run.
    """
    if tracker not in TRACKERS:
        raise OptionError(unknown("tracker", tracker, TRACKERS))
    if not project.strip():
        raise OptionError("the project has no name: give one with --project NAME")
    spec, destination = find_spec(tracker), TRACKERS[tracker]
    if spec is None or spec.origin is None:  # as of a folder such as ./wandb
        raise DataError(f"{tracker} is not installed: {how_to_install(tracker)}")
    pushed = contents(run)
    for name, value in destination.variables.items():
        os.environ.setdefault(name, value)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the command's own is for its result
            destination.write(import_module(tracker), pushed, project)
    except Exception as error:  # trackers raise errors of many libraries
        raise DataError(
            f"{tracker} did not take run {pushed.name}, which stays as it is "
            f"({first_line(error, 200)}): {destination.advice}"
        ) from error
    return pushed


def contents(run: Run) -> Pushed:
    """What of a run is pushed; a `DataError` if it has measured no text."""
    info, values = run.info, run.summary().to_dict()
    settings = {}
    for part in info.signature.split("|"):
        name, _, value = part.partition(":")
        settings[_key(name)] = value
    settings |= {"signature": info.signature, "created": info.created, "state": run.state}
    if "verdict" in values:
        settings["verdict"] = values["verdict"]
    columns = list(_COLUMNS)
    if info.baseline:
        columns.append("reference_mean_nll_nats")
    rows = [_cells(row) for row in run.rows() if isinstance(row, EvaluatedText)]
    return Pushed(info.name, settings, dict(_numbers(values)), columns, rows)


def _cells(row: EvaluatedText) -> list[Any]:
    """The columns of one text."""
    nll_nats, right = row.scores.nll_nats, row.scores.ranks == 1
    cells: list[Any] = [row.id, row.text, len(right), float(nll_nats.mean()), float(right.mean())]
    cells.append(row.tokens[int(nll_nats.argmax())])
    reference = row.reference
    if row.reference_text is not None:
        reference = row.reference_text.scores
    if reference is not None:
        cells.append(float(reference.nll_nats.mean()))
    return list(finite(cells))


def _numbers(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """All numbers by their path; an interval is two, and what is undefined is left out.

    >>> dict(_numbers({"interval_95": [2.0, 3.1], "by_kind": {"mask": {"rank": 4, "x": None}}}))
    {'interval_95/low': 2.0, 'interval_95/high': 3.1, 'by_kind/mask/rank': 4}
    """
    for key, value in values.items():
        name = above + _key(key)
        if isinstance(value, list) and key.endswith("interval_95"):
            yield from zip((f"{name}/low", f"{name}/high"), value, strict=True)
        elif isinstance(value, Mapping):
            yield from _numbers(value, f"{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value


def _key(name: str) -> str:
    """A name that every tracker takes."""
    return re.sub(r"[^\w. -]", "_", name)
