"""The memory that sessions of ONNX Runtime compute in: one arena, cut back now and then.

By itself each session has an arena, which keeps what its largest call ever took.
"""

import contextlib
import threading
import time
from functools import cache

import onnxruntime as ort

# A call that cuts back costs the next one some milliseconds.
CUT_SECONDS = 20.0
_lock, _last = threading.Lock(), [time.monotonic()]


def use_arena(settings: ort.SessionOptions) -> None:
    """Let a session compute in the arena; weights lie outside, to be freed with their model."""
    _make()
    settings.add_session_config_entry("session.use_env_allocators", "1")
    settings.add_session_config_entry("session.use_device_allocator_for_initializers", "1")


@cache
def _make() -> None:
    memory = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    # It grows by what is asked for, and not to twice its size.
    with contextlib.suppress(RuntimeError):  # a program that uses this package has made its own
        ort.create_and_register_allocator(memory, ort.OrtArenaCfg({"arena_extend_strategy": 1}))


def run_options() -> ort.RunOptions | None:
    """Of a call; one now and then gives back what no call uses any more."""
    with _lock:
        if time.monotonic() - _last[0] < CUT_SECONDS:
            return None
        _last[0] = time.monotonic()
    options = ort.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options
