"""read_sweep(): a sweep file, in TOML, checked before any work is done.

The keys of its entries are the options of `fillmask-ui eval`, derived from the same declarations.
"""

from __future__ import annotations

import difflib
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

from fillmask_ui.errors import DataError, FillmaskError, OptionError, unknown
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.files import visible
from fillmask_ui.intervals import Limits
from fillmask_ui.masking import check_seed
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.reference import parse_reference
from fillmask_ui.options import OwnOption, configured, own_options
from fillmask_ui.sweeps.plan import Labelled, Sweep, text_files_of
from fillmask_ui.texts import TextChoice, TextSource

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value = TypeVar("Value")
DEFAULT_SEED = 42
_MOST_BYTES = 10_000_000
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def read_sweep(path: Path) -> Sweep:
    """The sweep of a file.

    Raises:
        DataError: if the file cannot be read.
        FillmaskError: for whatever is wrong with what it says, with its place.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise DataError(f"{path} has more than {_MOST_BYTES:,} bytes: it is no sweep file")
        values = tomllib.loads(content.decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}: name a sweep file, in TOML") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is no UTF-8 text (byte {error.start}): save it as UTF-8"
        ) from error
    except RecursionError as error:
        raise OptionError(f"{path} is nested too deeply: it is no sweep file") from error
    except ValueError as error:  # also a number of thousands of digits
        why = "a number has thousands of digits" if "set_int_max" in str(error) else error
        raise OptionError(f"{path} is no TOML: {why}") from error
    return sweep_of(values, path.stem, str(path))


def sweep_of(values: Mapping[str, Any], name: str, place: str = "the sweep") -> Sweep:
    """The sweep of what a sweep file says.

    Args:
        values: the keys of the file.
        name: of the sweep, where they have none.
        place: what messages call it.

    Raises:
        FillmaskError: for whatever is wrong, with its place.

    >>> parts = {"models": ["embedded"], "data": ["embedded"], "metrics": ["uniform"]}
    >>> [cell.name for cell in sweep_of({**parts, "seeds": [1, 2]}, "mine").cells]
    ['embedded, embedded, uniform, seed 1', 'embedded, embedded, uniform, seed 2']
    """
    limits = {name for own in own_options(Limits) for name in _names(own)}
    lists = ("models", "data", "metrics")
    _check_names(values, {"name", "baseline", "seeds", *lists, *limits}, place)
    models, data, metrics = (_entries(values, key, place) for key in lists)
    sweep = Sweep(
        name=_text(values.get("name", name), "name", place),
        models=_labelled(models, "models", "model", _model, place),
        texts=_labelled(data, "data", "dataset", _texts, place),
        metrics=_labelled(metrics, "metrics", "metric", _metric, place),
        seeds=_seeds(values.get("seeds", [DEFAULT_SEED]), place),
        limits=_made(Limits, {k: v for k, v in values.items() if _dashed(k) in limits}, place),
    )
    if "baseline" not in values:
        return sweep
    baseline = _baseline(sweep, _text(values["baseline"], "baseline", place), place)
    return replace(sweep, baseline=baseline)


def _entries(values: Mapping[str, Any], key: str, place: str) -> Sequence[Any]:
    found = values.get(key, [])
    if not isinstance(found, list) or not found:
        came = "it was missing" if key not in values else f"it was {_shown(found)}"
        raise OptionError(f"{place}: {key} must have one entry or more ([[{key}]]); {came}")
    return found


def _labelled(
    entries: Sequence[Any],
    key: str,
    main: str,
    make: Callable[[dict[str, Any], str], Value],
    place: str,
) -> tuple[Labelled[Value], ...]:
    """The entries of a list, each a table, or what stands for the one with just its `main` key."""
    found: list[Labelled[Value]] = []
    for number, entry in enumerate(entries, start=1):
        own = f"{place}: {key}, entry {number}"
        given = {main: entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict):
            raise OptionError(f"{own} must be a table ([[{key}]]) or text; it was {_shown(given)}")
        if main not in given:
            raise OptionError(f"{own} has no {main}: add {main} = ...")
        rest = {name: value for name, value in given.items() if name != "label"}
        value = make(rest, own)
        label = _text(given.get("label", given[main]), "label", own)
        if visible(label) != label:
            raise OptionError(f"{own}: the label {label!r} has characters that cannot be seen")
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
            if not os.access(file, os.R_OK):
                raise DataError(f"the file {file} may not be read")
    return source


def _metric(values: dict[str, Any], place: str) -> EvaluationConfig:
    if "seed" in values:
        raise OptionError(f"{place} has a seed: list them once, for all metrics (seeds = [1, 2])")
    config: EvaluationConfig = _made(EvaluationConfig, values, place)
    return config


def _seeds(found: Any, place: str) -> tuple[int, ...]:
    if not isinstance(found, list) or not found:
        raise OptionError(
            f"{place}: seeds must be a list of whole numbers, as [42, 1]; it was {_shown(found)}"
        )
    for seed in found:
        if type(seed) is not int:
            raise OptionError(f"{place}: each seed must be a whole number; one was {_shown(seed)}")
        with _at(place):
            check_seed(seed)
    if doubled := [seed for seed, count in Counter(found).items() if count > 1]:
        raise OptionError(f"{place}: seed {doubled[0]} is there twice: leave one out")
    return tuple(found)


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
            chosen[own.name] = _checked(value, name, own.kind)
        return configured(kind, chosen)


def _checked(value: Any, name: str, kind: Any) -> Any:
    """A value of TOML as an option of this type takes it."""
    (wanted,) = (own for own in get_args(kind) or (kind,) if own is not NoneType)
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted or (wanted is float and not math.isfinite(value)):
        raise OptionError(f"{name} must be {_WORDS[wanted]}; it was {_shown(value)}")
    return value


def _text(value: Any, name: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{place}: {name} must be text; it was {_shown(value)}")
    return value.strip()


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


def _shown(value: Any) -> str:
    return repr(value)[:80]


@contextmanager
def _at(place: str) -> Iterator[None]:
    """What is wrong inside, with its place before it."""
    try:
        yield
    except FillmaskError as error:
        raise type(error)(f"{place}: {error}" if place else str(error)) from error
