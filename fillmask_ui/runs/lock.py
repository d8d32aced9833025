"""One writer per run: a lock that ends with its process, however that ends."""

import contextlib
import os
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from fillmask_ui.errors import DataError
from fillmask_ui.runs.files import check_regular, open_file

# A reader that looks whether a run is being written holds the lock for an instant.
_PATIENCE_SECONDS = 0.2


# The system's own lock; never a marker file, which a killed process leaves behind.
_file_lock = partial(FileLock, fallback_to_soft=False, thread_local=False, is_singleton=False)


def lock_run(path: Path, name: str) -> FileLock:
    """Lock the run of a name until the lock is released or the process ends.

    Raises:
        DataError: if another process, or another writer in this one, holds it, or the file
            system has no locks.
    """
    if _is_other(path):
        raise DataError(f"run {name} cannot be locked: {path} is no regular file; delete it")
    lock = _file_lock(path)
    # Beside the lock: Windows forbids others to read a locked file.
    holder = path.with_suffix(".pid")
    try:
        lock.acquire(timeout=_PATIENCE_SECONDS, poll_interval=0.02)
    except Timeout as error:
        raise DataError(
            f"run {name} is being written by another process{_number(holder)}: wait for it to "
            "end, or stop it first"
        ) from error
    except PermissionError as error:
        raise DataError(
            f"{path} cannot be locked ({error.strerror}): make the folder of the run writable for "
            "you, or name another folder with the environment variable FILLMASK_UI_RUNS"
        ) from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be locked ({error.strerror}), so two processes could write one run: "
            "name a folder on another file system with the environment variable FILLMASK_UI_RUNS"
        ) from error
    # Only a hint for others; what cannot be written is said when the rows are.
    with contextlib.suppress(OSError):
        if not _is_other(holder):
            holder.write_text(str(os.getpid()), "ascii")
    return lock


def _is_other(path: Path) -> bool:
    """Whether something is there that is no regular file, such as a pipe, or a link to nothing."""
    try:
        check_regular(path)
    except FileNotFoundError:
        return path.is_symlink()
    except OSError:
        return True
    return False


def _number(holder: Path) -> str:
    """The process that holds the lock, in words; blank where that is not known."""
    with contextlib.suppress(OSError, ValueError), open_file(holder) as file:
        return f" (process {int(file.read(20))})"
    return ""


def is_locked(path: Path) -> bool:
    """Whether some process writes the run right now."""
    if not os.path.lexists(path) or _is_other(path):
        return False
    try:
        with _file_lock(path).acquire(blocking=False):
            return False
    except (Timeout, PermissionError):
        # What may not be written here may be written by its owner.
        return True
    except OSError:
        # Where nothing can be locked, nobody writes.
        return False
