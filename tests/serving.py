"""A page on 127.0.0.1 for as long as a test needs it, in this process or in one of its own."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def serving(demo: Any, *, public: bool = False, **more: Any) -> Iterator[str]:
    """The address of a page that `build_app` made, as public as it; `more` goes to `launch`."""
    from fillmask_ui.ui.page import launch, launch_options

    port = free_port()
    launch(demo, server_port=port, quiet=True, **(launch_options(public, "127.0.0.1") | more))
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        demo.close(verbose=False)


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def started(*options: str, **process: Any) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of `fillmask-ui OPTIONS` once it listens, and its process, which SIGTERM ends."""
    port = free_port()
    command = [sys.executable, "-m", "fillmask_ui", *options, "--port", str(port)]
    with tempfile.TemporaryFile() as log:
        page = subprocess.Popen(command, stdout=log, stderr=log, **process)
        try:
            deadline = time.monotonic() + 300
            while not _listens(port):
                output = os.pread(log.fileno(), 100_000, 0).decode()
                assert page.poll() is None and time.monotonic() < deadline, output
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/", page
        finally:
            page.terminate()
            page.wait(300)
