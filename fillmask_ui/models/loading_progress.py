"""Progress of loading a model, without the messages that libraries have for developers."""

import logging
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


def silent(progress: LoadProgress) -> None:
    """For callers that do not listen: the steps go to the log of `fillmask_ui`."""
    logging.getLogger("fillmask_ui").debug(progress.message)


_levels_lock = Lock()
_levels: dict[str, list[int]] = {}  # logger -> threads inside `quiet_logger`, and its level before


@contextmanager
def quiet_logger(name: str) -> Iterator[None]:
    """Without messages of a library's logger, whose level the last thread inside restores."""
    logger = logging.getLogger(name)
    with _levels_lock:
        threads, level = _levels.get(name, [0, logger.level])
        _levels[name] = [threads + 1, level]
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        with _levels_lock:
            threads, level = _levels.pop(name)
            if threads > 1:
                _levels[name] = [threads - 1, level]
            else:
                logger.setLevel(level)


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
            from transformers.utils import logging as library

            _Quiet.restore.callback(library.set_verbosity, library.get_verbosity())
            library.set_verbosity_error()
            if library.is_progress_bar_enabled():
                _Quiet.restore.callback(library.enable_progress_bar)
                library.disable_progress_bar()
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
