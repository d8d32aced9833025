"""A run that ends by itself where a graph holds an endless loop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def time_limit(options: Any, seconds: float) -> Iterator[Any]:
    """`RunOptions` of ONNX Runtime, whose runs inside `with` this fail after so long."""
    timer = threading.Timer(seconds, setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        yield options
    finally:
        timer.cancel()
