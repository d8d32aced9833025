"""Evaluations on the processes of Ray, on this machine or many, with the digits of one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fillmask_ui.cluster.engine_choice import LOCAL, RAY, EngineChoice, ray_installed
from fillmask_ui.errors import OptionError
from fillmask_ui.runs import Engine

__all__ = ["LOCAL", "RAY", "EngineChoice", "open_engine", "ray_installed"]


# Of Ray, where the user has not said otherwise: nothing is reported to its makers, and what it
# logs of single processes is no concern of who evaluates. A thread that is late at the end of an
# evaluation must not start Ray anew.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_TQDM": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # on standard output, where JSON may go
    "RAY_worker_niceness": "0",  # the evaluation is what is wanted, as in one process
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


@contextmanager
def open_engine(choice: EngineChoice) -> Iterator[Engine | None]:
    """The engine of a choice, None for this process; Ray is imported and connected here.

    Raises:
        OptionError: if Ray is not installed, or more is asked for than its cluster has.
        DataError: if there is no such cluster.
    """
    if choice.engine == LOCAL:
        yield None
        return
    if not ray_installed():
        raise OptionError('the engine ray needs Ray: pip install "fillmask-ui[ray]"')
    for name, value in _ENVIRONMENT.items():  # before Ray is imported, which reads some of it
        os.environ.setdefault(name, value)
    from fillmask_ui.cluster.ray_connection import connect
    from fillmask_ui.cluster.ray_pipeline import RayEngine

    with connect(choice) as cluster:
        yield RayEngine(cluster)
