"""The engine `ray`; Ray is imported when it is asked for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fillmask_ui.runs import Engine
from fillmask_ui.runs.engines import EngineChoice

# For Ray, unless the user has said otherwise: nothing is reported to its makers, and logs of single
# processes are dropped. A thread that is late at the end of an evaluation must not start Ray anew.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # on standard output, where JSON may go
    "RAY_worker_niceness": "0",  # the evaluation is what is wanted, as in one process
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


@contextmanager
def open_ray(choice: EngineChoice) -> Iterator[Engine]:
    """The engine of a choice; a `FillmaskError` if Ray cannot be used."""
    for name, value in _ENVIRONMENT.items():  # before Ray is imported, which reads some of it
        os.environ.setdefault(name, value)
    from fillmask_ui.features.ray.ray_connection import connect
    from fillmask_ui.features.ray.ray_engine import RayEngine

    with connect(choice.address, choice.workers, choice.threads_per_worker or 1) as cluster:
        yield RayEngine(cluster)
