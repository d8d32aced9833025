"""The workers of an evaluation: each holds the model, measures a block of texts, takes the next."""

from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from fillmask_ui.errors import DataError, FillmaskError, first_line
from fillmask_ui.evaluation import EvaluationConfig, Heartbeat, evaluate
from fillmask_ui.features.ray.ray_connection import Cluster
from fillmask_ui.features.ray.ray_machines import Placed, load_placed
from fillmask_ui.records import Example
from fillmask_ui.runs.rows_file import checksum, dump_row

Block = list[Example]
# So many processes may end in a block, or in a row while they load the model.
TRIES = 4
_POLL_SECONDS = 0.5


class Worker:
    """Another process that holds the models; an actor of Ray."""

    def __init__(self, placed: Sequence[Placed], config: EvaluationConfig) -> None:
        self._placed, self._config = placed, config

    def load(self) -> None:
        """Apart from `__init__`, so that an error comes back as it is."""
        # The model comes first, then its reference if there is one.
        models = [load_placed(placed) for placed in self._placed]
        self._model, self._candidate = models[-1], models[0] if models[1:] else None

    def measure(self, block: Block) -> list[bytes]:
        """Lines of the rows file, one per text."""
        checksums = {example.id: checksum(example.content) for example in block}
        rows = evaluate(self._model, block, self._config, candidate=self._candidate)
        return [dump_row(row, checksums[row.id]) for row in rows if not isinstance(row, Heartbeat)]


class Crew:
    """All workers, and which of them has which block."""

    def __init__(
        self, cluster: Cluster, placed: Sequence[Placed], config: EvaluationConfig
    ) -> None:
        self._cluster, self._arguments = cluster, (placed, config)
        self._actor: Any = ray.remote(num_cpus=cluster.threads, max_restarts=0)(Worker)
        # Reference to what is computed -> the worker, and its block; None while it loads the model.
        self._pending: dict[Any, tuple[Any, Block | None]] = {}
        self._idle: list[Any] = []
        self._waiting = deque[Block]()  # the next block, or those whose worker ended
        self._ended = Counter[int]()  # processes by the first text of their block, -1 of loading
        self._given_up: DataError | None = None

    @property
    def ready(self) -> int:
        """Workers that have loaded the model."""
        return len(self._idle) + sum(block is not None for _, block in self._pending.values())

    def measure(self, blocks: Iterator[Block]) -> Generator[list[bytes]]:
        """Lines of rows as they come, in any order; none now and then as a sign of life.

        A block whose workers end again and again is set aside: after all others it is a
        `DataError`, and so is a second one at once.
        """
        try:
            for _ in range(self._cluster.workers):
                self._start()
            while self._give_out(blocks):
                done, _ = ray.wait(list(self._pending), timeout=_POLL_SECONDS)
                for reference in done:
                    yield self._result(reference)
                if not done:
                    yield []
            if self._given_up is not None:
                raise self._given_up
        finally:
            if ray.is_initialized():
                for worker in (*self._idle, *(worker for worker, _ in self._pending.values())):
                    ray.kill(worker)

    def _start(self) -> None:
        worker = self._actor.remote(*self._arguments)
        self._pending[worker.load.remote()] = worker, None

    def _give_out(self, blocks: Iterator[Block]) -> bool:
        """Blocks to idle workers; whether there is anything left to wait for."""
        while True:
            if not self._waiting:
                self._waiting.extend(islice(blocks, 1))
            if not self._waiting or not self._idle:
                break
            worker, block = self._idle.pop(), self._waiting.popleft()
            self._pending[worker.measure.remote(block)] = worker, block
        return bool(self._waiting) or any(block for _, block in self._pending.values())

    def _result(self, reference: Any) -> list[bytes]:
        worker, block = self._pending.pop(reference)
        try:
            lines: list[bytes] | None = ray.get(reference)
        except RayError as error:
            cause = error.cause if isinstance(error, RayTaskError) else None
            if isinstance(cause, FillmaskError):
                raise cause from error
            if cause is not None and not isinstance(cause, MemoryError):
                raise
            ray.kill(worker)
            self._start()
            self._lost(block, first_line(error))
            return []
        self._idle.append(worker)
        if block is None:
            self._ended[-1] = 0
        return lines or []

    def _lost(self, block: Block | None, why: str) -> None:
        """A process has ended; its block goes to another one, unless it ended too many."""
        first = block[0].id if block else -1
        self._ended[first] += 1
        if self._ended[first] < TRIES:
            self._waiting.extend([block] if block else [])
            return
        when = f"at texts {first:,} to {block[-1].id:,}" if block else "while it loaded the model"
        error = DataError(
            f"Ray gave up {when} ({why}): is there memory for the model as often as there are "
            "workers (--workers)? What is stored is kept; go on with --resume, without --engine "
            "ray if one of these texts is the cause"
        )
        if block is None or self._given_up is not None:
            raise self._given_up or error
        self._given_up = error
