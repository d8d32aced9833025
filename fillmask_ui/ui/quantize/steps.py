"""What a run of the Quantize tab says as it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass

from fillmask_ui.quantizing.store import Home, parts_text


@dataclass(frozen=True)
class Working:
    """What goes on."""

    message: str
    fraction: float | None = None  # part done of the whole run, in [0, 1]


@dataclass(frozen=True)
class Note:
    """What a reader should know of the run."""

    text: str


@dataclass(frozen=True)
class Kept:
    """Something new is on disk."""

    home: Home


@dataclass(frozen=True)
class Failed:
    """A scheme that gave no row; the others go on."""

    scheme: str
    name: str  # with what stays in full precision
    message: str  # why, and what to do


def name_of(scheme: str, exclude: Sequence[str]) -> str:
    """What a variant is called.

    >>> name_of("int8", ()), name_of("int8", ["projection"])
    ('int8', 'int8 without projection')
    """
    return f"{scheme} without {parts_text(exclude)}" if exclude else scheme


Step = Working | Note | Kept | Failed
