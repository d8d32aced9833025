"""Keep what transformers says to developers away from users' terminals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

# Verbosity is one setting for the whole process: two threads that save and restore it in turn
# would leave it at the wrong value.
_LOCK = RLock()


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No warnings, advice ("PyTorch was not found") or progress bars inside this block."""
    with _LOCK:
        advice = os.environ.get("TRANSFORMERS_NO_ADVISORY_WARNINGS")
        # Read when transformers is first imported, which may be the next line.
        os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"
        from transformers.utils import logging

        verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()
            if advice is None:
                del os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"]
            else:
                os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = advice
