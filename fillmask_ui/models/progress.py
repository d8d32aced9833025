"""What a model reports while it loads."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class LoadProgress:
    """One step of loading a model."""

    stage: str  # `download`, `tokenizer` or `weights`
    message: str  # the step in words, for a status line
    done_bytes: int | None = None  # fetched so far; None if nothing is counted
    total_bytes: int | None = None  # to fetch; None if that is unknown

    @property
    def fraction(self) -> float | None:
        """Part done, in [0, 1]; None if nothing is counted.

        >>> LoadProgress("download", "model.safetensors", 25, 100).fraction
        0.25
        """
        if self.done_bytes is None or not self.total_bytes:
            return None
        return min(1.0, self.done_bytes / self.total_bytes)


ProgressCallback = Callable[[LoadProgress], None]


def silent(_: LoadProgress) -> None:
    """For callers that do not listen."""
