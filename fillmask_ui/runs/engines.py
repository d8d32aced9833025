"""Where an evaluation is measured: in this process, or by an engine of a feature."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

from fillmask_ui.errors import OptionError, how_to_install
from fillmask_ui.extensions import features, load
from fillmask_ui.options import check_options, option
from fillmask_ui.runs.perform import Engine

LOCAL = "local"
ENGINES = {name: row for feature in features() for name, row in feature.engines.items()}


@dataclass(frozen=True)
class EngineChoice:
    """Where an evaluation is measured: in this process, or by the processes of an engine."""

    option_panel = "Engines and batches"

    engine: str = option(
        LOCAL,
        "local (this process) or ray (several processes, on one machine or many).",
        choices=(LOCAL, *ENGINES),
    )
    address: str | None = option(
        None, "Address of a Ray cluster; by default Ray runs on this machine.", metavar="ADDRESS"
    )
    workers: int | None = option(
        None, "Ray processes, each with the model; one per core by default.", metavar="N", least=1
    )
    threads_per_worker: int | None = option(
        None, "Threads of each Ray process; 1 by default.", metavar="T", least=1
    )

    def __post_init__(self) -> None:
        check_options(self)
        names = ("address", "workers", "threads_per_worker")
        flags = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name) is not None]
        if self.engine == LOCAL and flags:
            raise OptionError(f"{', '.join(flags)} is about Ray: add --engine ray, or leave it out")


@contextmanager
def open_engine(choice: EngineChoice) -> Iterator[Engine | None]:
    """The engine of a choice, None for this process; a `FillmaskError` if it cannot be used."""
    if choice.engine == LOCAL:
        yield None
        return
    row = ENGINES[choice.engine]
    if find_spec(row.package) is None:
        raise OptionError(
            f"the engine {choice.engine} needs the library {row.package}, which is not installed: "
            f"{how_to_install(row.package)}"
        )
    with load(row.target)(choice) as engine:
        yield engine


def installed_engines() -> list[str]:
    """The engines beside this process whose library is installed."""
    return [name for name, row in ENGINES.items() if find_spec(row.package) is not None]
