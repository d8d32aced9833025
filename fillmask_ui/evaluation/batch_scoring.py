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
from fillmask_ui.batching import MOST_CALLS, Budget, logits_of_batch, pad, plan_batches
from fillmask_ui.evaluation.rows import (
    EvaluatedText,
    LogitDifference,
    MaskedText,
    Prepared,
    TokenScores,
)
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.scoring import Exponentials

# Fields [M] of the `TokenScores` of each model, then of the `LogitDifference` of two.
Scores = list[dict[str, np.ndarray]]

# Logits of all models and workers at a time; 250,000 words leave 128 positions.
LOGIT_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class _View:
    """One row of a batch: a text and the hidden positions scored in it."""

    text: Prepared
    number: int  # of the views of its text
    entries: np.ndarray  # int64, those of `cols` that are scored
    done: bool  # whether a stopped run already has the text


@dataclass(frozen=True, eq=False)
class Batch:
    """Views that go through the models at once."""

    views: Sequence[_View]
    through: float  # share of the window's tokens that went through the models after it

    @property
    def tokens(self) -> int:
        """How many it scores, without those of texts that are done."""
        return sum(len(view.entries) for view in self.views if not view.done)


@dataclass(eq=False)
class Scorer(ABC):
    """Measures texts in batches."""

    models: Sequence[MaskedLM]  # one, or two with one tokenizer
    batch_tokens: int  # largest B * T
    budget: Budget  # bytes of logits that all threads together may hold

    def __post_init__(self) -> None:
        self._position_bytes = 4 * sum(model.signature.vocabulary_size for model in self.models)
        self._most = max(1, self.budget.total // self._position_bytes)  # positions of a call
        # Of a batch of several texts: all calls at a time have room, however many there are, so
        # that batches are the same whatever the number of threads.
        self._fair = max(1, self._most // MOST_CALLS)

    def batches(
        self, texts: Sequence[Prepared], number: int, done: frozenset[int]
    ) -> Iterator[Batch]:
        """The batches of window `number`, without those of texts that are all `done`."""
        views = [
            _View(text, place, text.hidden.scored(place), text.row.id in done)
            for text in texts
            for place in range(text.hidden.view_count)
        ]
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

    @abstractmethod
    def score(self, batch: Batch) -> Any:
        """Scores for `finished`; called from many threads."""

    @abstractmethod
    def finished(self, batch: Batch, scores: Any) -> Iterator[EvaluatedText]:
        """The texts whose last view was in this batch; called in order."""

    def _room_for(self, positions: int) -> AbstractContextManager[None]:
        """The part of the budget that the logits at some positions take, at most all."""
        return self.budget.part(min(positions * self._position_bytes, self.budget.total))


class BatchScorer(Scorer):
    """Scores the true tokens of each view in one pass."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # Id of a text, number of a view.
        self._scored: dict[int, dict[int, Scores]] = defaultdict(dict)

    def score(self, batch: Batch) -> Scores:
        views = batch.views
        seen = [view.text.hidden.view(view.number) for view in views]
        padded = pad(seen, self.models[0].vocabulary.pad_id)  # [B, T]
        rows = np.repeat(np.arange(len(views)), [len(view.entries) for view in views])  # [M]
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
        return _join(chunks)

    def finished(self, batch: Batch, scores: Scores) -> Iterator[EvaluatedText]:
        start = 0
        for view in batch.views:
            own = slice(start, start + len(view.entries))
            start = own.stop
            if view.done:
                continue
            parts = self._scored[view.text.row.id]
            parts[view.number] = [
                {name: values[own] for name, values in record.items()} for record in scores
            ]
            if len(parts) == view.text.hidden.view_count:
                del self._scored[view.text.row.id]
                of_text = _join([part for _, part in sorted(parts.items())])
                yield _evaluated(view.text.row, of_text, self.models)


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
    """Scores of a few positions at a time, which stay in the cache; logits are [m, V]."""
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
    width = min(own.shape[1] for own in logits)
    if any(own.shape[1] != width for own in logits):
        # One model pads its vocabulary.
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
