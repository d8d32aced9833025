"""What the loss sees that accuracy does not: two small predictions, one model at many temperatures.

Axes: G temperatures, M hidden tokens of all texts, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.measure import prepared
from fillmask_ui.evaluation.summary import Histogram
from fillmask_ui.features.course.mean_uncertainty import IMPOSSIBLE, CountReport, counted
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example
from fillmask_ui.scoring import (
    TargetScores,
    chunks,
    exponentials,
    score_targets,
)

# What the true word leaves is shared out in these parts.
_OTHERS = {"floor": 0.75, "sofa": 0.15, "roof": 0.10}
TEMPERATURES = tuple(step / 10 for step in range(5, 21))
BIN_NATS = 1.0
BINS = 15  # 0 to 15 nats; the last takes what lies beyond


def prediction(true_probability: float) -> dict[str, float]:
    """The probability of each of four words, given that of the true one, which comes first.

    >>> prediction(0.5)
    {'mat': 0.5, 'floor': 0.375, 'sofa': 0.075, 'roof': 0.05}
    """
    remaining = 1 - true_probability
    return {"mat": true_probability} | {word: part * remaining for word, part in _OTHERS.items()}


class Tempered:
    """A model whose logits are divided by a temperature above 0."""

    def __init__(self, model: MaskedLM, temperature: float) -> None:
        self.vocabulary, self.max_tokens = model.vocabulary, model.max_tokens
        self.signature = model.signature
        self._model, self._temperature = model, temperature

    def logits_at(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, cols: np.ndarray
    ) -> np.ndarray:
        """As of the model, in float64 [M, V]."""
        logits = self._model.logits_at(input_ids, attention_mask, rows, cols)
        return logits.astype(np.float64) / self._temperature


@dataclass(frozen=True, eq=False)
class AtTemperature:
    """What a model says of the hidden tokens at one temperature."""

    temperature: float
    nll_nats: np.ndarray  # float64 [M], of the true token
    ranks: np.ndarray  # int64 [M], of the true token
    top_probabilities: np.ndarray  # float64 [M], of the best guess

    @property
    def tokens(self) -> int:
        return len(self.ranks)

    @property
    def hits(self) -> int:
        return int((self.ranks == 1).sum())

    @property
    def top1_accuracy(self) -> float:
        return self.hits / self.tokens

    @property
    def mean_nll_nats(self) -> float:
        return math.fsum(self.nll_nats) / self.tokens

    @property
    def mean_top_probability(self) -> float:
        """How often the model itself expects its best guess to be right."""
        return float(self.top_probabilities.mean())


def temperature_losses(
    model: MaskedLM, texts: Sequence[Example], *, on_text: CountReport = lambda _: None
) -> tuple[AtTemperature, ...]:
    """Score what the evaluator hides by default, at each of `TEMPERATURES`, in one pass.

    A `DataError` if the model can read none of the texts, or calls a token impossible.
    """
    config = EvaluationConfig().resolved(model.max_tokens)
    scores_by_temperature: list[list[TargetScores]] = [[] for _ in TEMPERATURES]
    for text in prepared(model.vocabulary, counted(texts, on_text), config):
        hidden = text.hidden
        ids = hidden.view(0)[None]  # [1, T]
        rows = np.zeros(len(hidden.cols), np.int64)
        logits = model.logits_at(ids, np.ones_like(ids), rows, hidden.cols)  # float32 [m, V]
        for part in chunks(logits):
            # In float64 no two logits become equal by the division, which would move ranks.
            exact = logits[part].astype(np.float64)
            for temperature, scores in zip(TEMPERATURES, scores_by_temperature, strict=True):
                scaled = exact / temperature
                scores.append(score_targets(exponentials(scaled), scaled, hidden.true_ids[part]))
    if not scores_by_temperature[0]:
        raise DataError(
            f"{model.signature.name} cannot read the embedded English texts: choose another model"
        )
    results = []
    for temperature, scores in zip(TEMPERATURES, scores_by_temperature, strict=True):
        nll = np.concatenate([part.nll_nats for part in scores])
        ranks = np.concatenate([part.ranks for part in scores])
        top = np.concatenate([part.top_probabilities for part in scores])
        results.append(AtTemperature(temperature, nll, ranks, top))
    if not all(np.isfinite(losses.nll_nats).all() for losses in results):
        raise DataError(IMPOSSIBLE)
    return tuple(results)


def nearest(scores_by_temperature: Sequence[AtTemperature], temperature: float) -> AtTemperature:
    """The scores at the nearest temperature of the grid."""
    return min(scores_by_temperature, key=lambda scores: abs(scores.temperature - temperature))


def loss_histogram(first: np.ndarray, second: np.ndarray) -> Histogram:
    """Two sets of losses, float64 [M], in the same bins: groups `A` and `B`."""
    counts = {
        name: np.bincount(np.minimum(losses / BIN_NATS, BINS - 1).astype(np.int64), minlength=BINS)
        for name, losses in (("A", first), ("B", second))
    }
    return Histogram(np.arange(BINS + 1) * BIN_NATS, counts)
