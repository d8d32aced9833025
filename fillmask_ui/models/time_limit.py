"""A run that ends by itself where a graph holds an endless loop, and at once by Ctrl-C."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from fillmask_ui.errors import ModelOutputError

Result = TypeVar("Result")


def run_within(run: Callable[[Any], Result], options: Any, seconds: float, name: str) -> Result:
    """What `run` gives for `RunOptions` of ONNX Runtime, which are what ends it early.

    It runs in a thread of its own: Python heeds Ctrl-C between two calls of a library, not in one.

    Raises:
        ModelOutputError: after so many seconds; what `run` raises is raised as it is.
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, options)
        try:
            ended = wait([running], seconds).done
        finally:
            options.terminate = True  # nothing to one that has ended
    if not ended:
        raise ModelOutputError(
            f"{name} had not read a few words after {seconds:.0f} s: its graph may hold a loop "
            "without end; take another model"
        )
    return running.result()
