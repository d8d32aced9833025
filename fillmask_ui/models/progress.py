"""What a model reports while it loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class LoadProgress:
    """One step of loading a model.

    Attributes:
        stage: `download`, `tokenizer` or `weights`.
        message: the step in words, for a status line.
        done_bytes: fetched so far; None where nothing is counted.
        total_bytes: to fetch; None where that is unknown.
    """

    stage: str
    message: str
    done_bytes: int | None = None
    total_bytes: int | None = None

    @property
    def fraction(self) -> float | None:
        """Part done, in [0, 1]; None where nothing is counted.

        >>> LoadProgress("download", "model.safetensors", 25, 100).fraction
        0.25
        """
        if self.done_bytes is None or not self.total_bytes:
            return None
        return min(1.0, self.done_bytes / self.total_bytes)


ProgressCallback = Callable[[LoadProgress], None]


def silent(_: LoadProgress) -> None:
    """For callers that do not listen."""
