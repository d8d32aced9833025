"""What is told while a model loads: our own steps, and not what libraries say to developers."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True)
class LoadProgress:
    """One step of loading a model."""

    stage: str  # `download`, `tokenizer` or `weights`
    message: str  # the step in words, for a status line
    done_bytes: int | None = None  # fetched so far; None if nothing is counted
    total_bytes: int | None = None  # to fetch; None if that is unknown

    @property
    def fraction(self) -> float | None:
        """Part done, in [0, 1]; None if nothing is counted."""
        if self.done_bytes is None or not self.total_bytes:
            return None
        return min(1.0, self.done_bytes / self.total_bytes)


ProgressCallback = Callable[[LoadProgress], None]


def silent(_: LoadProgress) -> None:
    """For callers that do not listen."""


class _Quiet:
    """A setting of the whole process: the first thread to need it changes it, the last restores."""

    def __init__(self, change: Callable[[], AbstractContextManager[None]]) -> None:
        self._change, self._restore = change, ExitStack()
        self._lock, self._inside = Lock(), 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._restore.enter_context(self._change())
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._restore.close()


@_Quiet
@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No warnings, advice or progress bars of transformers inside `with` this."""
    # Read when it is first imported: no advice such as "PyTorch was not found".
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it will no longer read one day
        yield
    logging.set_verbosity(verbosity)
    if bars:
        logging.enable_progress_bar()


@_Quiet
@contextmanager
def quiet_hub() -> Iterator[None]:
    """No remarks on retries and broken connections inside `with` this."""
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)  # what fails arrives as an exception too
    yield
    logging.set_verbosity(verbosity)
