"""From a choice to an engine; imports Ray when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fillmask_ui.cluster.choice import LOCAL, EngineChoice, ray_installed
from fillmask_ui.errors import OptionError
from fillmask_ui.runs import Engine


@contextmanager
def open_engine(choice: EngineChoice) -> Iterator[Engine | None]:
    """The engine of a choice, None for this process; what it started is gone behind the block.

    Raises:
        OptionError: if Ray is not installed, or more is asked for than its cluster has.
        DataError: if there is no such cluster, or its machines are not fit for the work.
    """
    if choice.engine == LOCAL:
        yield None
        return
    if not ray_installed():
        raise OptionError('the engine ray needs Ray: pip install "fillmask-ui[ray]"')
    from fillmask_ui.cluster.connect import set_environment

    set_environment()
    from fillmask_ui.cluster.engine import RayEngine

    with RayEngine.open(choice) as engine:
        yield engine
