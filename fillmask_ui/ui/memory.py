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
_M_ARENA_MAX = -8  # as in malloc.h


def share_heaps() -> None:
    """Let all threads of this process share few heaps; call it before they begin.

    Nothing where the user has chosen (`MALLOC_ARENA_MAX`), or the C library is another.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)


async def keep_trimming() -> None:
    """Give free pages back to the system every now and then, as long as the page is served."""
    if sys.platform != "linux" or not hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        return
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        # Python's lock is not held meanwhile.
        await asyncio.to_thread(library.malloc_trim, 0)
