"""Two models on identical masks: how much more is known of their difference."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import Comparison, ModelFigures, evaluate, summarize
from fillmask_ui.intervals import Interval
from fillmask_ui.lessons.more_texts import IMPOSSIBLE
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example


@dataclass(frozen=True)
class Pairing:
    """Two models on identical masks: what is known of their difference, with and without it."""

    own: ModelFigures  # of the first model
    base: ModelFigures  # of the second
    comparison: Comparison  # of the first against the second, text by text
    paired: Interval  # of the difference of the means, from the differences text by text
    separate: Interval  # of it, from the two means and their intervals alone

    @property
    def times_narrower(self) -> float:
        """Width of the separate interval over that of the paired one."""
        width = self.paired.high - self.paired.low
        return (self.separate.high - self.separate.low) / width if width else math.inf


def pair(
    model: MaskedLM,
    second: MaskedLM,
    texts: Sequence[Example],
    *,
    on_text: Callable[[int], None] = lambda _: None,
) -> Pairing:
    """Measure two models with one tokenizer on the same masks.

    Raises:
        OptionError: if the tokenizers differ.
        DataError: if no text can be measured, or a loss is infinite.
    """
    rows = []
    for done, row in enumerate(evaluate(model, texts, baseline=second), 1):
        rows.append(row)
        on_text(done)
    summary = summarize(rows)
    comparison, own, base = summary.comparison, summary.model, summary.baseline
    if (
        comparison is None
        or base is None
        or comparison.difference_interval is None
        or own.interval is None
        or base.interval is None
    ):
        raise DataError(IMPOSSIBLE)
    separate = difference_of((own.mean_nll_nats, base.mean_nll_nats), (own.interval, base.interval))
    return Pairing(own, base, comparison, comparison.difference_interval, separate)


def difference_of(means: tuple[float, float], intervals: tuple[Interval, Interval]) -> Interval:
    """Interval of the first mean less the second, as if each had been measured by itself.

    Source:
        Zou and Donner 2008, Statistics in Medicine 27:1693: distances from each mean to the ends
        of its interval add up as squares, as standard errors of independent means do.
    """
    (first, second), (own, base) = means, intervals
    below = math.hypot(first - own.low, base.high - second)
    above = math.hypot(own.high - first, second - base.low)
    return Interval(first - second - below, first - second + above, own.method)
