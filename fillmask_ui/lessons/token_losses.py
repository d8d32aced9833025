"""The loss of one masked text, token by token, and what the evaluator makes of the same text.

Axes: M chosen tokens, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.batching import in_order
from fillmask_ui.evaluation import EvaluationConfig, ModelFigures, evaluate, summarize
from fillmask_ui.evaluation.measure import DEFAULT_BATCH_TOKENS
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.lessons.masked_text import FIRST_TEXT, MaskedText, Token
from fillmask_ui.masking import DEFAULT_SHARES, KINDS, RANDOM, HiddenTokens, generator
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding, Example
from fillmask_ui.scoring import nll_nats


@dataclass(frozen=True)
class Line:
    """One chosen token in the ledger."""

    token: Token
    nll_nats: float  # of the original token
    sum_nats: float  # of this line and all above it
    mean_nats: float  # of the same lines

    @property
    def probability(self) -> float:
        """P(original) given all that the model reads."""
        return math.exp(-self.nll_nats)


def ledger(model: MaskedLM, text: MaskedText) -> tuple[Line, ...]:
    """The chosen tokens from left to right; none where no token was chosen.

    The mean of the last line is the evaluator's cross-entropy of this text.
    """
    hidden = text.hidden
    if not len(hidden.cols):
        return ()
    shown = hidden.input_ids[None]  # [1, T]
    rows = np.zeros(len(hidden.cols), np.int64)  # [M]

    def logits_at(cols: np.ndarray) -> np.ndarray:
        return model.logits_at(shown, np.ones_like(shown), rows, cols)

    # On as many threads as an evaluation: how a sum is split among them rounds its last digit.
    workers = getattr(model, "concurrent_calls", 1)
    (logits,) = in_order(logits_at, [hidden.cols], workers)  # [M, V]
    losses = nll_nats(logits, hidden.true_ids)  # [M]
    lines = []
    for count, (token, loss) in enumerate(zip(text.chosen, losses.tolist(), strict=True), 1):
        total = math.fsum(losses[:count])
        lines.append(Line(token, loss, total, total / count))
    return tuple(lines)


def evaluated(model: MaskedLM, text: str, seed: int) -> ModelFigures:
    """What the evaluator says of one text; a `DataError` if the seed chooses no token of it."""
    config = EvaluationConfig(seed=seed)
    return summarize(evaluate(model, [text], config), config=config).model


@dataclass(frozen=True)
class SeedByExample:
    """Masks of one text under many seeds: the id of an example is the seed."""

    metric: Metric
    vocabulary: Vocabulary

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        return self.metric.hide(encoding, self.vocabulary, generator(example_id, FIRST_TEXT))


def over_seeds(
    model: MaskedLM,
    text: str,
    seeds: Sequence[int],
    report: Callable[[int], None] = lambda _seen: None,
) -> ModelFigures:
    """The evaluator's figures of one text, pooled over the tokens that all seeds choose.

    Args:
        model: that is measured.
        text: as `Encoding.text` of what was shown: masks are written as the model's own.
        seeds: each makes another exercise of the same text.
        report: is told how many seeds are through.

    Raises:
        DataError: if no seed chooses a token.
    """
    # How fast a batch is on this machine is not worth finding out.
    config = EvaluationConfig(batch_tokens=DEFAULT_BATCH_TOKENS)
    examples = [Example(seed, text) for seed in seeds]
    rows = []
    masks = SeedByExample(config.metric, model.vocabulary)
    for row in evaluate(model, examples, config, masks=masks):
        rows.append(row)
        report(len(rows))
    return summarize(rows, config=config).model


@dataclass(frozen=True)
class KindLoss:
    """The loss of the tokens of one kind."""

    tokens: int  # how many
    mean_nll_nats: float  # over them


def by_kind(figures: ModelFigures) -> dict[str, KindLoss]:
    """The evaluator's losses by what the model saw; kinds without a token are left out."""
    return {g.name: KindLoss(g.tokens, g.mean_nll_nats) for g in figures.by_kind}


def mixed_mean_nats(losses: dict[str, KindLoss], unchanged_share: float) -> float:
    """The mean loss if another share of the chosen tokens stayed unchanged.

    Args:
        losses: of all kinds.
        unchanged_share: of the chosen tokens, in [0, 0.9]; a tenth is random, the rest are masks.

    >>> losses = {"mask": KindLoss(8, 2.0), "random": KindLoss(1, 3.0)}
    >>> losses["unchanged"] = KindLoss(1, 0.0)
    >>> round(mixed_mean_nats(losses, 0.1), 6), round(mixed_mean_nats(losses, 0.5), 6)
    (1.9, 1.1)
    """
    random_share = DEFAULT_SHARES[RANDOM]
    parts = (1 - random_share - unchanged_share, random_share, unchanged_share)
    pairs = zip(KINDS, parts, strict=True)
    return math.fsum(share * losses[kind].mean_nll_nats for kind, share in pairs)
