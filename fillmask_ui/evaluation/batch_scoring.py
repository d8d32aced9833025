"""Texts through the models: views in batches, logits, scores.

Axes: B rows of a batch, T tokens, M hidden positions, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import MOST_CALLS, Budget, PaddedBatch, logits_of_batch, pad, plan_batches
from fillmask_ui.evaluation.rows import (
    EvaluatedText,
    LogitDifference,
    MaskedText,
    Prepared,
    TokenScores,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.scoring import Exponentials

# Fields, each of length M, of the `TokenScores` of each model in turn, then of the
# `LogitDifference` where there are two.
Scores = list[dict[str, np.ndarray]]

# Logits of all models and workers at a time; 250,000 words leave 128 positions.
LOGIT_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class _View:
    """A text with some of its hidden positions to be scored: one row of a batch."""

    text: Prepared
    number: int  # of the views of its text
    entries: np.ndarray  # int64, those of `cols` that are scored


@dataclass(frozen=True, eq=False)
class Batch:
    """What goes through the models at once."""

    views: Sequence[_View]
    through: float  # share of the window's tokens that went through the models after it

    def tokens(self, done: frozenset[int]) -> int:
        """How many it scores, of texts that are not `done`."""
        fresh = (view for view in self.views if view.text.row.id not in done)
        return sum(len(view.entries) for view in fresh)


class Scorer(ABC):
    """Measures texts in batches, by models with one tokenizer; each metric has one.

    Args:
        models: one, or two that are compared token by token.
        batch_tokens: largest B * T.
        budget: bytes of logits that all threads together may hold.
    """

    def __init__(self, models: Sequence[MaskedLM], batch_tokens: int, budget: Budget) -> None:
        self._models = models
        self._batch_tokens = batch_tokens
        self._budget = budget
        self._position_bytes = 4 * sum(model.signature.vocabulary_size for model in models)
        self._most = max(1, budget.total // self._position_bytes)  # positions of a call
        # Of a batch that several texts share. All calls at a time have room, however many there
        # are: batches are the same whatever the number of threads.
        self._fair = max(1, self._most // MOST_CALLS)

    def batches(
        self, texts: Sequence[Prepared], number: int, done: frozenset[int]
    ) -> Iterator[Batch]:
        """The batches of window `number`, those of texts that are all `done` left out."""
        views = [
            _View(text, place, text.hidden.scored(place))
            for text in texts
            for place in range(text.hidden.view_count)
        ]
        lengths = [len(view.text.hidden.ids) for view in views]
        planned = plan_batches(
            lengths,
            max_tokens=self._batch_tokens,
            targets=[len(view.entries) for view in views],
            max_targets=self._fair,
        )
        total, through = sum(lengths), 0
        # Batches run from short texts to long; in another order, what is done at any moment is a
        # fair sample of the texts, and a run stopped early has an honest mean.
        for place in np.random.default_rng(number).permutation(len(planned)):
            through += sum(lengths[unit] for unit in planned[place])
            batch = [views[unit] for unit in planned[place]]
            if not all(view.text.row.id in done for view in batch):
                yield Batch(batch, through / total)

    @abstractmethod
    def score(self, batch: Batch) -> Any:
        """What `finished` makes rows of; safe to call from many threads."""

    @abstractmethod
    def finished(self, batch: Batch, scores: Any, done: frozenset[int]) -> Iterator[EvaluatedText]:
        """The texts whose last view was in this batch; called in the order of the batches."""

    def _room_for(self, positions: int) -> AbstractContextManager[None]:
        """The part of the budget that the logits at some positions take, or all there is."""
        return self._budget.part(min(positions * self._position_bytes, self._budget.total))


class BatchScorer(Scorer):
    """Scores the true tokens of each view by one pass."""

    def __init__(self, models: Sequence[MaskedLM], batch_tokens: int, budget: Budget) -> None:
        super().__init__(models, batch_tokens, budget)
        # Id of a text, number of a view.
        self._scored: dict[int, dict[int, Scores]] = defaultdict(dict)

    def score(self, batch: Batch) -> Scores:
        """At all M positions asked of a batch."""
        views = batch.views
        seen = [view.text.hidden.view(view.number) for view in views]
        padded = pad(seen, self._models[0].vocabulary.pad_id)  # [B, T]
        rows = np.repeat(np.arange(len(views)), [len(view.entries) for view in views])  # [M]
        cols = np.concatenate([view.text.hidden.cols[view.entries] for view in views])  # [M]
        targets = np.concatenate([view.text.row.true_ids[view.entries] for view in views])  # [M]
        chunks: list[Scores] = []
        for start in range(0, len(rows), self._most):
            asked = slice(start, start + self._most)
            with self._room_for(len(rows[asked])):
                chunks += self._score_call(padded, rows[asked], cols[asked], targets[asked])
        return _join(chunks)

    def _score_call(
        self, padded: PaddedBatch, rows: np.ndarray, cols: np.ndarray, targets: np.ndarray
    ) -> Sequence[Scores]:
        """Scores of one call; a function of its own, so that the logits are gone at its end."""
        # One [m, V] per model.
        logits = [logits_of_batch(model, padded, rows, cols) for model in self._models]
        return list(_score_logits(logits, targets))

    def finished(
        self, batch: Batch, scores: Scores, done: frozenset[int]
    ) -> Iterator[EvaluatedText]:
        start = 0
        for view in batch.views:
            index = view.text.row.id
            own = slice(start, start + len(view.entries))
            start = own.stop
            if index in done:
                continue
            self._scored[index][view.number] = [
                {name: values[own] for name, values in record.items()} for record in scores
            ]
            if len(self._scored[index]) == view.text.hidden.view_count:
                parts = self._scored.pop(index)
                of_text = _join([part for _, part in sorted(parts.items())])
                yield _evaluated(view.text.row, of_text, self._models)


def _join(parts: Sequence[Scores]) -> Scores:
    if len(parts) == 1:
        return parts[0]
    return [
        {name: np.concatenate([each[name] for each in records]) for name in records[0]}
        for records in zip(*parts, strict=True)
    ]


def _evaluated(row: MaskedText, scores: Scores, models: Sequence[MaskedLM]) -> EvaluatedText:
    token = models[0].vocabulary.token
    own, *second = (
        TokenScores(**record, top_tokens=tuple(token(int(index)) for index in record["top_ids"]))
        for record in scores[: len(models)]
    )
    if not second:
        return EvaluatedText(**vars(row), scores=own)
    difference = LogitDifference(**scores[2])
    return EvaluatedText(**vars(row), scores=own, baseline=second[0], difference=difference)


def _score_logits(logits: Sequence[np.ndarray], targets: np.ndarray) -> Iterator[Scores]:
    """Scores of a few positions at a time: what they take stays in the cache."""
    rooms = [scoring.scratch(own) for own in logits]
    for part in scoring.chunks(max(logits, key=lambda own: own.shape[1])):
        here = [own[part] for own in logits]  # each [m, V]
        values = [scoring.exponentials(own, room) for own, room in zip(here, rooms, strict=True)]
        scores = [
            vars(scoring.score_targets(each, own, targets[part]))
            for each, own in zip(values, here, strict=True)
        ]
        if len(here) == 2:
            scores.append(_difference(here, values))
        yield scores


def _difference(logits: list[np.ndarray], values: list[Exponentials]) -> dict[str, np.ndarray]:
    """`LogitDifference` at m positions."""
    width = min(own.shape[1] for own in logits)
    if any(own.shape[1] != width for own in logits):
        # One model pads its vocabulary: compare the tokens that both have.
        logits = [own[:, :width] for own in logits]
        values = [scoring.exponentials(own) for own in logits]
    first, second = (own.log_probabilities for own in values)  # float64 [m, width]
    ratio = scoring.log_ratio(first, second)
    distance = np.abs(scoring.log_ratio(*logits))
    return {
        "kl_nats": scoring.expectation(values[0], ratio),
        "kl_reverse_nats": scoring.expectation(values[1], -ratio),
        "mean_abs": distance.mean(axis=1, dtype=np.float64),
        "max_abs": distance.max(axis=1).astype(np.float64),
    }
