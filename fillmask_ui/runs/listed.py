"""Stored runs as a list shows them, and several of one data set beside each other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.evaluation import Summary
from fillmask_ui.runs.compare import compare_runs
from fillmask_ui.runs.info import RunInfo
from fillmask_ui.runs.store import Run

FEWEST_RUNS, MOST_RUNS = 2, 6  # beside each other
SORTS = ("created", "name", "texts", "value", "change", "verdict")


@dataclass(frozen=True)
class ListedRun:
    """What a list says of a run; None for what it does not have (yet)."""

    run: str  # name of its folder
    name: str  # that a user gave it; may be blank
    created: str  # ISO 8601, UTC
    state: str
    source: str  # of the texts
    metric: str
    reference: str | None
    candidate: str  # or the only model
    rows: int  # texts measured or skipped
    value: float | None = None  # of the metric
    interval_95: Sequence[float] | None = None
    relative_change: float | None = None
    relative_change_interval_95: Sequence[float] | None = None
    verdict: str | None = None
    engines: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def listed_run(run: Run) -> ListedRun:
    """A stored run; a `DataError` if its rows cannot be read."""
    info, result = run.info, run.info.result or {}
    return ListedRun(
        info.name,
        info.title,
        info.created,
        run.state,
        texts_label(info.texts),
        info.config.metric.name,
        info.baseline["name"] if info.baseline else None,
        info.model["name"],
        run.row_count,
        result.get(info.config.metric.figure_key),
        result.get("interval_95"),
        result.get("relative_change"),
        result.get("relative_change_interval_95"),
        result.get("verdict"),
        info.engines,
    )


def texts_label(texts: Mapping[str, Any]) -> str:
    """Where the texts of a run come from, in a few words; no folder, which a page must not show.

    >>> texts_label({"kind": "file", "where": "/data/news.csv", "group_column": "topic"})
    'news.csv by topic'
    >>> texts_label({"kind": "dataset", "where": "org/news", "config": "small", "split": "test"})
    'org/news small test'
    """
    kind, where = texts.get("kind", ""), texts.get("where", "")
    label = {"": "from Python", "stdin": "standard input"}.get(kind, kind)
    if kind in ("file", "folder"):
        label = Path(where).name
    elif kind == "dataset":
        label = " ".join(filter(None, (where, texts.get("config"), texts.get("split"))))
    group = texts.get("group_column")
    return f"{label} by {group}" if group else label


def sorted_runs(runs: Iterable[ListedRun], by: str = "created") -> list[ListedRun]:
    """Runs by one of `SORTS`, ascending; those without a value come last."""
    if by not in SORTS:
        raise OptionError(unknown("order", by, SORTS))
    field = {"texts": "rows", "change": "relative_change"}.get(by, by)

    def key(run: ListedRun) -> tuple[bool, Any, str]:
        value = (run.name or run.run).casefold() if by == "name" else getattr(run, field)
        return value is None, 0 if value is None else value, run.run

    return sorted(runs, key=key)


@dataclass(frozen=True)
class RunBeside:
    """One of several runs over the same texts."""

    info: RunInfo
    summary: Summary  # of the run alone
    compared: Summary | None  # with the first run as the reference; None for the first itself

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        metric = self.summary.model.metric_interval
        pair = self.compared.comparison if self.compared else None
        change = pair.interval if pair else None
        return {
            "run": self.info.name,
            "name": self.info.title,
            "model": self.info.model["name"],
            "texts": self.summary.texts,
            "value": self.summary.model.metric,
            "interval_95": metric and [metric.low, metric.high],
            "relative_change": pair and pair.relative_change,
            "relative_change_interval_95": change and [change.low, change.high],
            "verdict": pair and pair.verdict.label,
        }


def runs_beside(runs: Sequence[Run]) -> tuple[RunBeside, ...]:
    """Two to six runs, each against the first, their reference.

    The first model of each counts. An `OptionError` for another number of runs or one twice, a
    `DataError` as of `compare_runs`.
    """
    if not FEWEST_RUNS <= len(runs) <= MOST_RUNS:
        raise OptionError(f"{FEWEST_RUNS} to {MOST_RUNS} runs are compared; there were {len(runs)}")
    if len({run.info.name for run in runs}) < len(runs):
        raise OptionError("a run was named twice: name different runs")
    reference = runs[0]
    rows = [RunBeside(reference.info, reference.summary(), None)]
    for run in runs[1:]:
        compared = compare_runs(reference, run)
        rows.append(RunBeside(run.info, run.summary(), compared))
    return tuple(rows)
