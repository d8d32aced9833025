"""The history of a decoding as JSON Lines: the result in the first line, then a line per step."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from fillmask_ui.errors import DataError
from fillmask_ui.records import Candidate
from fillmask_ui.unmasking.steps import FilledToken, HiddenPosition, Step, Unmasked

FORMAT = "fillmask-ui unmasking 1"


def history_lines(result: Unmasked) -> Iterator[str]:
    """A decoding with all it saw, a line of JSON at a time, without the ends of lines."""
    head = {**asdict(result), "steps": result.steps_taken}
    yield json.dumps({"format": FORMAT, **head}, ensure_ascii=False)
    for step in result.steps:
        yield json.dumps(asdict(step), ensure_ascii=False)


def read_history(lines: Iterable[str], name: str = "the history") -> Unmasked:
    """What `history_lines` has written.

    Args:
        lines: of a file, in order.
        name: of the file, for messages.

    Raises:
        DataError: if it is no history, or was cut.
    """
    try:
        head, *steps = [json.loads(line) for line in lines if line.strip()]
        if head.pop("format") != FORMAT or head.pop("steps") != len(steps):
            raise ValueError("another format, or steps are missing")
        return Unmasked(
            **{key: _frozen(value) for key, value in head.items()}, steps=tuple(map(_step, steps))
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{name} is no history of `fillmask-ui unmask`, or was cut ({error}): save it again"
        ) from error


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _step(saved: dict[str, Any]) -> Step:
    hidden = tuple(
        HiddenPosition(
            own["position"],
            own["confidence"],
            tuple(Candidate(**candidate) for candidate in own["candidates"]),
        )
        for own in saved.pop("hidden")
    )
    filled, remasked = (
        tuple(FilledToken(**token) for token in saved.pop(name)) for name in ("filled", "remasked")
    )
    ids = tuple(saved.pop("ids"))
    return Step(ids=ids, hidden=hidden, filled=filled, remasked=remasked, **saved)
