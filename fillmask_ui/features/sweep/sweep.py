"""Sweeps: a file in TOML whose keys are options of `eval`, a stored run for each cell, a table."""

import json
import sys
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby, product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from fillmask_ui.errors import DataError, FillmaskError, OptionError, opening, unknown
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.alarms import UNCHANGED_ALARM
from fillmask_ui.intervals import Limits
from fillmask_ui.models.model_choice import ModelChoice, parse_reference
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.options import all_options, check_options, configured
from fillmask_ui.records import finite
from fillmask_ui.runs import (
    Engine,
    Plan,
    Run,
    RunProgress,
    RunStore,
    compare_runs,
    perform,
    perform_rest,
)
from fillmask_ui.runs.info import DONE, FAILED
from fillmask_ui.runs.perform import Load
from fillmask_ui.schema import from_values
from fillmask_ui.texts import GroupedTextChoice, TextChoice

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LABELS = ("model", "data", "metric")
_FIGURES = ("interval_95", "texts", "tokens")
_CHANGES = ("relative_change", "relative_change_interval_95", "verdict")
_LATER = ("value", *_FIGURES, *_CHANGES, "compared_by", "note", "run", "signature")


@dataclass(frozen=True, eq=False)
class SweepCell:
    """One evaluation of a sweep."""

    labels: Mapping[str, Any]  # of `model`, `data` and `metric`, and the `seed`, None without one
    plan: Plan
    key: str  # all that its numbers depend on, and no label: finds its stored run

    @property
    def name(self) -> str:
        return ", ".join(str(label) for label in self.labels.values() if label is not None)


@dataclass(frozen=True)
class Sweep:
    """All evaluations of a sweep, those of one model in a row."""

    name: str
    cells: tuple[SweepCell, ...]
    baseline: str | None  # label of a model
    limits: Limits  # borders of the verdict


_Entries = tuple[str | dict[str, Any], ...]  # a table each, or the value of its main key alone


@dataclass(frozen=True)
class _SweepFile:
    """The keys of a file, beside those of `Limits`."""

    models: _Entries
    data: _Entries
    metrics: _Entries
    seeds: tuple[int, ...] = (42,)  # of the masks
    baseline: str | None = None


def read_sweep(path: Path) -> Sweep:
    """The sweep of a file; a `FillmaskError` for what is wrong with it, with its position."""
    with opening("a sweep, in TOML", path):
        values = tomllib.loads(path.read_text("utf-8-sig"))
    return sweep_of(values, path.stem)


def sweep_of(values: Mapping[str, Any], name: str) -> Sweep:
    """The sweep that the values of a file describe."""
    keys = [key.name for key in fields(_SweepFile)]
    limits = _configured(Limits, {key: values[key] for key in values if key not in keys}, keys)
    file = from_values(_SweepFile, values)
    models = _labelled("models", file.models, "model", ModelChoice)
    data = _labelled("data", file.data, "dataset", GroupedTextChoice)
    metrics = _labelled("metrics", file.metrics, "metric", EvaluationConfig)
    if file.baseline is not None and file.baseline not in models:
        raise OptionError(f"{unknown('baseline', file.baseline, models)}: name one of the models")
    cells = []
    for model, texts, metric in product(models, data, metrics):
        source, path = data[texts], parse_reference(models[model].reference).path
        hashes = _sha256(path), _sha256(Path(source.where) if source.where else None)
        for seed in dict.fromkeys(file.seeds) if metrics[metric].metric.seeded else (None,):
            config = metrics[metric] if seed is None else replace(metrics[metric], seed=seed)
            choices = asdict(models[model]), str(source), config.signature, config.batch_tokens
            labels = {"model": model, "data": texts, "metric": metric, "seed": seed}
            plan = Plan(models[model], None, config, source)
            cells.append(SweepCell(labels, plan, json.dumps([*choices, *hashes])))
    if not cells:
        raise OptionError("models, data, metrics and seeds must have one entry or more each")
    return Sweep(name, tuple(cells), file.baseline, limits)


def _labelled(key: str, entries: _Entries, main: str, kind: Any) -> dict[str, Any]:
    """The configurations that the entries of a list make, by their labels."""
    labelled: dict[str, Any] = {}
    for number, entry in enumerate(entries, start=1):
        values = {main: entry} if isinstance(entry, str) else {**entry}
        try:
            label = str(values.pop("label", values.get(main, "default")))
            if label in labelled:
                raise OptionError(f"{label!r} is the name of another entry, too: give it a label")
            choice = labelled[label] = _configured(kind, values)
            check_options(choice)
            if isinstance(choice, ModelChoice):
                parse_reference(choice.reference)  # a slip shows before other models are measured
            elif isinstance(choice, TextChoice):
                labelled[label] = source = choice.source()
                if source.kind == "file" and not Path(source.where).is_file():
                    raise DataError(f"there is no file {source.where}")
        except FillmaskError as error:
            raise type(error)(f"{key}, entry {number}: {error}") from error
    return labelled


def _configured(kind: Any, values: Mapping[str, Any], also: Collection[str] = ()) -> Any:
    """A configuration of options by their names in the shell; seeds are listed once for all."""
    named = [(flag, option.name) for option in all_options(kind) for flag in option.flags]
    names = {flag[2:]: name for flag, name in named if flag[:2] == "--" and flag != "--seed"}
    for key in values:
        if key not in names:
            raise OptionError(unknown("key", key, {*names, *also}))
    return configured(kind, {names[key]: value for key, value in values.items()})


def _sha256(path: Path | None) -> str:
    """The hash of a file and what lies beside it under its name, or of a folder; else blank."""
    if path is None or not path.exists():
        return ""
    paths = path.rglob("*") if path.is_dir() else path.parent.iterdir()
    files = (file for file in paths if str(file).startswith(str(path)))
    return weights_sha256(file for file in files if file.is_file())


def measure_cell(
    cell: SweepCell, run: Run | None, store: RunStore, load: Load, engine: Engine | None = None
) -> Generator[RunProgress]:
    """Measure what the stored run of a cell lacks, or all without one; nothing if it is done."""
    if run is None:
        yield from perform(cell.plan, store, load, engine, cell={"key": cell.key})
    elif run.info.state != DONE:
        yield from perform_rest(run.info.name, store, load, engine)


def stored_runs(store: RunStore) -> dict[str, Run]:
    """The newest stored run of each cell of any sweep, by the key of the cell."""
    runs = {}
    for name in store.names():
        with suppress(FillmaskError):  # a broken one is passed over
            run = store.open(name)
            runs[run.info.cell.get("key", "")] = run
    return runs


def sweep_table(
    sweep: Sweep, store: RunStore, failures: Mapping[SweepCell, str] | None = None
) -> dict[str, Any]:
    """What `fillmask-ui sweep --json` prints, also while another process measures."""
    stored, cells = stored_runs(store), []
    keys = {tuple(cell.labels.values()): cell.key for cell in sweep.cells}
    for cell in sweep.cells:
        model = cell.labels["model"]
        baseline_labels = {**cell.labels, "model": sweep.baseline}
        baseline_key = keys.get(tuple(baseline_labels.values()), "")
        run, baseline = stored.get(cell.key), stored.get(baseline_key)
        values = _figures(cell, run)
        if failures and cell in failures:
            values |= {"state": FAILED, "note": failures[cell]}
        elif run and values["state"] == DONE and sweep.baseline not in (None, model):
            values |= _change(sweep, run, baseline)
        cells.append(finite(values))
    named = {"sweep": sweep.name, "baseline": sweep.baseline, **asdict(sweep.limits)}
    return {**named, "cells": cells, "over_seeds": list(_over_seeds(cells))}


def _figures(cell: SweepCell, run: Run | None) -> dict[str, Any]:
    """What a run has stored; null for what is not there."""
    metric = cell.plan.config.metric
    values = {**cell.labels, "state": "missing", "figure": metric.figure_key}
    values |= {"unit": metric.unit or None, **dict.fromkeys(_LATER)}
    if run is None:
        return values
    info, result = run.info, run.info.result
    values |= {"state": run.state, "run": info.name, "signature": info.signature}
    values |= {"note": info.error, "texts": run.row_count}
    if result is not None:
        values |= {key: result[key] for key in _FIGURES}
        alarms = [alarm for alarm in result["alarms"] if alarm != UNCHANGED_ALARM]  # of a metric
        values |= {"value": result[metric.figure_key], "note": "; ".join(alarms) or None}
    return values


def _change(sweep: Sweep, run: Run, baseline: Run | None) -> dict[str, Any]:
    """Against the baseline, paired by text; or why there is no verdict."""
    if baseline is None or baseline.state != DONE:
        return {"note": "no verdict: the baseline is not measured here"}
    try:
        comparison = compare_runs(baseline, run, limits=sweep.limits).to_dict()
    except FillmaskError as error:
        return {"note": f"no verdict: {error}"}
    return {key: comparison[key] for key in _CHANGES} | {
        "compared_by": comparison["comparison"]["unit"]
    }


def _over_seeds(cells: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Mean and sample standard deviation of each model, data set and metric with several seeds."""
    for labels, group in groupby(cells, key=lambda cell: [cell[key] for key in _LABELS]):
        measured = [cell for cell in group if cell["value"] is not None]
        if len(measured) > 1:
            spread = dict(zip(_LABELS, labels, strict=True))
            spread["seeds"] = [cell["seed"] for cell in measured]
            for key, name in (("value", ""), ("relative_change", "change_")):
                values = [cell[key] for cell in measured]
                figures = (None, None) if None in values else (fmean(values), stdev(values))
                spread[f"{name}mean"], spread[f"{name}deviation"] = figures
            yield spread
