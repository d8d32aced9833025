"""read_sweep(): a sweep file, in TOML, checked before any work is done.

The keys of its entries are the options of `fillmask-ui eval`, derived from the same declarations.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from fillmask_ui.errors import DataError, FillmaskError, OptionError, opening, unknown
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import check_seed
from fillmask_ui.models.model_choice import ModelChoice, parse_reference
from fillmask_ui.options import OwnOption, check_options, configured, kind_of, own_options
from fillmask_ui.schema import from_values
from fillmask_ui.sweeps.plan import Labelled, Sweep, text_files_of
from fillmask_ui.texts import TextChoice, TextSource

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value = TypeVar("Value")
_MOST_BYTES = 10_000_000


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
    """The sweep of a file.

    Raises:
        DataError: if the file cannot be read.
        FillmaskError: for what is wrong with what it says, with its place.
    """
    with opening("a sweep, in TOML", path), path.open("rb") as file:
        values = tomllib.loads(file.read(_MOST_BYTES).decode("utf-8-sig"))
    return sweep_of(values, path.stem, str(path))


def sweep_of(values: Mapping[str, Any], name: str, place: str = "the sweep") -> Sweep:
    """The sweep of what a sweep file says.

    Args:
        values: the keys of the file.
        name: of the sweep, if they do not give one.
        place: what messages call it.

    Raises:
        FillmaskError: for what is wrong, with its place.

    >>> parts = {"models": ["embedded"], "data": ["embedded"], "metrics": ["uniform"]}
    >>> [cell.name for cell in sweep_of({**parts, "seeds": [1, 2]}, "mine").cells]
    ['embedded, embedded, uniform, seed 1', 'embedded, embedded, uniform, seed 2']
    """
    limits = {name for own in own_options(Limits) for name in _names(own)}
    _check_names(values, {own.name for own in fields(_SweepFile)} | limits, place)
    file = from_values(_SweepFile, values, place)
    if len({*file.seeds}) < max(1, len(file.seeds)):
        raise OptionError(f"{place}: seeds must be one or more, each once; they were {file.seeds}")
    with _at(place):
        for seed in file.seeds:
            check_seed(seed)
    sweep = Sweep(
        name=file.name or name,
        models=_labelled(file.models, "models", "model", _model, place),
        texts=_labelled(file.data, "data", "dataset", _texts, place),
        metrics=_labelled(file.metrics, "metrics", "metric", _metric, place),
        seeds=file.seeds,
        limits=_made(Limits, {k: v for k, v in values.items() if _dashed(k) in limits}, place),
    )
    if file.baseline is None:
        return sweep
    return replace(sweep, baseline=_baseline(sweep, file.baseline, place))


def _labelled(
    entries: Sequence[str | dict[str, Any]],
    key: str,
    main: str,
    make: Callable[[dict[str, Any], str], Value],
    place: str,
) -> tuple[Labelled[Value], ...]:
    """The entries of a list, each a table, or what stands for the one with just its `main` key."""
    if not entries:
        raise OptionError(f"{place}: {key} must have one entry or more ([[{key}]])")
    found: list[Labelled[Value]] = []
    for number, entry in enumerate(entries, start=1):
        own = f"{place}: {key}, entry {number}"
        given = {main: entry} if isinstance(entry, str) else entry
        if main not in given:
            raise OptionError(f"{own} has no {main}: add {main} = ...")
        value = make({name: one for name, one in given.items() if name != "label"}, own)
        label = str(given.get("label", given[main]))
        for earlier, known in enumerate(found, start=1):
            if known.value == value:
                raise OptionError(f"{own} asks for the same as entry {earlier}: leave one out")
            if known.label == label:
                raise OptionError(
                    f"{own} is called {label!r}, and so is entry {earlier}: give it a label"
                )
        found.append(Labelled(label, value))
    return tuple(found)


def _model(values: dict[str, Any], place: str) -> ModelChoice:
    choice: ModelChoice = _made(ModelChoice, values, place)
    with _at(place):
        parse_reference(choice.reference)
        if choice.tokenizer is not None:
            parse_reference(choice.tokenizer)
    return choice


def _texts(values: dict[str, Any], place: str) -> TextSource:
    with _at(place):
        source = _made(TextChoice, values, "").source()
        if source.kind == "stdin":
            raise OptionError("standard input can be read only once: give the texts as a file")
        for file in text_files_of(source):
            if not file.is_file():
                raise DataError(f"there is no file {file}")
    return source


def _metric(values: dict[str, Any], place: str) -> EvaluationConfig:
    if "seed" in values:
        raise OptionError(f"{place} has a seed: list them once, for all metrics (seeds = [1, 2])")
    config: EvaluationConfig = _made(EvaluationConfig, values, place)
    return config


def _baseline(sweep: Sweep, named: str, place: str) -> str:
    """The label of the model that is meant, by its label or its reference."""
    labels = [model.label for model in sweep.models]
    referred = [model.label for model in sweep.models if model.value.reference == named]
    if named in labels:
        return named
    if len(referred) == 1:
        return referred[0]
    raise OptionError(f"{place}: {unknown('baseline', named, labels)}: name one of the models")


def _made(kind: Any, values: Mapping[str, Any], place: str) -> Any:
    """A configuration of the options that an entry gives by their names in the shell."""
    known = {name: own for own in own_options(kind) for name in _names(own)}
    with _at(place):
        _check_names(values, {*known, "label"}, "")
        chosen: dict[str, Any] = {}
        for name, value in values.items():
            own = known[_dashed(name)]
            if own.name in chosen:
                raise OptionError(f"{name} is given twice, under two names: leave one out")
            whole = type(value) is int and kind_of(own.kind) is float
            chosen[own.name] = float(value) if whole else value
        made = configured(kind, chosen)
        check_options(made)
        return made


def _check_names(given: Collection[str], known: Collection[str], place: str) -> None:
    for name in given:
        if _dashed(name) in known:
            continue
        near = difflib.get_close_matches(_dashed(name), known, 3)
        hint = f"near names: {', '.join(near)}" if near else f"known: {', '.join(sorted(known))}"
        raise OptionError(f"{place}{': ' if place else ''}unknown key {name!r}; {hint}")


def _names(own: OwnOption) -> list[str]:
    """What an option is called in the shell, less the dashes."""
    flags = own.option.flags
    return [flag.removeprefix("--") for flag in flags if flag.startswith("--")]


def _dashed(name: str) -> str:
    """`pass_below` as `pass-below`: both are taken."""
    return name.replace("_", "-")


@contextmanager
def _at(place: str) -> Iterator[None]:
    """What is wrong inside, with its place before it."""
    try:
        yield
    except FillmaskError as error:
        raise type(error)(f"{place}: {error}" if place else str(error)) from error
