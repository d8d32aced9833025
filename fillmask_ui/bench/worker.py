"""A contender in a process of its own: `python -m fillmask_ui.bench.worker`.

A line of JSON on standard input is a request, the next line on standard output its answer. The
first request loads, the others name a method of the contender. Whatever a library prints goes to
standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from fillmask_ui.errors import FillmaskError

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
    choice: Mapping[str, Any] | None = None,
    folder: str = "",
    max_tokens: int = 0,
) -> Any:
    """What is measured: `products`, `own` for a model of a choice, or a peer's name."""
    if kind == "products":
        from fillmask_ui.bench.products import MatrixProducts

        return MatrixProducts()
    from fillmask_ui.bench.flops import EncoderShape
    from fillmask_ui.models.model_files import read_config

    shape = EncoderShape.of(read_config(Path(folder)).raw)
    if kind == "own":
        from fillmask_ui.bench.own import OwnModel
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
