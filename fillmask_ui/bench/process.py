"""The other end of `bench.worker`: a contender that runs in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

from fillmask_ui import errors
from fillmask_ui.errors import FillmaskError, ModelError


class Worker:
    """A contender in a process of its own, so that none disturbs the threads of another."""

    def __init__(self, name: str, request: dict[str, Any]) -> None:
        """Start the process and load; `request` is that of `worker.open_contender`.

        Raises:
            FillmaskError: what loading says.
        """
        self.name = name
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fillmask_ui.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            encoding="utf-8",
        )
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
        if self._process.stdin is None or self._process.stdout is None:
            raise ValueError("the process was started without pipes")
        try:
            self._process.stdin.write(json.dumps({"task": task, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
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
