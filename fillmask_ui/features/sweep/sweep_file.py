"""A sweep: models, texts, metrics and seeds, read from a file in TOML before any work is done.

The keys of its entries are the options of `fillmask-ui eval`, derived from the same declarations.
"""

import itertools
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from fillmask_ui.errors import DataError, FillmaskError, OptionError, opening, unknown
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import check_seed
from fillmask_ui.models.model_choice import ModelChoice, parse_reference
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.options import Option, check_options, configured, own_options
from fillmask_ui.runs import Plan
from fillmask_ui.schema import from_values
from fillmask_ui.texts import TextChoice, TextSource
from fillmask_ui.texts.files import text_files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
        """`RunInfo.cell` of its run; with the hash of text files, by which a change shows."""
        label = {"sweep": self.sweep, "key": self.key}
        source = self.texts.value
        with suppress(OSError, DataError):  # the evaluation will say it
            if files := text_files_of(source):
                label["texts_sha256"] = weights_sha256(files)
        return label


def text_files_of(source: TextSource) -> list[Path]:
    """The files that texts come from; a `DataError` for a folder without any."""
    if source.kind == "folder":
        return text_files(source.where)
    return [Path(source.where)] if source.kind == "file" else []


@dataclass(frozen=True)
class Sweep:
    """Every choice of a sweep."""

    name: str  # stored runs belong to the sweep of this name
    models: tuple[Labelled[ModelChoice], ...]
    texts: tuple[Labelled[TextSource], ...]
    metrics: tuple[Labelled[EvaluationConfig], ...]
    seeds: tuple[int, ...] = (42,)  # of the masks; a metric that draws nothing is measured once
    baseline: str | None = None  # label of a model; None without one
    limits: Limits = field(default_factory=Limits)  # borders of the verdict

    @cached_property
    def cells(self) -> tuple[SweepCell, ...]:
        """All evaluations, those of one model in a row."""
        found = []
        for model, texts, metric in itertools.product(self.models, self.texts, self.metrics):
            for seed in self.seeds if metric.value.metric.seeded else (None,):
                value = metric.value if seed is None else replace(metric.value, seed=seed)
                own = Labelled(metric.label, value)
                found.append(SweepCell(self.name, model, texts, own, seed))
        return tuple(found)

    def baseline_of(self, cell: SweepCell) -> SweepCell | None:
        """The cell that it is measured by; None without a baseline, and for its own cells."""
        if self.baseline is None or cell.model.label == self.baseline:
            return None
        (model,) = (model for model in self.models if model.label == self.baseline)
        return replace(cell, model=model)


@dataclass(frozen=True)
class _SweepFile:
    """The keys of a file, beside those of `Limits`."""

    models: tuple[str | dict[str, Any], ...]
    data: tuple[str | dict[str, Any], ...]
    metrics: tuple[str | dict[str, Any], ...]
    name: str | None = None
    baseline: str | None = None
    seeds: tuple[int, ...] = (42,)


def read_sweep(path: Path) -> Sweep:
    """The sweep of a file; a `FillmaskError` for what is wrong with it, with its place."""
    with opening("a sweep, in TOML", path):
        values = tomllib.loads(path.read_text("utf-8-sig"))
    return sweep_of(values, path.stem, str(path))


def sweep_of(values: Mapping[str, Any], name: str, place: str = "the sweep") -> Sweep:
    """The sweep of a file's `values`; `name` if they give none, `place` in messages.

    Raises:
        FillmaskError: for what is wrong, with its place.

    >>> parts = {"models": ["embedded"], "data": ["embedded"], "metrics": ["uniform"]}
    >>> [cell.name for cell in sweep_of({**parts, "seeds": [1, 2]}, "mine").cells]
    ['embedded, embedded, uniform, seed 1', 'embedded, embedded, uniform, seed 2']
    """
    limits = {name for own in own_options(Limits) for name in _names(own)}
    with _at(place):
        _check_names(values, {own.name for own in fields(_SweepFile)} | limits)
        file = from_values(_SweepFile, values)
        if len({*file.seeds}) < max(1, len(file.seeds)):
            raise OptionError(f"seeds must be one or more, each once; they were {file.seeds}")
        for seed in file.seeds:
            check_seed(seed)
        models = _labelled(file.models, "models", "model", _model)
        return Sweep(
            name=file.name or name,
            models=models,
            texts=_labelled(file.data, "data", "dataset", _texts),
            metrics=_labelled(file.metrics, "metrics", "metric", _metric),
            seeds=file.seeds,
            baseline=None if file.baseline is None else _baseline(models, file.baseline),
            limits=_made(Limits, {k: v for k, v in values.items() if _dashed(k) in limits}),
        )


def _labelled(
    entries: Sequence[str | dict[str, Any]],
    key: str,
    main: str,
    make: Callable[[dict[str, Any]], Value],
) -> tuple[Labelled[Value], ...]:
    """The entries of a list: each is a table, or the value of its `main` key alone."""
    if not entries:
        raise OptionError(f"{key} must have one entry or more ([[{key}]])")
    found: list[Labelled[Value]] = []
    for number, entry in enumerate(entries, start=1):
        given = {main: entry} if isinstance(entry, str) else entry
        with _at(f"{key}, entry {number}"):
            if main not in given:
                raise OptionError(f"no {main}: add {main} = ...")
            value = make({name: one for name, one in given.items() if name != "label"})
            label = str(given.get("label", given[main]))
            for earlier, known in enumerate(found, start=1):
                if known.value == value:
                    raise OptionError(f"it asks for the same as entry {earlier}: leave one out")
                if known.label == label:
                    raise OptionError(
                        f"it is called {label!r}, and so is entry {earlier}: give it a label"
                    )
        found.append(Labelled(label, value))
    return tuple(found)


def _model(values: dict[str, Any]) -> ModelChoice:
    choice: ModelChoice = _made(ModelChoice, values)
    for reference in filter(None, (choice.reference, choice.tokenizer)):
        parse_reference(reference)
    return choice


def _texts(values: dict[str, Any]) -> TextSource:
    source: TextSource = _made(TextChoice, values).source()
    if source.kind == "stdin":
        raise OptionError("standard input can be read only once: give the texts as a file")
    for file in text_files_of(source):
        if not file.is_file():
            raise DataError(f"there is no file {file}")
    return source


def _metric(values: dict[str, Any]) -> EvaluationConfig:
    if "seed" in values:
        raise OptionError("it has a seed: list them once, for all metrics (seeds = [1, 2])")
    config: EvaluationConfig = _made(EvaluationConfig, values)
    return config


def _baseline(models: Sequence[Labelled[ModelChoice]], named: str) -> str:
    """The label of the model that is meant, by its label or its reference."""
    labels = [model.label for model in models]
    referred = [model.label for model in models if model.value.reference == named]
    if named not in labels and len(referred) != 1:
        raise OptionError(f"{unknown('baseline', named, labels)}: name one of the models")
    return named if named in labels else referred[0]


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    """A configuration of the options that an entry gives by their names in the shell."""
    known = {name: own for own in own_options(kind) for name in _names(own)}
    _check_names(values, {*known, "label"})
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        own = known[_dashed(name)]
        whole = type(value) is int and own.kind is float
        chosen[own.name] = float(value) if whole else value
    made = configured(kind, chosen)
    check_options(made)
    return made


def _check_names(given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if _dashed(name) not in known:
            raise OptionError(unknown("key", name, known))


def _names(own: Option) -> list[str]:
    """The names of an option in the shell, without the dashes."""
    return [flag.removeprefix("--") for flag in own.flags if flag.startswith("--")]


def _dashed(name: str) -> str:
    """`pass_below` as `pass-below`: both are taken."""
    return name.replace("_", "-")


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Put the place before what is wrong inside."""
    try:
        yield
    except FillmaskError as error:
        raise type(error)(f"{place}: {error}") from error
