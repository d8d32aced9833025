"""The memory that the C library keeps for threads: few heaps for all of them.

By itself glibc gives threads heaps of their own, eight a core, and what one of them has freed
no other can use. The page answers from some forty threads, so the largest answer of each stays.
"""

import asyncio
import contextlib
import ctypes
import os
import sys

_HEAPS = 2
_TRIM_SECONDS = 20.0
# Larger blocks are pages of their own, which go back when they are freed; in a heap they leave
# holes that grow with the hours. By itself glibc raises this limit to 32 MB.
_LARGE_BYTES = 256 << 10
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # as in malloc.h


def share_heaps() -> None:
    """Let all threads of this process share few heaps of small blocks; call it before they begin.

    Nothing where the user has chosen (`MALLOC_ARENA_MAX`), or the C library is another.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, _HEAPS)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


async def keep_trimming() -> None:
    """Give free pages back to the system every now and then, as long as the page is served."""
    if sys.platform != "linux" or not hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        return
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        # Python's lock is not held meanwhile.
        await asyncio.to_thread(library.malloc_trim, 0)
