"""Texts through the models: views in batches, logits, scores.

Axes: B rows of a batch, T tokens, M hidden positions, V vocabulary.
"""

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import MOST_CALLS, Budget, PaddedBatch, logits_of_batch, pad, plan_batches
from fillmask_ui.evaluation.rows import LogitDifference, Prepared, TokenScores
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.scoring import Exponentials

# Records of arrays [M]: the `TokenScores` of each model, then the `LogitDifference` of two.
Scores = list[Any]

# Logits of all models and workers at a time; 250,000 words leave 128 positions.
LOGIT_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class TextView:
    """One row of a batch: a text, and which of its views the models see."""

    example: tuple[Prepared, ...]  # in each lane of `evaluate`
    lane: int
    number: int  # of the views of its text
    done: bool  # whether a stopped run already has the example

    @property
    def text(self) -> Prepared:
        return self.example[self.lane]

    @cached_property
    def entries(self) -> np.ndarray:
        """int64, those of `cols` that are scored."""
        return self.text.hidden.scored(self.number)


@dataclass(frozen=True, eq=False)
class Batch:
    """Views that go through the models at once."""

    views: Sequence[TextView]
    through: float  # share of the window's tokens that went through the models after it


@dataclass(eq=False)
class Scorer:
    """Measures texts in batches: the true tokens of each view in one pass."""

    models: Sequence[MaskedLM]  # one, or two with one tokenizer
    batch_tokens: int  # largest B * T
    budget: Budget  # bytes of logits that all threads together may hold

    def __post_init__(self) -> None:
        self._position_bytes = 4 * sum(model.signature.vocabulary_size for model in self.models)
        self._most = max(1, self.budget.total // self._position_bytes)  # positions of a call
        # Of a batch of several texts: all calls at a time have room, however many there are, so
        # that batches are the same whatever the number of threads.
        self._fair = max(1, self._most // MOST_CALLS)
        # In the calls of each model, all threads together; with several at a time more than passed.
        self.call_seconds = [0.0 for _ in self.models]
        self._timing = threading.Lock()

    def batches(self, views: Sequence[TextView], number: int) -> Iterator[Batch]:
        """The batches of window `number`, without those of texts that are all done."""
        lengths = [len(view.text.hidden.ids) for view in views]
        planned = plan_batches(
            lengths,
            max_tokens=self.batch_tokens,
            targets=[len(view.entries) for view in views],
            max_targets=self._fair,
        )
        total, through = sum(lengths), 0
        # In another order than from short to long, what is done at any moment is a fair sample.
        for index in np.random.default_rng(number).permutation(len(planned)):
            through += sum(lengths[view] for view in planned[index])
            batch = [views[view] for view in planned[index]]
            if not all(view.done for view in batch):
                yield Batch(batch, through / total)

    def score(self, batch: Batch) -> list[Scores]:
        """Of each view; called from many threads."""
        views, vocabulary = batch.views, self.models[0].vocabulary
        padded = pad([view.text.hidden.view(view.number) for view in views], vocabulary.pad_id)
        sizes = [len(view.entries) for view in views]
        rows = np.repeat(np.arange(len(views)), sizes)  # [M]
        cols = np.concatenate([view.text.hidden.cols[view.entries] for view in views])  # [M]
        targets = np.concatenate([view.text.row.true_ids[view.entries] for view in views])  # [M]
        chunks: list[Scores] = []
        for start in range(0, len(rows), self._most):
            call = slice(start, start + self._most)
            with self._room_for(len(rows[call])):
                logits = [
                    self._timed_logits(index, padded, rows[call], cols[call])
                    for index in range(len(self.models))
                ]
                chunks += _score_logits(logits, targets[call])
                del logits  # before their room is given to another call
        scores = join_scores(chunks)
        for index in range(len(self.models)):
            top_tokens = tuple(map(vocabulary.token, scores[index].top_ids.tolist()))
            scores[index] = replace(scores[index], top_tokens=top_tokens)
        stops = itertools.accumulate(sizes)
        parts = [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
        return [[_part_of(record, part) for record in scores] for part in parts]

    def _timed_logits(
        self, index: int, batch: PaddedBatch, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        """`logits_of_batch` of a model, whose time counts."""
        began = time.perf_counter()
        logits = logits_of_batch(self.models[index], batch, rows, cols)
        with self._timing:
            self.call_seconds[index] += time.perf_counter() - began
        return logits

    def _room_for(self, positions: int) -> AbstractContextManager[None]:
        """The part of the budget that the logits at some positions take, at most all."""
        return self.budget.part(min(positions * self._position_bytes, self.budget.total))


def _part_of(record: Any, part: slice) -> Any:
    """Some positions of a record of arrays [M]."""
    return type(record)(**{name: column[part] for name, column in vars(record).items()})


def join_scores(parts: Sequence[Scores]) -> Scores:
    """Scores of positions one after another, of those of some at a time."""
    if len(parts) == 1:
        return parts[0]
    scores = []
    for records in zip(*parts, strict=True):
        columns: dict[str, Any] = {}
        for name, first in vars(records[0]).items():
            values = [getattr(record, name) for record in records]
            if isinstance(first, tuple):
                columns[name] = tuple(itertools.chain.from_iterable(values))
            else:
                columns[name] = np.concatenate(values)
        scores.append(type(records[0])(**columns))
    return scores


def _score_logits(logits: Sequence[np.ndarray], targets: np.ndarray) -> Iterator[Scores]:
    """Scores of a few positions at a time, which stay in the cache; logits are [M, V] a model."""
    memory = [scoring.scratch(model_logits) for model_logits in logits]
    widest = max(logits, key=lambda model_logits: model_logits.shape[1])
    for chunk in scoring.chunks(widest):
        chunk_logits = [model_logits[chunk] for model_logits in logits]  # each [m, V]
        exponentials, scores = [], []
        for model_logits, out in zip(chunk_logits, memory, strict=True):
            values = scoring.exponentials(model_logits, out)
            target_scores = scoring.score_targets(values, model_logits, targets[chunk])
            exponentials.append(values)
            scores.append(TokenScores(**vars(target_scores)))
        if len(logits) == 2:
            yield [*scores, _difference(chunk_logits, exponentials)]
        else:
            yield [*scores]


def _difference(logits: list[np.ndarray], values: list[Exponentials]) -> LogitDifference:
    widths = [model_logits.shape[1] for model_logits in logits]
    if widths[0] != widths[1]:  # one model pads its vocabulary
        logits = [model_logits[:, : min(widths)] for model_logits in logits]
        values = [scoring.exponentials(model_logits) for model_logits in logits]
    # Each float64 [m, V].
    ratio = scoring.log_ratio(values[0].log_probabilities, values[1].log_probabilities)
    distance = np.abs(scoring.log_ratio(*logits))
    return LogitDifference(
        kl_nats=scoring.expectation(values[0], ratio),
        kl_reverse_nats=scoring.expectation(values[1], -ratio),
        mean_abs=distance.mean(axis=1, dtype=np.float64),
        max_abs=distance.max(axis=1).astype(np.float64),
    )
