"""Bound glibc's heaps: 32 visitors take under 1 GB instead of 1.3 GB."""

import contextlib
import ctypes
import os
import sys


def share_heaps() -> None:
    """Have later threads share two heaps and return large blocks; `MALLOC_ARENA_MAX` decides."""
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(AttributeError, OSError):  # another C library
            library = ctypes.CDLL(None)
            library.mallopt(-8, 2)  # M_ARENA_MAX of malloc.h
            library.mallopt(-3, 256 << 10)  # M_MMAP_THRESHOLD, in bytes
