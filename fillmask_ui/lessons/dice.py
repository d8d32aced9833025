"""A mean that depends on a draw of masks, beside one that does not."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, GroupFigures, evaluate, summarize
from fillmask_ui.lessons.more_texts import IMPOSSIBLE
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example

SEEDS = tuple(range(1, 21))


def shortest(texts: Sequence[Example], count: int) -> list[Example]:
    """The texts with the fewest characters, which are measured the quickest."""
    return sorted(texts, key=lambda text: (len(text.text), text.id))[:count]


@dataclass(frozen=True)
class SeedMean:
    """The evaluator's answer for one seed."""

    seed: int
    tokens: int  # chosen
    mean_nll_nats: float


@dataclass(frozen=True)
class Dice:
    """One model on the same texts: masks drawn S times, and every token hidden once."""

    seeds: tuple[SeedMean, ...]  # S, at least two
    shown_as: dict[str, float]  # mean loss in nats by what the model saw, all seeds together
    pseudo_nll_nats: float  # mean loss of every token, each hidden alone
    pseudo_tokens: int

    @property
    def mean_nats(self) -> float:
        """Of the S answers."""
        return statistics.fmean(one.mean_nll_nats for one in self.seeds)

    @property
    def spread_nats(self) -> float:
        """Standard deviation of the S answers."""
        return statistics.stdev(one.mean_nll_nats for one in self.seeds)


def throw_dice(
    model: MaskedLM,
    texts: Sequence[Example],
    *,
    seeds: Sequence[int] = SEEDS,
    on_pass: Callable[[int], None] = lambda _: None,
) -> Dice:
    """Evaluate the texts once for every seed, and by pseudo-perplexity.

    Args:
        model: what is measured.
        texts: the same for all passes.
        seeds: at least two.
        on_pass: called with the number of passes done, of `len(seeds) + 1`.

    Raises:
        DataError: if a seed chooses no token at all, or the model calls one impossible.
    """
    means: list[SeedMean] = []
    groups: list[GroupFigures] = []
    for done, seed in enumerate(seeds, 1):
        figures = summarize(evaluate(model, texts, EvaluationConfig(seed=seed))).model
        means.append(SeedMean(seed, figures.tokens, figures.mean_nll_nats))
        groups += figures.by_kind
        on_pass(done)
    pseudo = summarize(evaluate(model, texts, EvaluationConfig("pseudo-perplexity"))).model
    on_pass(len(seeds) + 1)
    if not all(map(math.isfinite, [pseudo.mean_nll_nats, *(one.mean_nll_nats for one in means)])):
        raise DataError(IMPOSSIBLE)
    sums: dict[str, list[float]] = {}
    for group in groups:
        tokens, total = sums.get(group.name, [0, 0.0])
        sums[group.name] = [
            tokens + group.tokens,
            total + group.tokens * group.mean_nll_nats,
        ]
    return Dice(
        tuple(means),
        {name: total / tokens for name, (tokens, total) in sums.items()},
        pseudo.mean_nll_nats,
        pseudo.tokens,
    )
