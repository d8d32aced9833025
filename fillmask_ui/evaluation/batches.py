"""The texts of one window through the models: batches, logits, scores.

Axes: B rows of a batch, T tokens, M hidden positions, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import pad, plan_batches
from fillmask_ui.errors import ModelOutputError
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.prepare import Prepared
from fillmask_ui.evaluation.rows import EvaluatedText, LogitDifference, MaskedText, TokenScores
from fillmask_ui.protocol import MaskedLM

# Fields, each of length M, of the `TokenScores` of each model in turn, then of the
# `LogitDifference` where there are two.
Scores = list[dict[str, np.ndarray]]

# Logits of one call; 250,000 words leave 128 positions.
_LOGIT_BYTES = 128 * 2**20
# float64 values of one scoring step.
_SCORED_AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class _View:
    """A text with some of its hidden positions to be scored: one row of a batch."""

    text: Prepared
    number: int  # of the views of its text
    entries: np.ndarray  # int64, those of `cols` that are scored


def score_window(
    models: Sequence[MaskedLM],
    texts: Sequence[Prepared],
    config: EvaluationConfig,
    number: int,
    done: frozenset[int],
) -> Iterator[EvaluatedText | float]:
    """The texts of a window, each as soon as all its views are through.

    After each batch comes the share of the window's tokens that went through the models.
    """
    views = [
        _View(text, place, text.hidden.scored(place))
        for text in texts
        for place in range(text.hidden.view_count)
    ]
    lengths = [len(view.text.hidden.ids) for view in views]
    most = max(1, _LOGIT_BYTES // (4 * max(model.signature.vocabulary_size for model in models)))
    batches = plan_batches(
        lengths,
        max_tokens=config.batch_tokens,
        targets=[len(view.entries) for view in views],
        max_targets=most,
    )
    scored: dict[int, dict[int, Scores]] = defaultdict(dict)  # id of a text, number of a view
    through = 0
    # Batches run from short texts to long; in another order, what is done at any moment is a fair
    # sample of the texts, and a run stopped early has an honest mean.
    for place in np.random.default_rng(number).permutation(len(batches)):
        batch = [views[unit] for unit in batches[place]]
        through += sum(lengths[unit] for unit in batches[place])
        if all(view.text.row.id in done for view in batch):
            continue
        scores = _score_batch(models, batch, most)
        start = 0
        for view in batch:
            index = view.text.row.id
            own = slice(start, start + len(view.entries))
            start = own.stop
            scored[index][view.number] = [
                {name: values[own] for name, values in record.items()} for record in scores
            ]
            if len(scored[index]) == view.text.hidden.view_count and index not in done:
                of_text = _join([part for _, part in sorted(scored.pop(index).items())])
                yield _evaluated(view.text.row, of_text, models)
        yield through / sum(lengths)


def _join(parts: Sequence[Scores]) -> Scores:
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


def _score_batch(models: Sequence[MaskedLM], batch: Sequence[_View], most: int) -> Scores:
    """Scores at all M positions asked of a batch, `most` of them per model call."""
    seen = [view.text.hidden.view(view.number) for view in batch]
    padded = pad(seen, models[0].vocabulary.pad_id)  # [B, T]
    rows = np.repeat(np.arange(len(batch)), [len(view.entries) for view in batch])  # [M]
    cols = np.concatenate([view.text.hidden.cols[view.entries] for view in batch])  # [M]
    targets = np.concatenate([view.text.row.true_ids[view.entries] for view in batch])  # [M]
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
                {
                    "nll_nats": scoring.target_nll_nats(own, targets[part]),
                    "ranks": scoring.ranks(own, targets[part]),
                    "entropy_nats": scoring.entropy_nats(own),
                    "top_ids": best,
                    "top_probabilities": np.exp(own[np.arange(len(best)), best]),
                }
            )
        if len(models) == 2:
            scores.append(_difference(log_probs, [values[part] for values in logits]))
        yield scores


def _difference(log_probs: list[np.ndarray], logits: list[np.ndarray]) -> dict[str, np.ndarray]:
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
    return {
        "kl_nats": _expected(first, gap),
        "kl_reverse_nats": _expected(second, -gap),
        "mean_abs": apart.mean(axis=1, dtype=np.float64),
        "max_abs": apart.max(axis=1).astype(np.float64),
    }


def _expected(log_probs: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Sum of p * gap, where an impossible token (p = 0) adds nothing."""
    probabilities = np.exp(log_probs)
    products = np.multiply(probabilities, gap, out=np.zeros_like(gap), where=probabilities > 0)
    return np.maximum(products.sum(axis=1), 0.0)
