"""JSON from outside, held against the dataclass that it becomes; pydantic is imported here alone.

Keys that the dataclass does not know are passed over, as later versions may write them.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Cell:
...     name: str
...     seeds: tuple[int, ...] = (42,)
>>> from_json(Cell, '{"name": "a", "seeds": [1, 2], "later": null}')
Cell(name='a', seeds=(1, 2))
>>> from_json(Cell, '{"name": "a", "seeds": [1, null]}', "sweep.json")
Traceback (most recent call last):
fillmask_ui.errors.DataError: sweep.json: seeds[1]: input should be a valid integer; it was null
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

from fillmask_ui.errors import DataError, first_line
from fillmask_ui.records import InJson

T = TypeVar("T")
_MOST_SHOWN = 60  # characters of a wrong value


def from_json(kind: type[T], content: str | bytes, what: str = "") -> T:
    """A dataclass, or another type that pydantic reads, from the JSON of a file (`what`).

    Raises:
        DataError: if it is not JSON, or a value does not fit.
    """
    try:
        return _validator(cast("Any", kind)).validate_json(content, strict=True)
    except ValidationError as error:
        raise DataError(sentence(error, what)) from error


def from_values(kind: type[T], values: Any, what: str = "") -> T:
    """`from_json` for values that were already parsed, such as those of TOML or of a browser."""
    return from_json(kind, json.dumps(values, default=str), what)


def sentence(error: ValidationError, what: str = "") -> str:
    """The first thing that does not fit, in one line."""
    first = error.errors(include_url=False)[0]
    where = ""
    for part in first["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else str(part)
    wanted = first["msg"][:1].lower() + first["msg"][1:]
    was = ""
    if first["type"] not in ("json_invalid", "missing"):
        shown = json.dumps(first["input"], default=str, ensure_ascii=False)
        was = f"; it was {shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 3] + '...'}"
    return f"{': '.join(filter(None, (what, where, wanted)))}{was}"


@cache
def _validator(kind: Any) -> SchemaValidator:
    known: dict[str, Any] = {}
    schema = _schema(kind, known)
    return SchemaValidator(core_schema.definitions_schema(schema, [*known.values()]))


def _schema(kind: Any, known: dict[str, Any]) -> Any:
    """How pydantic's core reads a type; `known` collects dataclasses, which may hold themselves."""
    kinds = [own for own in get_args(kind) if own is not NoneType] or [kind]
    if get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
        return core_schema.nullable_schema(_schema(Union[tuple(kinds)], known))  # noqa: UP007
    if not all(map(is_dataclass, kinds)):
        return TypeAdapter(kind).core_schema
    if hasattr(kind, "from_dict"):
        values = core_schema.dict_schema(core_schema.str_schema())
        return core_schema.no_info_after_validator_function(partial(_from_dict, kind), values)
    name = " or ".join(own.__name__ for own in kinds)
    if name not in known:
        known[name] = None  # under way
        read = _Object(kinds, known)
        entries = {
            key: core_schema.typed_dict_field(own, required=key in read.required)
            for key, own in read.keys.items()
        }
        known[name] = core_schema.no_info_after_validator_function(
            read.made, core_schema.typed_dict_schema(entries), ref=name
        )
    return core_schema.definition_reference_schema(name)


def _from_dict(kind: Any, values: Mapping[str, Any]) -> Any:
    """Its arguments come from a file: one that it does not take is no mistake of this program."""
    try:
        return kind.from_dict(values)
    except (TypeError, AttributeError, LookupError) as error:
        why = {"name": kind.__name__, "why": first_line(error)}
        raise PydanticCustomError("arguments", "{name} cannot be made: {why}", why) from error


class _Object:
    """A JSON object that becomes one of some dataclasses: the first whose required keys it has."""

    def __init__(self, kinds: Sequence[Any], known: dict[str, Any]) -> None:
        self.keys: dict[str, Any] = {}  # to the schema of each
        self._forms: list[tuple[Any, dict[str, str], dict[str, _Object], set[str]]] = []
        for kind in kinds:
            own: dict[str, str] = {}  # field to key
            beside: dict[str, _Object] = {}
            required: set[str] = set()
            hints = get_type_hints(kind, include_extras=True)
            for field in fields(kind):
                hint, how = hints[field.name], InJson()
                if get_origin(hint) is Annotated:
                    how, hint = hint.__metadata__[0], hint.__origin__
                if how.beside:
                    part = beside[field.name] = _Object(get_args(hint) or (hint,), known)
                    self.keys |= part.keys
                    required |= part.required
                    continue
                key = own[field.name] = how.key or field.name
                self.keys[key] = _array(how) if how.dtype else _schema(hint, known)
                if field.default is MISSING and field.default_factory is MISSING:
                    required.add(key)
            self._forms.append((kind, own, beside, required))
        self.required: set[str] = set.intersection(*(required for *_, required in self._forms))

    def made(self, values: Mapping[str, Any]) -> Any:
        """The dataclass, of the values of its keys."""
        for kind, own, beside, required in self._forms:
            if required <= values.keys():
                found = {name: values[key] for name, key in own.items() if key in values}
                return kind(**found, **{name: part.made(values) for name, part in beside.items()})
        missing = min(required - values.keys())
        raise PydanticCustomError("missing", "{key} is missing", {"key": missing})


def _array(how: InJson) -> Any:
    """A list that becomes an array."""
    if how.names:
        places = {name: index for index, name in enumerate(how.names)}
        names = core_schema.list_schema(core_schema.literal_schema([*how.names]))
        return core_schema.no_info_after_validator_function(
            lambda found: np.array([places[name] for name in found], how.dtype), names
        )
    whole = np.dtype(how.dtype).kind in "iu"
    number: Any = core_schema.int_schema if whole else core_schema.float_schema
    entry = number(ge=how.least, le=how.most)
    if how.pairs:
        entry = core_schema.list_schema(entry, min_length=2, max_length=2)
    return core_schema.no_info_after_validator_function(
        partial(np.array, dtype=how.dtype), core_schema.list_schema(entry)
    )
