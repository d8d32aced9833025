"""Standard input, output and error as every command may rely on them, whatever the shell gave."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any

from fillmask_ui.errors import DataError


def open_streams() -> None:
    """Make the three streams usable: open, UTF-8, and with failures of writing in words.

    A stream that the shell closed (`>&-`) gets a descriptor that fails when it is used, so that no
    file opened later takes its number and receives what libraries print there. What cannot be
    written to standard output is a `DataError`, a reader that has gone (`| head`) a
    `BrokenPipeError`; nobody can be told what cannot be written to standard error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _stand_in(number)
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    sys.stdout, sys.stderr = _told(sys.stdout), _told(sys.stderr)


def _stand_in(number: int) -> None:
    """A descriptor for a closed stream: reading from input and writing to output fail."""
    ways = (os.O_WRONLY, os.O_RDONLY, os.O_RDWR)
    opened = os.open(os.devnull, ways[number])
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


def _told(stream: Any) -> Any:
    """The stream in UTF-8, over `_Output` where it writes to a descriptor."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    # A pipe on Windows or in a C locale is not UTF-8, and words are not ASCII.
    stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    # Whoever made a pipe may have told it not to wait for its reader; what is slow would be lost.
    with suppress(OSError, ValueError):
        os.set_blocking(stream.fileno(), True)
    # Without buffers (PYTHONUNBUFFERED) the descriptor's own stream is there.
    if not isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False)),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=stream.line_buffering or stream.write_through,
    )


class _Output(io.FileIO):
    """Standard output or error; after a failure it takes and drops what still comes.

    Else Python would fail again on what is left in its buffers, at the end, where nothing helps.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if self.fileno() == 2:
                return len(data)
            if error.errno == errno.EPIPE:
                raise
            reason = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise DataError(f"standard output cannot be written: {reason}") from error
