"""The loss of one masked text, token by token, and what the evaluator makes of the same text.

Axes: M chosen tokens, V vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.batching import in_order
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.measure import DEFAULT_BATCH_TOKENS
from fillmask_ui.evaluation.summary import ModelFigures
from fillmask_ui.features.course.masked_text import SeedMaskedText, Token, hide
from fillmask_ui.features.course.mean_uncertainty import CountReport, counted
from fillmask_ui.masking import DEFAULT_SHARES, KINDS, RANDOM, HiddenTokens
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding, Example
from fillmask_ui.scoring import nll_nats


@dataclass(frozen=True)
class TokenLoss:
    """One chosen token."""

    token: Token
    nll_nats: float  # of the original token
    sum_nats: float  # of this token and all before it
    mean_nats: float  # of the same tokens

    @property
    def probability(self) -> float:
        """P(original) given all that the model reads."""
        return math.exp(-self.nll_nats)


def token_losses(model: MaskedLM, text: SeedMaskedText) -> tuple[TokenLoss, ...]:
    """The M chosen tokens from left to right.

    The mean of the last one is the evaluator's cross-entropy of this text.
    """
    hidden = text.hidden
    if not len(hidden.cols):
        return ()
    input_ids = hidden.input_ids[None]  # [1, T]
    rows = np.zeros(len(hidden.cols), np.int64)  # [M]

    def logits_at(cols: np.ndarray) -> np.ndarray:
        return model.logits_at(input_ids, np.ones_like(input_ids), rows, cols)

    # On as many threads as an evaluation: how a sum is split among them rounds its last digit.
    workers = getattr(model, "concurrent_calls", 1)
    (logits,) = in_order(logits_at, [hidden.cols], workers)  # [M, V]
    losses = nll_nats(logits, hidden.true_ids)  # [M]
    losses_so_far = []
    for count, (token, loss) in enumerate(zip(text.chosen, losses.tolist(), strict=True), 1):
        total = math.fsum(losses[:count])
        losses_so_far.append(TokenLoss(token, loss, total, total / count))
    return tuple(losses_so_far)


def evaluated(model: MaskedLM, text: str, seed: int) -> ModelFigures:
    """The evaluator's figures of one text; a `DataError` if the seed chooses no token of it."""
    config = EvaluationConfig(seed=seed)
    return summarize(evaluate(model, [text], config), config=config).model


@dataclass(frozen=True)
class _SeedByExample:
    """Masks of one text under many seeds: the id of an example is the seed."""

    vocabulary: Vocabulary

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        return hide(encoding, self.vocabulary, example_id)


def over_seeds(
    model: MaskedLM, text: str, seeds: Sequence[int], report: CountReport = lambda _: None
) -> ModelFigures:
    """The evaluator's figures of one text, pooled over the tokens that all seeds choose.

    `text` has the model's own masks; `report` is called with the number of seeds done. A
    `DataError` if no seed chooses a token.
    """
    # A fixed size: to find the best one takes longer than this evaluation.
    config = EvaluationConfig(batch_tokens=DEFAULT_BATCH_TOKENS)
    examples = [Example(seed, text) for seed in seeds]
    rows = evaluate(model, examples, config, masks=_SeedByExample(model.vocabulary))
    return summarize(counted(rows, report), config=config).model


def mixed_mean_nats(means: Mapping[str, float], unchanged_share: float) -> float:
    """The mean loss if another share of the chosen tokens, in [0, 0.9], stayed unchanged.

    A tenth is random, the rest are masks; `means` has the mean loss in nats of every kind.
    """
    random_share = DEFAULT_SHARES[RANDOM]
    parts = (1 - random_share - unchanged_share, random_share, unchanged_share)
    return math.fsum(share * means[kind] for kind, share in zip(KINDS, parts, strict=True))
