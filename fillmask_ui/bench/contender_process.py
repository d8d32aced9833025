"""A contender in a process of its own, so that none disturbs the threads of another.

What the process need not import before it loads a model is imported inside functions.
"""

from __future__ import annotations

import os
import re
import sys
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.errors import FillmaskError, ModelError, first_line

if TYPE_CHECKING:
    from fillmask_ui.bench.contenders import Contender

_STATUS = Path("/proc/self/status")


class ContenderProcess:
    """Starts the process and loads the contender in it; peers cut texts at `max_tokens`."""

    def __init__(self, contender: Contender, max_tokens: int | None = None) -> None:
        self.name = contender.name
        context = get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        try:
            self.loaded = self.ask("load", contender=contender, max_tokens=max_tokens)
        except BaseException:
            self.close()
            raise

    def ask(self, task: str, **arguments: Any) -> Any:
        """What a method of the contender (or `peak_bytes`) returns, or a `FillmaskError` raised."""
        try:
            self._connection.send((task, arguments))
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            raise ModelError(
                f"the process that measures {self.name} ended with code {self._process.exitcode}; "
                "the system may be out of memory"
            ) from error
        if isinstance(answer, FillmaskError):
            raise answer
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()


def _serve(connection: Connection) -> None:
    """Answer until the other end is closed; what libraries print is dropped."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    contender: Any = None
    while connection.poll(None):
        start = time.perf_counter()  # before anything that a model needs is imported
        try:
            task, arguments = connection.recv()
        except EOFError:
            return
        answer: Any
        try:
            if task == "load":
                contender = _opened(**arguments)
                answer = {"seconds": time.perf_counter() - start}
                for name in ("max_tokens", "cpu_features"):
                    answer[name] = getattr(contender, name, None)
            elif task == "peak_bytes":
                answer = _peak_bytes()
            else:
                answer = getattr(contender, task)(**arguments)
        except FillmaskError as error:
            answer = error
        except Exception as error:  # noqa: BLE001 - of a peer's library
            answer = ModelError(f"{type(error).__name__}: {first_line(error)}")
        connection.send(answer)


def _opened(contender: Contender, max_tokens: int | None) -> Any:
    """What is measured: an `OwnModel`, a `Peer` or `MatrixProducts`."""
    if not contender.works:
        from fillmask_ui.bench.machine import MatrixProducts

        return MatrixProducts()
    from fillmask_ui.bench.timing import EncoderShape
    from fillmask_ui.models.model_files import read_config

    shape = EncoderShape.of(read_config(contender.folder).raw)
    if contender.choice is not None:
        from fillmask_ui.bench.contenders import OwnModel

        return OwnModel(contender.choice, shape)
    from fillmask_ui.bench.peers import PEERS

    return PEERS[contender.peer](contender.folder, max_tokens or 0, shape)


def _peak_bytes() -> int | None:
    """The most memory that this process has held; None if the system does not tell."""
    if _STATUS.is_file():
        # Not `ru_maxrss`, which on Linux begins with what the parent process held.
        found = re.search(r"^VmHWM:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
