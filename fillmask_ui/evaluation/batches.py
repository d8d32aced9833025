"""The texts of one window through the models: batches, logits, scores.

Axes: B rows of a batch, T tokens, M hidden positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import pad, plan_batches
from fillmask_ui.errors import ModelOutputError
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.prepare import Prepared
from fillmask_ui.evaluation.rows import LogitDifference, TokenScores, join, take
from fillmask_ui.protocol import MaskedLM

# Of each model in turn, then their difference where there are two.
Scores = list[TokenScores | LogitDifference]

# Logits of one call; 250,000 words leave 128 positions.
_LOGIT_BYTES = 128 * 2**20
# float64 values of one scoring step.
_SCORED_AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class ScoredText:
    """Scores of all M positions of one text, by each model."""

    index: int  # of the text in its window
    models: list[TokenScores]  # one entry per model
    difference: LogitDifference | None  # between two models; None for one


def score_window(
    models: Sequence[MaskedLM],
    texts: Sequence[Prepared],
    config: EvaluationConfig,
    number: int,
    done: frozenset[int],
) -> Iterator[ScoredText | float]:
    """Scores of the texts of a window, each as soon as all its views are through.

    After each batch comes the share of the window's tokens that went through the models.
    """
    views = [
        (index, view) for index, text in enumerate(texts) for view in range(text.hidden.view_count)
    ]
    most = max(1, _LOGIT_BYTES // (4 * max(model.signature.vocabulary_size for model in models)))
    batches = plan_batches(
        [len(texts[index].hidden.ids) for index, _ in views],
        max_tokens=config.batch_tokens,
        targets=[len(texts[index].hidden.scored(view)) for index, view in views],
        max_targets=most,
    )
    parts: dict[int, list[tuple[np.ndarray, Scores]]] = {}
    missing = [len(text.hidden.cols) for text in texts]
    total = sum(len(texts[index].hidden.ids) for index, _ in views)
    through = 0
    # Batches run from short texts to long; in another order, what is done at any moment is a fair
    # sample of the texts, and a run stopped early has an honest mean.
    for place in np.random.default_rng(number).permutation(len(batches)):
        batch = [views[unit] for unit in batches[place]]
        through += sum(len(texts[index].hidden.ids) for index, _ in batch)
        if all(texts[index].id in done for index, _ in batch):
            continue
        scores = _score_batch(models, texts, batch, most)
        start = 0
        for index, view in batch:
            entries = texts[index].hidden.scored(view)
            own = [take(record, slice(start, start + len(entries))) for record in scores]
            start += len(entries)
            parts.setdefault(index, []).append((entries, own))
            missing[index] -= len(entries)
            if missing[index] == 0:
                collected = parts.pop(index)
                if texts[index].id not in done:
                    yield _collect(index, collected)
        yield through / total


def _collect(index: int, parts: list[tuple[np.ndarray, Scores]]) -> ScoredText:
    """Scores of all views of a text, in the order of its hidden positions."""
    order = np.argsort(np.concatenate([entries for entries, _ in parts]))
    records = [take(record, order) for record in _join([scores for _, scores in parts])]
    return ScoredText(
        index,
        [record for record in records if isinstance(record, TokenScores)],
        next((record for record in records if isinstance(record, LogitDifference)), None),
    )


def _join(parts: Sequence[Scores]) -> Scores:
    return [join(records) for records in zip(*parts, strict=True)]


def _score_batch(
    models: Sequence[MaskedLM],
    texts: Sequence[Prepared],
    batch: Sequence[tuple[int, int]],
    most: int,
) -> Scores:
    """Scores at all M positions asked of a batch of (text, view), `most` of them per model call."""
    padded = pad(
        [texts[index].hidden.view(view) for index, view in batch], models[0].vocabulary.pad_id
    )  # [B, T]
    cols_of = [texts[index].hidden.cols[texts[index].hidden.scored(view)] for index, view in batch]
    rows = np.repeat(np.arange(len(batch)), [len(cols) for cols in cols_of])  # [M]
    cols = np.concatenate(cols_of)  # [M]
    targets = np.concatenate(
        [texts[index].hidden.ids[own] for (index, _), own in zip(batch, cols_of, strict=True)]
    )
    chunks: list[Scores] = []
    for start in range(0, len(rows), most):
        asked = slice(start, start + most)
        logits = [
            model.logits_at(padded.input_ids, padded.attention_mask, rows[asked], cols[asked])
            for model in models
        ]  # each [m, V]
        chunks += _score_logits(models, logits, targets[asked])
    return _join(chunks)


def _score_logits(
    models: Sequence[MaskedLM], logits: Sequence[np.ndarray], targets: np.ndarray
) -> Iterator[Scores]:
    """Scores of a few positions at a time: float64 takes twice the memory."""
    step = max(1, _SCORED_AT_ONCE // max(part.shape[1] for part in logits))
    for start in range(0, len(targets), step):
        part = slice(start, start + step)
        scores: Scores = []
        log_probs = []
        for model, values in zip(models, logits, strict=True):
            if targets[part].max(initial=0) >= values.shape[1]:
                raise ModelOutputError(
                    f"{model.signature.name} returns logits for {values.shape[1]} tokens, but its "
                    f"tokenizer has the id {targets[part].max()}: the two do not belong together"
                )
            own = scoring.log_probabilities(values[part])  # float64 [m, V]
            log_probs.append(own)
            best = own.argmax(axis=1)
            scores.append(
                TokenScores(
                    scoring.target_nll_nats(own, targets[part]),
                    scoring.ranks(own, targets[part]),
                    scoring.entropy_nats(own),
                    best,
                    np.exp(own[np.arange(len(best)), best]),
                )
            )
        if len(models) == 2:
            scores.append(_difference(log_probs, [values[part] for values in logits]))
        yield scores


def _difference(log_probs: list[np.ndarray], logits: list[np.ndarray]) -> LogitDifference:
    """How far the two models are apart at m positions."""
    width = min(part.shape[1] for part in logits)
    if any(part.shape[1] != width for part in logits):
        # One model pads its vocabulary: compare the tokens that both have.
        logits = [part[:, :width] for part in logits]
        log_probs = [scoring.log_probabilities(part) for part in logits]
    first, second = log_probs  # float64 [m, width]
    gap = np.subtract(first, second, out=np.zeros_like(first), where=first != second)
    one, two = logits
    apart = np.abs(np.subtract(one, two, out=np.zeros_like(one), where=one != two))
    return LogitDifference(
        _expected(first, gap),
        _expected(second, -gap),
        apart.mean(axis=1, dtype=np.float64),
        apart.max(axis=1).astype(np.float64),
    )


def _expected(log_probs: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Sum of p * gap, where an impossible token (p = 0) adds nothing."""
    probabilities = np.exp(log_probs)
    products = np.multiply(probabilities, gap, out=np.zeros_like(gap), where=probabilities > 0)
    return np.maximum(products.sum(axis=1), 0.0)
