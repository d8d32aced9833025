"""Texts through the models: views in batches, logits, scores.

Axes: B rows of a batch, T tokens, M hidden positions, V vocabulary.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import MOST_CALLS, Budget, logits_of_batch, pad, plan_batches
from fillmask_ui.evaluation.rows import LogitDifference, Prepared, TokenScores
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.scoring import Exponentials

# Records of arrays [M]: the `TokenScores` of each model, then the `LogitDifference` of two.
Scores = list[Any]

# Logits of all models and workers at a time; 250,000 words leave 128 positions.
LOGIT_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class View:
    """One row of a batch: a text, and which of its views the models see."""

    item: tuple[Prepared, ...]  # the example in each lane of `evaluate`
    lane: int
    number: int  # of the views of its text
    done: bool  # whether a stopped run already has the example

    @property
    def text(self) -> Prepared:
        return self.item[self.lane]

    @cached_property
    def entries(self) -> np.ndarray:
        """int64, those of `cols` that are scored."""
        return self.text.hidden.scored(self.number)


@dataclass(frozen=True, eq=False)
class Batch:
    """Views that go through the models at once."""

    views: Sequence[View]
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

    def batches(self, views: Sequence[View], number: int) -> Iterator[Batch]:
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
        for place in np.random.default_rng(number).permutation(len(planned)):
            through += sum(lengths[unit] for unit in planned[place])
            batch = [views[unit] for unit in planned[place]]
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
            asked = slice(start, start + self._most)
            at = padded, rows[asked], cols[asked]
            with self._room_for(len(rows[asked])):
                logits = [logits_of_batch(model, *at) for model in self.models]
                chunks += _score_logits(logits, targets[asked])
                del logits  # before their room is given to another call
        whole = joined(chunks)
        for place in range(len(self.models)):
            top_tokens = tuple(map(vocabulary.token, whole[place].top_ids.tolist()))
            whole[place] = replace(whole[place], top_tokens=top_tokens)
        ends = itertools.accumulate(sizes)
        parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        return [
            [
                type(own)(**{name: values[part] for name, values in vars(own).items()})
                for own in whole
            ]
            for part in parts
        ]

    def _room_for(self, positions: int) -> AbstractContextManager[None]:
        """The part of the budget that the logits at some positions take, at most all."""
        return self.budget.part(min(positions * self._position_bytes, self.budget.total))


def joined(parts: Sequence[Scores]) -> Scores:
    """Scores of positions one after another, of those of some at a time."""
    if len(parts) == 1:
        return parts[0]
    found = []
    for records in zip(*parts, strict=True):
        columns: dict[str, Any] = {}
        for name in vars(records[0]):
            values = [getattr(own, name) for own in records]
            tuples = isinstance(values[0], tuple)
            columns[name] = (*itertools.chain(*values),) if tuples else np.concatenate(values)
        found.append(type(records[0])(**columns))
    return found


def _score_logits(logits: Sequence[np.ndarray], targets: np.ndarray) -> Iterator[Scores]:
    """Scores of a few positions at a time, which stay in the cache; logits are [m, V]."""
    rooms = [scoring.scratch(own) for own in logits]
    for part in scoring.chunks(max(logits, key=lambda own: own.shape[1])):
        here = [own[part] for own in logits]  # each [m, V]
        values = [scoring.exponentials(own, room) for own, room in zip(here, rooms, strict=True)]
        scores: Scores = [
            TokenScores(**vars(scoring.score_targets(each, own, targets[part])))
            for each, own in zip(values, here, strict=True)
        ]
        if len(here) == 2:
            scores.append(_difference(here, values))
        yield scores


def _difference(logits: list[np.ndarray], values: list[Exponentials]) -> LogitDifference:
    width = min(own.shape[1] for own in logits)
    if any(own.shape[1] != width for own in logits):
        # One model pads its vocabulary.
        logits = [own[:, :width] for own in logits]
        values = [scoring.exponentials(own) for own in logits]
    first, second = (own.log_probabilities for own in values)  # float64 [m, width]
    ratio = scoring.log_ratio(first, second)
    distance = np.abs(scoring.log_ratio(*logits))
    return LogitDifference(
        kl_nats=scoring.expectation(values[0], ratio),
        kl_reverse_nats=scoring.expectation(values[1], -ratio),
        mean_abs=distance.mean(axis=1, dtype=np.float64),
        max_abs=distance.max(axis=1).astype(np.float64),
    )
