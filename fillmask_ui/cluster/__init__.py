"""Evaluations on the processes of Ray, on this machine or many, with the digits of one process.

Ray is imported when it is asked for, here as in `open_engine`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

from fillmask_ui.errors import OptionError
from fillmask_ui.options import check_options, option
from fillmask_ui.runs import Engine

LOCAL, RAY = "local", "ray"

# For Ray, unless the user has said otherwise: nothing is reported to its makers, and logs of single
# processes are dropped. A thread that is late at the end of an evaluation must not start Ray anew.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_TQDM": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # on standard output, where JSON may go
    "RAY_worker_niceness": "0",  # the evaluation is what is wanted, as in one process
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


@dataclass(frozen=True)
class EngineChoice:
    """Where an evaluation is measured: in this process, or by the processes of Ray."""

    engine: str = option(
        LOCAL, "local, or ray: several processes, on one machine or many.", choices=(LOCAL, RAY)
    )
    address: str | None = option(
        None, "Of a Ray cluster; processes of this machine if none.", metavar="ADDRESS"
    )
    workers: int | None = option(
        None, "Processes of Ray that hold the model; all cores by default.", metavar="N", least=1
    )
    threads_per_worker: int | None = option(
        None, "Threads of each process; 1 by default.", metavar="T", least=1
    )

    def __post_init__(self) -> None:
        check_options(self)
        names = ("address", "workers", "threads_per_worker")
        given = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name) is not None]
        if self.engine == LOCAL and given:
            raise OptionError(f"{', '.join(given)} is about Ray: add --engine ray, or leave it out")


def ray_installed() -> bool:
    """Whether Ray can be asked for."""
    return find_spec("ray") is not None


@contextmanager
def open_engine(choice: EngineChoice) -> Iterator[Engine | None]:
    """The engine of a choice, None for this process; a `FillmaskError` if Ray cannot be used."""
    if choice.engine == LOCAL:
        yield None
        return
    if not ray_installed():
        raise OptionError('the engine ray needs Ray: pip install "fillmask-ui[ray]"')
    for name, value in _ENVIRONMENT.items():  # before Ray is imported, which reads some of it
        os.environ.setdefault(name, value)
    from fillmask_ui.cluster.ray_connection import connect
    from fillmask_ui.cluster.ray_pipeline import RayEngine

    with connect(choice.address, choice.workers, choice.threads_per_worker or 1) as cluster:
        yield RayEngine(cluster)
