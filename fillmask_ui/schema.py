"""JSON from outside, held against the dataclass that it becomes; pydantic is imported here alone.

Keys that the dataclass does not know are passed over.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Cell:
...     name: str
...     seeds: tuple[int, ...] = (42,)
>>> from_json(Cell, '{"name": "a", "seeds": [1, 2], "note": null}')
Cell(name='a', seeds=(1, 2))
>>> from_json(Cell, '{"name": "a", "seeds": [1, null]}', "sweep.json")
Traceback (most recent call last):
fillmask_ui.errors.DataError: sweep.json: seeds[1]: input should be a valid integer; it was null
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from fillmask_ui.errors import DataError, FillmaskError

T = TypeVar("T")
_MOST_SHOWN = 60  # characters of a wrong value
_adapter = cache(TypeAdapter)


def from_json(kind: type[T], content: str | bytes, source: str = "") -> T:
    """A dataclass, or another type that pydantic reads, from the JSON of a file (`source`).

    Raises:
        DataError: if it is not JSON, or a value does not fit.
    """
    with _explained(source):
        return cast("T", _adapter(cast("Any", kind)).validate_json(content, strict=True))


def from_values(kind: type[T], values: Any, source: str = "") -> T:
    """`from_json` for values that were already parsed, such as those of TOML or of a browser."""
    try:
        content = json.dumps(values, default=str, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise DataError(
            f"{source or 'a text'} has half of a character (a lone surrogate, {half}): delete it "
            "or paste it again"
        ) from error
    return from_json(kind, content, source)


def from_trusted_values(kind: type[T], values: Any, source: str = "") -> T:
    """`from_values` for what this program has written: faster, and `"1"` passes for a number."""
    with _explained(source):
        return cast("T", _adapter(cast("Any", kind)).validate_python(values))


@contextmanager
def _explained(source: str) -> Iterator[None]:
    """The first thing that does not fit becomes a `DataError` of one line."""
    try:
        yield
    except ValidationError as error:
        # A record that refuses its own values has said why: an `OptionError` is a `ValueError`.
        cause = error.errors(include_url=False)[0].get("ctx", {}).get("error")
        if isinstance(cause, FillmaskError):
            raise cause from error
        raise DataError(_sentence(error, source)) from error


def _sentence(error: ValidationError, source: str) -> str:
    first = error.errors(include_url=False)[0]
    field = ""
    for part in first["loc"]:
        if isinstance(part, int):
            field += f"[{part}]"
        else:
            field += f".{part}" if field else str(part)
    problem = first["msg"][:1].lower() + first["msg"][1:]
    sentence = ": ".join(filter(None, (source, field, problem)))
    if first["type"] in ("json_invalid", "missing"):
        return sentence
    value = json.dumps(first["input"], default=str, ensure_ascii=False)
    if len(value) > _MOST_SHOWN:
        value = value[: _MOST_SHOWN - 3] + "..."
    return f"{sentence}; it was {value}"
