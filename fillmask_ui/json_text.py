"""JSON of files that others wrote or altered: read here alone, so that what is no JSON is told."""

import json
from pathlib import Path
from typing import Any


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text; bytes are UTF-8.

    NaN and infinities pass, as rows of runs hold the latter; of a key given twice the last counts.

    Raises:
        ValueError: for what is no JSON, is not UTF-8, or is nested deeper than Python follows.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: it is nested too deeply
    """
    if isinstance(content, bytes):  # of which json would take UTF-16, too
        content = content.decode("utf-8", "surrogatepass")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_object(content: str | bytes) -> dict[str, Any]:
    """A JSON object; a ValueError as of `parse_json`, or where it is another kind of value.

    >>> parse_object("[1]")
    Traceback (most recent call last):
    ValueError: it is a list, where an object is wanted
    """
    value = parse_json(content)
    if not isinstance(value, dict):
        kind = "null" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"it is {kind}, where an object is wanted")
    return value


def read_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file; a ValueError as of `parse_object`, an OSError if unreadable."""
    return parse_object(path.read_bytes())
