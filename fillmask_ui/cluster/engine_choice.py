"""Where an evaluation is measured, as a user chooses it; imports nothing of Ray."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from fillmask_ui.errors import OptionError
from fillmask_ui.options import check_options, option

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


@dataclass(frozen=True)
class EngineChoice:
    """This process, or the processes of Ray.

    Raises:
        OptionError: for values out of range, or options of Ray without it.
    """

    engine: str = option(
        LOCAL, "local, or ray: several processes, on one machine or many.", choices=ENGINES
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
