"""What the C library keeps for the page's threads.

glibc gives threads heaps of their own, eight a core; what one has freed no other can use: a page
took 1.3 GB after ten minutes of 32 visitors, and less than 1 GB with this. Larger blocks become
pages of their own, which go back to the system when they are freed.
"""

import contextlib
import ctypes
import os
import sys

_HEAPS, _LARGE_BYTES = 2, 256 << 10
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # as in malloc.h


def share_heaps() -> None:
    """Let all threads that begin later share few heaps, unless `MALLOC_ARENA_MAX` is set."""
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(AttributeError, OSError):  # another C library
            library = ctypes.CDLL(None)
            library.mallopt(_M_ARENA_MAX, _HEAPS)
            library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
