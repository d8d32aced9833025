"""One writer per run: a lock of the system, which ends with its process, however that ends."""

import contextlib
import os
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from fillmask_ui.errors import DataError

# A reader that looks whether a run is being written holds the lock for an instant.
_PATIENCE_SECONDS = 0.2
# Never a marker file, which a killed process leaves behind.
_file_lock = partial(FileLock, fallback_to_soft=False, thread_local=False, is_singleton=False)


def lock_run(path: Path, name: str) -> FileLock:
    """Lock the run of a name until the lock is released or the process ends.

    Raises:
        DataError: if another process, or another writer in this one, holds it, or the file
            system has no locks.
    """
    lock = _file_lock(path)
    # Beside the lock: Windows forbids others to read a locked file.
    holder = path.with_suffix(".pid")
    try:
        lock.acquire(timeout=_PATIENCE_SECONDS, poll_interval=0.02)
    except Timeout as error:
        number = ""
        with contextlib.suppress(OSError, ValueError):
            number = f" (process {int(holder.read_text('ascii'))})"
        raise DataError(
            f"run {name} is being written by another process{number}: wait for it to end, or stop "
            "it first"
        ) from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be locked ({error.strerror}), and without a lock two processes could "
            "write one run: name another folder with the environment variable FILLMASK_UI_RUNS"
        ) from error
    with contextlib.suppress(OSError):  # only a hint for others
        holder.write_text(str(os.getpid()), "ascii")
    return lock


def is_locked(path: Path) -> bool:
    """Whether some process writes the run right now."""
    if not path.exists():
        return False
    try:
        with _file_lock(path).acquire(blocking=False):
            return False
    except (Timeout, PermissionError):
        # What may not be written here may be written by its owner.
        return True
    except OSError:
        return False  # where nothing can be locked, nobody writes
