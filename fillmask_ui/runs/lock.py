"""One writer a run: a lock that ends with its process, however that ends."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from typing import BinaryIO

from fillmask_ui.errors import DataError

# What the operating system says of a lock that another holds (EDEADLK: on Windows).
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


class RunLock:
    """An exclusive lock on a file, held by the operating system for the open file.

    A process that is killed loses it at once, so there is never a stale one to clear.

    Args:
        path: of the lock file; made where it is missing, never removed while the run exists.
        name: of the run, for the message.

    Raises:
        DataError: if another process, or another writer in this one, holds it, or the file
            system has no locks.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._file: BinaryIO | None = path.open("ab+")
        try:
            taken = _take_patiently(self._file)
        except OSError as error:
            self.release()
            raise DataError(
                f"{path} cannot be locked ({error.strerror}), so two processes could write one "
                "run: name a folder on another file system with the environment variable "
                "FILLMASK_UI_RUNS"
            ) from error
        if not taken:
            self._file.seek(0)
            holder = self._file.read(32).decode("ascii", "replace").strip()
            self.release()
            raise DataError(
                f"run {name} is being written by another process"
                + (f" (process {holder})" if holder else "")
                + ": wait for it to end, or stop it first"
            )
        self._file.truncate(0)
        self._file.write(str(os.getpid()).encode())
        self._file.flush()

    def release(self) -> None:
        """Let others write; harmless if done before."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _take_patiently(file: BinaryIO) -> bool:
    """A reader that looks whether a run is being written holds the lock for an instant."""
    for wait_seconds in (0.02, 0.05, 0.1, 0.0):
        if _take(file):
            return True
        time.sleep(wait_seconds)
    return False


def _take(file: BinaryIO) -> bool:
    try:
        _lock(file)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


if sys.platform == "win32":
    import msvcrt

    # Windows forbids others to read locked bytes: lock one far behind the process number.
    _FAR = 1 << 20

    def _lock(file: BinaryIO) -> None:
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)

else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """Whether some process writes the run right now."""
    if not path.exists():
        return False
    # NFS locks only what is open for writing.
    with path.open("rb+" if os.access(path, os.W_OK) else "rb") as file:
        try:
            return not _take(file)
        except OSError:
            # Where nothing can be locked, nobody writes.
            return False
