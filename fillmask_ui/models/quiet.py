"""Keep what libraries say to developers away from users' terminals."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from threading import Lock


class _Quiet:
    """A setting of the whole process: the first thread to need it changes it, the last restores."""

    def __init__(self, change: Callable[[], AbstractContextManager[None]]) -> None:
        self._change = change
        self._lock = Lock()
        self._inside = 0
        self._restore = ExitStack()

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
    """No warnings, advice ("PyTorch was not found") or progress bars inside `with` this."""
    name = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
    advice = os.environ.pop(name, None)
    os.environ[name] = "1"  # read when transformers is first imported, maybe by the next line
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
    del os.environ[name]
    if advice is not None:
        os.environ[name] = advice


@_Quiet
@contextmanager
def quiet_hub() -> Iterator[None]:
    """No remarks on retries and broken connections inside `with` this."""
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)  # what fails arrives as an exception too
    yield
    logging.set_verbosity(verbosity)


@_Quiet
@contextmanager
def quiet_panics() -> Iterator[None]:
    """What libraries in Rust print when they panic goes nowhere inside `with` this.

    They print past Python, to the descriptor, and the panic arrives as an exception too. Whatever
    else was printed there meanwhile is printed at the end.
    """
    with tempfile.TemporaryFile() as said:
        try:
            stderr = os.dup(2)
        except OSError:  # closed
            yield
            return
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            said.seek(0)
            kept = said.read()
            if kept and b"panicked at" not in kept:
                with suppress(OSError):
                    os.write(2, kept)
