"""A run that ends by itself where a graph holds an endless loop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fillmask_ui.errors import ModelError, ModelOutputError


@contextmanager
def time_limit(options: Any, seconds: float, name: str) -> Iterator[Any]:
    """`RunOptions` of ONNX Runtime, whose runs inside `with` this end with an error then.

    Raises:
        ModelOutputError: after so many seconds.
    """
    timer = threading.Timer(seconds, setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        yield options
    except ModelError as error:
        if options.terminate:
            raise ModelOutputError(
                f"{name} had not read a few words after {seconds:.0f} s: its graph may hold a loop "
                "without end; take another model"
            ) from error
        raise
    finally:
        timer.cancel()
