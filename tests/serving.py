"""A page on 127.0.0.1 for as long as a test needs it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def serving(demo: Any, *, public: bool = False, mcp: bool = False) -> Iterator[str]:
    """The address of a page that `build_app` made; `public` and `mcp` are what it was made with."""
    from fillmask_ui.ui.page import launch, launch_options

    port = free_port()
    launch(demo, server_port=port, quiet=True, **launch_options(public, "127.0.0.1", mcp))
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        demo.close(verbose=False)
