"""What glibc keeps for the threads of a page: 1.3 GB for 32 visitors, less than 1 with this."""

import contextlib
import ctypes
import os
import sys


def share_heaps() -> None:
    """Let threads that begin later share two heaps, not eight a core, and give back large blocks.

    Unless `MALLOC_ARENA_MAX` says otherwise.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(AttributeError, OSError):  # another C library
            library = ctypes.CDLL(None)
            library.mallopt(-8, 2)  # M_ARENA_MAX of malloc.h
            library.mallopt(-3, 256 << 10)  # M_MMAP_THRESHOLD, in bytes
