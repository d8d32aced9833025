"""Values of JSON held against the types that dataclasses declare."""

from __future__ import annotations

import collections.abc
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from fillmask_ui.evaluation.row_values import said

_MOST = 2**63 - 1  # what other programs read of JSON
_WORDS = {
    str: "text without null characters",
    int: "a whole number from 0 to 2^63",
    float: "a finite number",
    bool: "true or false",
    NoneType: "null",
}


def check_shape(value: Any, kind: Any, path: str) -> None:
    """Hold a value against a type; fields of an object that the type does not know are passed over.

    Args:
        value: of JSON.
        kind: a scalar type, `tuple`, `Mapping`, `Any`, a dataclass, an own mapping of names to
            types, or a union of these.
        path: of the value, for the message.

    Raises:
        ValueError: if the value does not fit; the message says which part of it.

    >>> check_shape({"sizes": [1, None]}, {"sizes": tuple[int, ...]}, "run.json")
    Traceback (most recent call last):
    ValueError: run.json: sizes[1] must be a whole number from 0 to 2^63, it was null
    """
    if kind is Any:
        return
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        _check_union(value, inner, path)
    elif origin is tuple:
        _expect(isinstance(value, list), value, "a list", path)
        if inner[-1] is not ...:
            _expect(len(value) == len(inner), value, f"a list of {len(inner)}", path)
        for index, entry in enumerate(value):
            check_shape(entry, inner[0], _inside(path, f"[{index}]"))
    elif isinstance(kind, dict) or is_dataclass(kind) or origin is collections.abc.Mapping:
        _expect(isinstance(value, dict), value, "an object", path)
        _check_object(value, kind, path)
    else:
        _expect(_is_scalar(value, kind), value, _WORDS[kind], path)


def _check_union(value: Any, kinds: tuple[Any, ...], path: str) -> None:
    if value is None and NoneType in kinds:
        return
    (kind,) = (kind for kind in kinds if kind is not NoneType)
    check_shape(value, kind, path)


def _check_object(value: dict[str, Any], kind: Any, path: str) -> None:
    known: Mapping[str, Any]
    required = frozenset[str]()
    if get_origin(kind) is not None:
        known = dict.fromkeys(value, get_args(kind)[1])
    elif isinstance(kind, dict):
        known = kind
    else:
        known, required = get_hints(kind), _required(kind)
    for name in required - value.keys():
        raise ValueError(f"{_inside(path, name)} is missing")
    for name in known.keys() & value.keys():
        check_shape(value[name], known[name], _inside(path, name))


def _is_scalar(value: Any, kind: Any) -> bool:
    if kind is float:
        return type(value) in (int, float) and -1e300 < value < 1e300
    if kind is int:
        return type(value) is int and 0 <= value <= _MOST
    return type(value) is kind and (kind is not str or "\0" not in value)


def _expect(fits: bool, value: Any, wanted: str, path: str) -> None:
    if not fits:
        raise ValueError(f"{path} must be {wanted}, it was {said(value)}")


def _inside(path: str, name: str) -> str:
    """The path of what lies in an object, which begins behind the name of the file."""
    if ": " not in path:
        return f"{path}: {name}"
    return path + (name if name.startswith("[") else f".{name}")


@cache
def get_hints(kind: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, by name."""
    hints = get_type_hints(kind)
    return {entry.name: hints[entry.name] for entry in fields(kind)}


@cache
def _required(kind: type) -> frozenset[str]:
    """The names of its fields without a default."""
    return frozenset(
        entry.name
        for entry in fields(kind)
        if entry.default is MISSING and entry.default_factory is MISSING
    )
