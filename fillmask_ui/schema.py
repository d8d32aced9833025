"""JSON from outside, held against the dataclass that it becomes; pydantic is imported here alone.

What a file or a browser holds is declared once, by the fields of the dataclass in use. Bounds are
those of the fields' types and of `options.option`. Keys that the dataclass does not know
are passed over, as later versions may write them.

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
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fillmask_ui.errors import DataError

T = TypeVar("T")
_MOST_SHOWN = 60  # characters of a wrong value


def from_json(kind: type[T], content: str | bytes, what: str = "") -> T:
    """A value of a type from JSON text; bytes are UTF-8.

    Args:
        kind: a dataclass, or any other type that pydantic reads.
        content: the JSON.
        what: name of the file or the like, for the message.

    Raises:
        DataError: if it is not JSON, or a value does not fit; the message says where, what was
            wanted and what it was.
    """
    try:
        return _adapter(kind).validate_json(content, strict=True)
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
    known = first["type"] not in ("json_invalid", "missing")
    was = f"; it was {_shown(first['input'])}" if known else ""
    return f"{': '.join(filter(None, (what, where, wanted)))}{was}"


def _shown(value: Any) -> str:
    """A wrong value in a few characters, as JSON writes it."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)
