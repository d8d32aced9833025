"""A sweep: which models are measured on which texts, by which metrics, with which seeds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.intervals import Limits
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.runs import Plan
from fillmask_ui.texts import TextSource
from fillmask_ui.texts.files import text_files

Value = TypeVar("Value")


@dataclass(frozen=True)
class Labelled(Generic[Value]):
    """An entry of a sweep file, and what its table calls it."""

    label: str
    value: Value


@dataclass(frozen=True)
class SweepCell:
    """One evaluation of a sweep."""

    sweep: str  # name of the sweep
    model: Labelled[ModelChoice]
    texts: Labelled[TextSource]
    metric: Labelled[EvaluationConfig]  # with the seed of this cell
    seed: int | None  # None for a metric that draws nothing

    @property
    def name(self) -> str:
        """For people."""
        seed = [] if self.seed is None else [f"seed {self.seed}"]
        return ", ".join([self.model.label, self.texts.label, self.metric.label, *seed])

    @property
    def plan(self) -> Plan:
        return Plan(self.model.value, config=self.metric.value, source=self.texts.value)

    @property
    def key(self) -> str:
        """Every choice that its numbers depend on, and no label: finds its run among the stored.

        >>> from fillmask_ui.evaluation import EvaluationConfig
        >>> model, texts = ModelChoice(threads=2), TextSource(samples=9)
        >>> metric = Labelled("m", EvaluationConfig("suffix", batch_tokens=64))
        >>> SweepCell("s", Labelled("a", model), Labelled("b", texts), metric, 42).key
        'model:embedded|{"threads": 2}|texts:embedded|samples:9|...|metric:suffix|...|batch:64'
        """
        model, config = self.model.value, self.metric.value
        parts = [f"model:{model.reference}"]
        if given := model.given():
            parts.append(json.dumps(given, sort_keys=True))
        parts += [str(self.texts.value), config.signature]
        if config.batch_tokens is not None:
            parts.append(f"batch:{config.batch_tokens}")
        return "|".join(parts)

    @property
    def stored_label(self) -> dict[str, Any]:
        """`RunInfo.cell` of its run; of files also their hash, by which a change of them shows."""
        label = {"sweep": self.sweep, "key": self.key}
        source = self.texts.value
        # What is gone or locked by now, its evaluation will say.
        with suppress(OSError, DataError):
            if files := text_files_of(source):
                label["texts_sha256"] = weights_sha256(files)
        return label


def text_files_of(source: TextSource) -> list[Path]:
    """The files that texts come from, if they do; a `DataError` for a folder without any."""
    if source.kind == "folder":
        return text_files(source.where)
    return [Path(source.where)] if source.kind == "file" else []


# More nobody reads in a table.
MOST_CELLS = 10_000


@dataclass(frozen=True)
class Sweep:
    """Every choice of a sweep; `read_sweep` makes one of a file.

    Raises:
        OptionError: for more than `MOST_CELLS` evaluations.
    """

    name: str  # stored runs belong to the sweep of this name
    models: tuple[Labelled[ModelChoice], ...]
    texts: tuple[Labelled[TextSource], ...]
    metrics: tuple[Labelled[EvaluationConfig], ...]
    seeds: tuple[int, ...] = (42,)  # of the masks; a metric that draws nothing is measured once
    baseline: str | None = None  # label of a model; None without one
    limits: Limits = field(default_factory=Limits)  # borders of the verdict

    def __post_init__(self) -> None:
        drawn = [len(self.seeds) if own.value.scheme.seeded else 1 for own in self.metrics]
        if (count := len(self.models) * len(self.texts) * sum(drawn)) > MOST_CELLS:
            raise OptionError(
                f"the sweep {self.name} has {count:,} evaluations, {MOST_CELLS:,} at most are "
                "measured together: give it fewer seeds, or make several of it"
            )

    @cached_property
    def cells(self) -> tuple[SweepCell, ...]:
        """All evaluations, those of one model behind each other."""
        return tuple(self._cells())

    def _cells(self) -> Iterator[SweepCell]:
        for model, texts, metric in itertools.product(self.models, self.texts, self.metrics):
            if not metric.value.scheme.seeded:
                yield SweepCell(self.name, model, texts, metric, None)
                continue
            for seed in self.seeds:
                seeded = Labelled(metric.label, replace(metric.value, seed=seed))
                yield SweepCell(self.name, model, texts, seeded, seed)

    def baseline_of(self, cell: SweepCell) -> SweepCell | None:
        """The cell that it is measured by; None without a baseline, and for its own cells."""
        if self.baseline is None or cell.model.label == self.baseline:
            return None
        (model,) = (model for model in self.models if model.label == self.baseline)
        return replace(cell, model=model)
