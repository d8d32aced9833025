"""A contender in a process of its own, and the other end of it: `python -m` this module.

A line of JSON on standard input is a request, the next line on standard output its answer. The
first request loads, the others name a method of the contender. Whatever a library prints goes to
standard error. What the process need not import before it loads is imported inside functions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, cast

from fillmask_ui import errors
from fillmask_ui.errors import FillmaskError, ModelError

_STATUS = Path("/proc/self/status")


class ContenderProcess:
    """A contender in a process of its own, so that none disturbs the threads of another.

    Args:
        name: for messages.
        request: arguments of `open_contender`, which the process calls; what that raises is raised.
    """

    def __init__(self, name: str, request: dict[str, Any]) -> None:
        self.name = name
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fillmask_ui.bench.contender_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            encoding="utf-8",
        )
        self._pipes = cast("tuple[IO[str], IO[str]]", (self._process.stdin, self._process.stdout))
        try:
            self.loaded = self.ask("load", **request)
        except BaseException:
            self.close()
            raise

    def ask(self, task: str, **arguments: Any) -> Any:
        """The answer to one request.

        Raises:
            FillmaskError: what the contender says, or a ModelError if its process has ended.
        """
        requests, answers = self._pipes
        try:
            requests.write(json.dumps({"task": task, **arguments}) + "\n")
            requests.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ModelError(self._end())
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            kind, message = answer["error"]
            raise getattr(errors, kind, FillmaskError)(message)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._messages.close()

    def _end(self) -> str:
        """Why a process has ended, as far as it can be told."""
        code = self._process.wait()
        self._messages.seek(0)
        said = self._messages.read().decode("utf-8", "replace").strip().splitlines()
        reason = said[-1][:300] if said else "it said nothing; the system may be out of memory"
        return f"the process that measures {self.name} ended with code {code}: {reason}"


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contender: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        task = request.pop("task")
        try:
            if task == "load":
                start = time.perf_counter()  # before anything that a model needs is imported
                contender = open_contender(**request)
                answer: Any = {"seconds": time.perf_counter() - start}
                for name in ("max_tokens", "cpu_features"):
                    answer[name] = getattr(contender, name, None)
            elif task == "peak_bytes":
                answer = peak_bytes()
            else:
                timing = getattr(contender, task)(**request)
                answer = None if timing is None else asdict(timing)
        except FillmaskError as error:
            answer = {"error": [type(error).__name__, str(error)]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def open_contender(
    kind: str,
    folder: str = "",
    choice: dict[str, Any] | None = None,
    max_tokens: int = 0,
) -> Any:
    """What is measured: `products`, `own` for a model of a choice, or a peer's name.

    Args:
        kind: which of them.
        folder: of config.json and, for a peer, of the weights.
        choice: of an own model.
        max_tokens: at which a peer cuts texts.
    """
    if kind == "products":
        from fillmask_ui.bench.machine import MatrixProducts

        return MatrixProducts()
    from fillmask_ui.bench.timing import EncoderShape
    from fillmask_ui.models.model_files import read_config

    shape = EncoderShape.of(read_config(Path(folder)).raw)
    if kind == "own":
        from fillmask_ui.bench.contenders import OwnModel
        from fillmask_ui.models.model_choice import ModelChoice

        return OwnModel(ModelChoice.from_dict(choice or {}), shape)
    from fillmask_ui.bench.peers import PEERS

    return PEERS[kind](Path(folder), max_tokens, shape)


def peak_bytes() -> int | None:
    """The most memory that this process has held; None where the system does not tell."""
    if _STATUS.is_file():
        # Not `ru_maxrss`, which on Linux begins with what the parent process held.
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


if __name__ == "__main__":
    main()
