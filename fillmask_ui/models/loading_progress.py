"""Progress of loading a model, without the messages that libraries have for developers."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock

from fillmask_ui.records import Progress


@dataclass(frozen=True)
class LoadProgress(Progress):
    """One step of loading a model."""

    stage: str = ""  # `download`, `tokenizer` or `weights`
    done_bytes: int | None = None  # fetched so far, where bytes are counted
    total_bytes: int | None = None  # to fetch, where known


ProgressCallback = Callable[[LoadProgress], None]


def silent(_: LoadProgress) -> None:
    """For callers that do not listen."""


class _Quiet:
    """How many threads are inside `quiet_transformers`, and what the last of them restores."""

    lock = Lock()
    threads = 0
    restore = ExitStack()


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without progress bars, advice and warnings of transformers.

    These are settings of the process: the first thread inside changes them, the last restores.
    """
    with _Quiet.lock:
        if not _Quiet.threads:
            # Read at the first import: no advice such as "PyTorch was not found".
            os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
            from transformers.utils import logging

            _Quiet.restore.callback(logging.set_verbosity, logging.get_verbosity())
            logging.set_verbosity_error()
            if logging.is_progress_bar_enabled():
                _Quiet.restore.callback(logging.enable_progress_bar)
                logging.disable_progress_bar()
            _Quiet.restore.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # of coming changes
        _Quiet.threads += 1
    try:
        yield
    finally:
        with _Quiet.lock:
            _Quiet.threads -= 1
            if not _Quiet.threads:
                _Quiet.restore.close()
