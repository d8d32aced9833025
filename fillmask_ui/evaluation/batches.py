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
from fillmask_ui.evaluation.rows import LogitDifference, TokenScores
from fillmask_ui.protocol import MaskedLM

# Logits of one call; 250,000 words leave 128 positions.
_LOGIT_BYTES = 128 * 2**20
# float64 values of one scoring step.
_SCORED_AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class ScoredText:
    """Scores of all M positions of one text, by each model.

    Attributes:
        index: of the text in its window.
        models: one entry a model.
        difference: between two models.
    """

    index: int
    models: list[TokenScores]
    difference: LogitDifference | None


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
    parts: dict[int, list[tuple[np.ndarray, list[np.ndarray]]]] = {}
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
        tables = _score_batch(models, texts, batch, most)
        start = 0
        for index, view in batch:
            entries = texts[index].hidden.scored(view)
            part = [column[start : start + len(entries)] for column in tables]
            start += len(entries)
            parts.setdefault(index, []).append((entries, part))
            missing[index] -= len(entries)
            if missing[index] == 0:
                collected = parts.pop(index)
                if texts[index].id not in done:
                    yield _collect(index, collected, len(models))
        yield through / total


def _collect(index: int, parts, model_count: int) -> ScoredText:
    """Columns of all views of a text, in the order of its hidden positions."""
    order = np.argsort(np.concatenate([entries for entries, _ in parts]))
    columns = [
        np.concatenate(pieces)[order] for pieces in zip(*(part for _, part in parts), strict=True)
    ]
    width = len(TokenScores.__dataclass_fields__) - 1  # the strings come later
    scores = [TokenScores(*columns[k * width : (k + 1) * width]) for k in range(model_count)]
    rest = columns[model_count * width :]
    return ScoredText(index, scores, LogitDifference(*rest) if rest else None)


def _score_batch(models, texts, batch, most: int) -> list[np.ndarray]:
    """Every column of `TokenScores` for each model, then those of `LogitDifference`; [M] each."""
    padded = pad(
        [texts[index].hidden.view(view) for index, view in batch], models[0].vocabulary.pad_id
    )  # [B, T]
    chosen = [texts[index].hidden.scored(view) for index, view in batch]
    rows = np.repeat(np.arange(len(batch)), [len(entries) for entries in chosen])  # [M]
    where = [
        texts[index].hidden.cols[entries] for (index, _), entries in zip(batch, chosen, strict=True)
    ]
    cols = np.concatenate(where)  # [M]
    targets = np.concatenate(
        [texts[index].hidden.ids[own] for (index, _), own in zip(batch, where, strict=True)]
    )
    chunks = []
    for start in range(0, len(rows), most):
        asked = slice(start, start + most)
        logits = [
            model.logits_at(padded.input_ids, padded.attention_mask, rows[asked], cols[asked])
            for model in models
        ]  # each [m, V]
        chunks += _score_logits(models, logits, targets[asked])
    return [np.concatenate(column) for column in zip(*chunks, strict=True)]


def _score_logits(models, logits, targets) -> Iterator[list[np.ndarray]]:
    """The columns of `_score_batch`, a few positions at a time: float64 takes twice the memory."""
    step = max(1, _SCORED_AT_ONCE // max(part.shape[1] for part in logits))
    for start in range(0, len(targets), step):
        part = slice(start, start + step)
        columns: list[np.ndarray] = []
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
            columns += [
                scoring.target_nll_nats(own, targets[part]),
                scoring.ranks(own, targets[part]),
                scoring.entropy_nats(own),
                best,
                np.exp(own[np.arange(len(best)), best]),
            ]
        if len(models) == 2:
            columns += _differences(log_probs, [values[part] for values in logits])
        yield columns


def _differences(log_probs, logits) -> list[np.ndarray]:
    """The columns of `LogitDifference`."""
    width = min(part.shape[1] for part in logits)
    if any(part.shape[1] != width for part in logits):
        # One model pads its vocabulary: compare the tokens that both have.
        logits = [part[:, :width] for part in logits]
        log_probs = [scoring.log_probabilities(part) for part in logits]
    first, second = log_probs  # float64 [m, width]
    gap = np.subtract(first, second, out=np.zeros_like(first), where=first != second)
    apart = np.abs(np.subtract(*logits, out=np.zeros_like(logits[0]), where=logits[0] != logits[1]))
    return [
        _expected(first, gap),
        _expected(second, -gap),
        apart.mean(axis=1, dtype=np.float64),
        apart.max(axis=1).astype(np.float64),
    ]


def _expected(log_probs, gap) -> np.ndarray:
    """Sum of p * gap, where an impossible token (p = 0) adds nothing."""
    probabilities = np.exp(log_probs)
    products = np.multiply(probabilities, gap, out=np.zeros_like(gap), where=probabilities > 0)
    return np.maximum(products.sum(axis=1), 0.0)
