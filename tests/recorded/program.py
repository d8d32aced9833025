"""The command line, called in this process or in one of its own."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fillmask_ui
from fillmask_ui.cli.main import run

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Result:
    """What a call came back with."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


def call(*arguments: object, stdin: str | bytes = "") -> Result:
    """`fillmask-ui ARGUMENTS`, as the shell would with pipes around it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    content = stdin.encode() if isinstance(stdin, str) else stdin
    given = io.TextIOWrapper(io.BytesIO(content), "utf-8")
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["fillmask-ui", *map(str, arguments)], given
    code: object = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            run()
    except SystemExit as exit_:
        code = exit_.code
    finally:
        sys.argv, sys.stdin = before
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))
    return Result(int(code or 0), *texts)


def ran(
    *command: object, cwd: Path | None = None, given: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, run to its end, with more variables."""
    words, variables = [*map(str, command)], {**os.environ, **more}
    options = {"capture_output": True, "text": True, "timeout": 300}
    return subprocess.run(words, cwd=cwd, env=variables, input=given, **options)


def environment(**more: str) -> dict[str, str]:
    """For a process of its own: the package that is being tested, wherever it starts."""
    root = str(Path(fillmask_ui.__file__).parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
