"""sweep_table(): what the stored runs of a sweep say, beside the baseline and over seeds.

Figures are those that the runs have stored; changes and verdicts are those of `runs.compare`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation.catalogue import interval_list
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.evaluation.running_summary import few_texts_note
from fillmask_ui.evaluation.summary import Comparison
from fillmask_ui.features.sweep.sweep_file import Sweep, SweepCell
from fillmask_ui.features.sweep.sweep_perform import Step, stored_runs
from fillmask_ui.intervals import Interval
from fillmask_ui.records import Displayed, finite
from fillmask_ui.runs import Run, RunStore, compare
from fillmask_ui.runs.info import DONE, FAILED

MISSING = "missing"  # a state beside those of runs


@dataclass(frozen=True, eq=False)
class Entry:
    """One cell of the table."""

    cell: SweepCell
    state: str  # of its run: done, running, stopped or failed; missing if there is none
    run: Run | None = None  # that counts for it
    progress: str = ""  # of a run that is under way or stopped, such as "34 of 100 texts"
    note: str = ""  # why there is no figure or no verdict, and what else to know
    comparison: Comparison | None = None  # with the baseline

    @property
    def metric(self) -> Metric:
        return self.cell.metric.value.metric

    @property
    def value(self) -> float | None:
        """The figure that the metric names, in the unit of the metric; None until it is done."""
        if self.run is None or self.run.info.result is None:
            return None
        value = self.run.info.result[self.metric.figure_key]
        return math.inf if value is None else float(value)  # JSON has no infinity

    @property
    def interval(self) -> Interval | None:
        ends = self.run and self.run.info.result and self.run.info.result["interval_95"]
        return Interval(ends[0], ends[1], "stored") if ends and None not in ends else None

    @property
    def change(self) -> float | None:
        """Relative change against the baseline; 0.03 is 3 % worse."""
        return self.comparison.relative_change if self.comparison else None

    @property
    def change_interval(self) -> Interval | None:
        """Of the change, paired by text, 95 %."""
        return self.comparison.interval if self.comparison else None

    @property
    def verdict(self) -> str:
        return self.comparison.verdict.label if self.comparison else ""

    def noted(self, note: str) -> Entry:
        return replace(self, note="; ".join(filter(None, (self.note, note))))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; None for what is missing, infinite or undefined."""
        cell, pair = self.cell, self.comparison
        info = self.run.info if self.run else None
        result = (info and info.result) or {"texts": None, "tokens": None}
        return finite(
            {
                "model": cell.model.label,
                "data": cell.texts.label,
                "metric": cell.metric.label,
                "seed": cell.seed,
                "state": self.state,
                "progress": self.progress or None,
                "run": info.name if info else None,
                "figure": self.metric.figure_key,
                "unit": self.metric.unit or None,
                "value": self.value,
                "interval_95": interval_list(self.interval),
                "texts": result["texts"],
                "tokens": result["tokens"],
                "relative_change": self.change,
                "relative_change_interval_95": interval_list(self.change_interval),
                "compared_by": pair.unit if pair else None,
                "verdict": self.verdict or None,
                "note": self.note or None,
                "signature": info.signature if info else None,
            }
        )


@dataclass(frozen=True)
class Spread:
    """One model, data set and metric over several seeds."""

    cell: SweepCell  # of the first seed
    seeds: tuple[int, ...]  # that are measured, two or more
    mean: float  # of the figure
    deviation: float  # sample standard deviation of the figure
    mean_change: float | None = None  # of the relative change; None where a seed has none
    change_deviation: float | None = None

    def to_dict(self) -> dict[str, Any]:
        cell = self.cell
        names = {"model": cell.model.label, "data": cell.texts.label, "metric": cell.metric.label}
        values = {name: value for name, value in vars(self).items() if name != "cell"}
        return finite({**names, **values, "seeds": list(self.seeds)})


@dataclass(frozen=True, eq=False)
class SweepTable(Displayed):
    """All cells of a sweep, those of one model behind each other."""

    sweep: Sweep
    entries: tuple[Entry, ...]

    @property
    def spreads(self) -> tuple[Spread, ...]:
        """Over seeds, of each model, data set and metric that has two or more of them measured."""
        groups: dict[tuple[str, str, str], list[Entry]] = {}
        for entry in self.entries:
            cell = entry.cell
            if cell.seed is not None and entry.value is not None:
                place = cell.model.label, cell.texts.label, cell.metric.label
                groups.setdefault(place, []).append(entry)
        return tuple(_spread(group) for group in groups.values() if len(group) > 1)

    @property
    def versions(self) -> tuple[str, ...]:
        """Of the packages that took part, as `name version`."""
        runs = [entry.run for entry in self.entries if entry.run is not None]
        return tuple(sorted({" ".join(own) for run in runs for own in run.info.versions.items()}))

    def to_dict(self) -> dict[str, Any]:
        """What `fillmask-ui sweep --json` prints."""
        return {
            "sweep": self.sweep.name,
            "baseline": self.sweep.baseline,
            "pass_below": self.sweep.limits.pass_below,
            "risk_below": self.sweep.limits.risk_below,
            "fewest_texts": self.sweep.limits.fewest_texts,
            "cells": [entry.to_dict() for entry in self.entries],
            "over_seeds": [spread.to_dict() for spread in self.spreads],
        }


def _spread(group: Sequence[Entry]) -> Spread:
    values = [entry.value for entry in group if entry.value is not None]
    changes = [entry.change for entry in group if entry.change is not None]
    seeds = tuple(entry.cell.seed for entry in group if entry.cell.seed is not None)
    figures: tuple[float, ...] = (statistics.fmean(values), _deviation(values))
    if len(changes) == len(group):
        figures += statistics.fmean(changes), _deviation(changes)
    return Spread(group[0].cell, seeds, *figures)


def _deviation(values: Sequence[float]) -> float:
    """Sample standard deviation; NaN with a value that is infinite or unknown."""
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan


def sweep_table(
    sweep: Sweep, store: RunStore, last: Mapping[str, Step] | None = None
) -> SweepTable:
    """The table of what is stored, also while another process measures.

    `last`: cell key -> last step of `perform_sweep`; else the newest run of a cell counts.
    """
    stored, last = stored_runs(sweep, store), last or {}
    entries = {
        cell.key: _entry(cell, stored.get(cell.key, ()), last.get(cell.key)) for cell in sweep.cells
    }
    return SweepTable(sweep, tuple(_beside_baseline(sweep, entries)))


def _entry(cell: SweepCell, runs: Sequence[Run], step: Step | None) -> Entry:
    if step is not None:
        runs = [run for run in runs if run.info.name == step.run]
    if not runs:
        return Entry(cell, FAILED, note=step.message) if step else Entry(cell, MISSING)
    run = runs[-1]
    entry = Entry(cell, run.state, run, note=step.message if step else "")
    if step is not None and step.state == FAILED:
        return replace(entry, state=FAILED)
    if entry.state == FAILED:
        return replace(entry, note=run.info.error or entry.note)
    if entry.state == DONE:
        result = run.info.result or {}
        if "effective_texts" in result:  # which runs of earlier versions do not have
            shares = result["effective_texts"], result.get("top_texts_variance_share") or 0.0
            entry = entry.noted(few_texts_note(result["texts"], *shares))
        return entry
    of = "" if run.expected is None else f" of {run.expected:,}"
    return replace(entry, progress=f"{run.row_count:,}{of} texts")


def _beside_baseline(sweep: Sweep, entries: Mapping[str, Entry]) -> Iterator[Entry]:
    for entry in entries.values():
        base = sweep.baseline_of(entry.cell)
        if base is None or entry.run is None or entry.state != DONE:
            yield entry
            continue
        other = entries[base.key]
        if other.run is None or other.state != DONE:
            yield entry.noted("no verdict: the baseline is not measured here")
            continue
        try:
            summary = compare(entry.run, other.run, limits=sweep.limits)
            yield replace(entry, comparison=summary.comparison)
        except FillmaskError as error:
            why = str(error)  # which names the runs
            labels = {entry.run.info.name: entry.cell.model.label}
            labels[other.run.info.name] = base.model.label
            for name in sorted(labels, key=len, reverse=True):  # one may begin with the other
                why = why.replace(name, labels[name])
            yield entry.noted(f"no verdict: {why}")
