"""The files of a run as others may have left them: never waited for."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_file(path: Path) -> BinaryIO:
    """A regular file, to be read; an `OSError` for any other, also a pipe that nobody writes to."""
    check_regular(path)
    return path.open("rb")


def check_regular(path: Path) -> None:
    """An `OSError` for what is there and no regular file, and for what is not there."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
