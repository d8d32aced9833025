"""What each process of the pool does: holds the model, measures one unit after another."""

from __future__ import annotations

import os
import pickle
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import ray

from fillmask_ui.cluster.blocks import examples_of
from fillmask_ui.cluster.ledger import Attempt, Trial, Unit
from fillmask_ui.cluster.placing import Placed, load_placed
from fillmask_ui.cluster.problems import problem_of
from fillmask_ui.errors import FillmaskError, ModelError
from fillmask_ui.evaluation import (
    EvaluatedText,
    EvaluationConfig,
    Heartbeat,
    RunningSummary,
    evaluate,
)
from fillmask_ui.evaluation.measure import windows_of
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, SkippedText
from fillmask_ui.runs.record import other_text
from fillmask_ui.runs.rows_file import checksum, dump_row

CRASHED = "ended the process that measured it, twice"
_TELL_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class CellTask:
    """What a worker has to know of a cell."""

    run: str  # its name, for messages
    config: EvaluationConfig  # resolved for the models, the size of the batches too
    # Of the rows that the run has: ids in ascending order, int64 [N], and checksums, uint32 [N].
    stored: Any = None  # ObjectRef of the two; None for none


class Worker:
    """Measures units of cells with one model; an actor of Ray Data's pool.

    What goes wrong with texts or models is a row with a `problem`, never an exception: the driver
    decides.

    Args:
        ledger: handle of the actor.
        cells: by number.
        model: where to load it from.
        baseline: of a second model; None without one.
    """

    def __init__(
        self, ledger: Any, cells: Sequence[CellTask], model: Placed, baseline: Placed | None
    ) -> None:
        self._ledger, self._cells = ledger, cells
        self._name = uuid.uuid4().hex
        self._problem = ""
        self._stored: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        if not ray.get(ledger.start.remote()):
            failed = ModelError(
                "processes of Ray end again and again while they load the model; is there memory "
                "for it as often as there are workers? Ask for fewer (--workers)"
            )
            self._problem = problem_of(failed)
            return
        try:
            self._model = load_placed(model)
            self._baseline = load_placed(baseline) if baseline else None
        except FillmaskError as error:
            self._problem = problem_of(error)
        ray.get(ledger.loaded.remote())

    def __call__(self, units: pa.Table) -> pa.Table:
        made = [self._measured(unit) for unit in units.to_pylist()]
        return pa.table({name: [each[name] for each in made] for name in made[0]})

    def _measured(self, unit: dict[str, Any]) -> dict[str, Any]:
        names = ("cell", "block", "part", "parts")
        answer = {name: unit[name] for name in names}
        answer |= {"lines": b"", "summary": b"", "found": 0, "tokens": 0}
        answer["problem"] = unit["problem"] or self._problem
        if answer["problem"]:
            return answer
        try:
            return answer | self._measure(unit)
        except FillmaskError as error:
            return answer | {"problem": problem_of(error)}
        except MemoryError:
            # With what is left nothing more can be done; a fresh process tries again, carefully.
            os._exit(1)

    def _measure(self, unit: dict[str, Any]) -> dict[str, Any]:
        key: Unit = (unit["cell"], unit["block"], unit["part"])
        attempt: Attempt = ray.get(self._ledger.begin.remote(self._name, key))
        task, examples = self._cells[unit["cell"]], examples_of(unit)
        if not attempt.wanted:
            return {}
        checksums = {example.id: checksum(example.text) for example in examples}
        stored = self._stored_of(unit["cell"], task, checksums)
        config = task.config
        readable = self._readable(key, attempt, examples, config)
        done = stored
        if unit["parts"] > 1:
            done |= self._of_other_parts(unit, readable, config)
        left_out = done | attempt.suspects | attempt.alone
        rows = list(self._rows(key, readable, config, left_out, attempt))
        for example in readable:
            if example.id in attempt.suspects - attempt.alone - done:
                self._note(key, attempt, "alone", (example.id,))
                rows += self._rows(key, [example], config, frozenset(), None)
        # Each part of a block prepares all of its texts.
        aside = (attempt.alone | (attempt.unreadable if unit["part"] == 0 else set())) - done
        rows += [SkippedText(index, CRASHED) for index in sorted(aside)]
        running = RunningSummary(
            config=config, vocabulary_size=self._model.signature.vocabulary_size
        )
        for row in rows:
            running.add(row)
        ray.get(self._ledger.end.remote(key, sorted(aside)))
        return {
            "lines": b"".join(dump_row(row, checksums[row.id]) for row in rows),
            "summary": pickle.dumps(running),
            "found": len(stored) if unit["part"] == 0 else 0,
            "tokens": sum(map(_tokens, rows)),
        }

    def _stored_of(self, cell: int, task: CellTask, checksums: dict[int, int]) -> frozenset[int]:
        """The texts of a block that the run has already; a `DataError` if one has changed."""
        if task.stored is None:
            return frozenset()
        if cell not in self._stored:
            self._stored[cell] = ray.get(task.stored)  # in the memory that the machine shares
        ids, known = self._stored[cell]
        asked = np.array([*checksums], np.int64)
        places = np.searchsorted(ids, asked)
        places[places == len(ids)] = 0
        found = ids[places] == asked
        for index, place in zip(asked[found].tolist(), places[found].tolist(), strict=True):
            if checksums[index] != known[place]:
                raise other_text(task.run, index)
        return frozenset(asked[found].tolist())

    def _readable(
        self, key: Unit, attempt: Attempt, examples: list[Example], config: EvaluationConfig
    ) -> list[Example]:
        """All texts but those that end the process when they are prepared."""
        if not attempt.careful:
            return examples
        readable = [example for example in examples if example.id not in attempt.unreadable]
        for example in readable:
            self._note(key, attempt, "prepare", (example.id,))
            list(windows_of(self._model, [example], config, self._baseline))
        return readable

    def _of_other_parts(
        self, unit: dict[str, Any], examples: list[Example], config: EvaluationConfig
    ) -> frozenset[int]:
        """The texts of the windows that other units of the same block measure."""
        windows = windows_of(self._model, examples, config, self._baseline)
        others = (
            ids for number, ids in enumerate(windows) if number % unit["parts"] != unit["part"]
        )
        return frozenset(index for ids in others for index in ids)

    def _rows(
        self,
        key: Unit,
        examples: list[Example],
        config: EvaluationConfig,
        done: frozenset[int],
        attempt: Attempt | None,
    ) -> Iterator[EvaluatedText | SkippedText]:
        """Rows of a block or of one text; an attempt that is careful notes each batch."""
        models, begun = [self._model, self._baseline], None
        if attempt is not None and attempt.careful:
            models = [model and cast("MaskedLM", _OneCall(model)) for model in models]
            begun = partial(self._note, key, attempt, "batch")
        model, baseline = models
        told = time.monotonic()
        # Of what a heartbeat counts, others have or will have a part.
        own = 1 - len(done & {example.id for example in examples}) / max(1, len(examples))
        rows = evaluate(
            cast("MaskedLM", model),
            examples,
            config,
            baseline=baseline,
            done=done,
            heartbeat=True,
            begun=begun,
        )
        for row in rows:
            if not isinstance(row, Heartbeat):
                yield row
            elif time.monotonic() - told > _TELL_SECONDS:
                told = time.monotonic()
                self._ledger.tell.remote(self._name, key, own * row.texts, row.tokens)

    def _note(self, key: Unit, attempt: Attempt, step: str, ids: tuple[int, ...]) -> None:
        """Tell what is about to be tried, and wait until it is written down."""
        if attempt.careful:
            ray.get(self._ledger.attempt.remote(key, Trial(step, ids)))


class _OneCall:
    """A model that one thread calls at a time: then it is known which batch ends the process."""

    concurrent_calls = 1

    def __init__(self, model: MaskedLM) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def _tokens(row: EvaluatedText | SkippedText) -> int:
    """How many were scored."""
    return 0 if isinstance(row, SkippedText) else len(row.scores.nll_nats)
