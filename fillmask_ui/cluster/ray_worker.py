"""What each process of the pool does: holds the model, measures one unit after another."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import ray

from fillmask_ui.cluster.ray_blocks import CellTask, GivenUp, examples_of, told_error
from fillmask_ui.cluster.ray_machines import Placed, load_placed
from fillmask_ui.evaluation import Heartbeat, RunningSummary, evaluate
from fillmask_ui.evaluation.measure import windows_of
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, SkippedText
from fillmask_ui.runs.rows_file import checksum, dump_row

# So many processes may end in a unit before it is given up.
TRIES = 6


class Attempts:
    """How often units were begun that have not ended; an actor on the machine of the driver.

    Ray's own limit of retries also counts what never began, on a machine that has just left.
    """

    def __init__(self) -> None:
        self._begun = Counter[tuple[int, ...]]()

    def begin(self, unit: tuple[int, ...]) -> int:
        """Count an attempt."""
        self._begun[unit] += 1
        return self._begun[unit]

    def end(self, unit: tuple[int, ...]) -> None:
        """Forget a unit."""
        del self._begun[unit]


class Worker:
    """Measures units of cells with one model; an actor of Ray Data's pool.

    An exception is part of the answer: the driver decides. The model is loaded with the first unit,
    so that a process that ends in the middle of that counts as an attempt, too.
    """

    def __init__(self, cells: Sequence[CellTask], placed: Sequence[Placed], attempts: Any) -> None:
        self._cells, self._placed, self._attempts = cells, placed, attempts
        self._name = ray.get_runtime_context().get_actor_id()
        self._models: tuple[MaskedLM, MaskedLM | None] | None = None

    def __call__(self, units: pa.Table) -> pa.Table:
        return pa.Table.from_pylist([self._answer(unit) for unit in units.to_pylist()])

    def _answer(self, unit: dict[str, Any]) -> dict[str, Any]:
        answer = {name: unit[name] for name in ("cell", "block", "part", "told")}
        answer |= {"lines": b"", "summary": b"", "tokens": 0, "worker": self._name}
        if answer["told"]:
            return answer
        key = (unit["cell"], unit["block"], unit["part"])
        if ray.get(self._attempts.begin.remote(key)) > TRIES:
            return answer | {"told": pickle.dumps(GivenUp())}
        try:
            answer |= self._measure(unit)
            self._attempts.end.remote(key)
            return answer
        except MemoryError:
            os._exit(1)  # with what is left nothing more can be done; a fresh process tries again
        except Exception as error:  # noqa: BLE001 - raised in the driver
            return answer | {"told": pickle.dumps(told_error(error))}

    def _measure(self, unit: dict[str, Any]) -> dict[str, Any]:
        if self._models is None:
            model, *others = map(load_placed, self._placed)
            self._models = model, others[0] if others else None
        model, baseline = self._models
        task, examples = self._cells[unit["cell"]], examples_of(unit)
        checksums = {example.id: checksum(example.content) for example in examples}
        done = frozenset(unit["done"]) | self._of_other_parts(unit, examples, task)
        running = RunningSummary(
            config=task.config, vocabulary_size=model.signature.vocabulary_size
        )
        lines, tokens = [], 0
        for row in evaluate(model, examples, task.config, baseline=baseline, done=done):
            if isinstance(row, Heartbeat):
                continue
            running.add(row)
            lines.append(dump_row(row, checksums[row.id]))
            tokens += 0 if isinstance(row, SkippedText) else len(row.scores.nll_nats)
        return {"lines": b"".join(lines), "summary": pickle.dumps(running), "tokens": tokens}

    def _of_other_parts(
        self, unit: dict[str, Any], examples: list[Example], task: CellTask
    ) -> frozenset[int]:
        """The texts of the windows that other units of the same block measure."""
        if task.parts == 1 or self._models is None:
            return frozenset()
        windows = enumerate(windows_of(self._models[0], examples, task.config, self._models[1]))
        others = (ids for number, ids in windows if number % task.parts != unit["part"])
        return frozenset(index for ids in others for index in ids)
