"""The engine that measures on Ray."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fillmask_ui.cluster.choice import EngineChoice
from fillmask_ui.cluster.connect import Cluster, connect
from fillmask_ui.cluster.pipeline import perform_group
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Cell, Progress, RunStore
from fillmask_ui.runs.perform import Load


@dataclass(frozen=True)
class RayEngine:
    """Measures on the workers of a cluster; made by `open`."""

    cluster: Cluster

    @classmethod
    @contextmanager
    def open(cls, choice: EngineChoice) -> Iterator[RayEngine]:
        """An engine that is connected; errors as of `connect`."""
        with connect(choice) as cluster:
            yield cls(cluster)

    def perform(self, cells: Sequence[Cell], store: RunStore, load: Load) -> Generator[Progress]:
        """As `runs.perform_cells`; each model is loaded once by each worker."""
        groups: dict[tuple[ModelChoice, ModelChoice | None], list[Cell]] = {}
        for cell in cells:
            groups.setdefault((cell.plan.model, cell.plan.baseline), []).append(cell)
        for group in groups.values():
            yield from perform_group(self.cluster, group, store, load)
