"""The tokens of a run whose loss, or difference of losses, lies in a range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.evaluation import EvaluatedText, TokenExample
from fillmask_ui.evaluation.tallies import LargestTokens
from fillmask_ui.runs.store import Run

LOSS, DIFFERENCE = "loss", "difference"


@dataclass(frozen=True)
class FoundTokens:
    """Tokens in a range.

    Attributes:
        total: how many there are.
        examples: those with the largest loss or |difference|, largest first.
    """

    total: int
    examples: tuple[TokenExample, ...]


def tokens_between(
    run: Run, low_nats: float, high_nats: float, *, by: str = LOSS, limit: int = 200
) -> FoundTokens:
    """Find tokens as one brushes a histogram.

    Args:
        run: any run; its rows are read one at a time.
        low_nats: smallest value that counts.
        high_nats: values from here on do not.
        by: `loss`, or `difference`: the model's loss less the baseline's.
        limit: how many examples at most.

    Raises:
        OptionError: for an unknown `by`, a difference without a baseline, or a limit below 1.
    """
    if by not in (LOSS, DIFFERENCE):
        raise OptionError(unknown("value to find tokens by", by, (LOSS, DIFFERENCE)))
    if limit < 1:
        raise OptionError(f"the number of tokens to show must be 1 or more; it was {limit}")
    largest = LargestTokens(limit)
    total = 0
    for row in run.rows():
        if not isinstance(row, EvaluatedText):
            continue
        values = row.scores.nll_nats
        if by == DIFFERENCE:
            if row.baseline is None:
                raise OptionError(
                    f"run {run.info.name} has no baseline with the same tokens: there is no "
                    "difference"
                )
            values = values - row.baseline.nll_nats
        inside = (values >= low_nats) & (values < high_nats)
        total += int(inside.sum())
        largest.add(row, np.where(inside, np.abs(values), -np.inf))
    return FoundTokens(total, largest.examples())
