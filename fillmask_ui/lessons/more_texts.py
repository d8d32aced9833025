"""The interval of a mean loss as the number of texts grows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, evaluate
from fillmask_ui.intervals import Interval, ratio_interval
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example

IMPOSSIBLE = (
    "the model calls a token impossible, so that its mean loss is infinite and has no interval: "
    "choose another model"
)
COUNTS = (5, 10, 20, 40, 80, 160)  # of texts


@dataclass(frozen=True, eq=False)
class TextLosses:
    """What a model lost on each of N texts."""

    nll_nats: np.ndarray  # float64 [N], summed over the hidden tokens of a text
    tokens: np.ndarray  # float64 [N], how many these are


def text_losses(
    model: MaskedLM,
    texts: Sequence[Example],
    *,
    on_text: Callable[[int], None] = lambda _: None,
) -> TextLosses:
    """Measure texts with the evaluator's defaults; skipped ones are left out.

    Returns:
        The first 160 that could be measured, in the order of `texts`.

    Raises:
        DataError: if fewer than five can be measured.
    """
    rows = []
    for done, row in enumerate(evaluate(model, texts), 1):
        if isinstance(row, EvaluatedText):
            rows.append(row)
        on_text(done)
    if len(rows) < min(COUNTS):
        raise DataError(
            f"{model.signature.name} could measure {len(rows)} of {len(texts)} texts and at least "
            f"{min(COUNTS)} are wanted: choose another model"
        )
    place = {text.id: index for index, text in enumerate(texts)}
    rows = sorted(rows, key=lambda row: place[row.id])[: COUNTS[-1]]
    return TextLosses(
        np.array([row.scores.nll_nats.sum() for row in rows]),
        np.array([float(len(row.cols)) for row in rows]),
    )


@dataclass(frozen=True)
class MeanOfTexts:
    """The mean loss of the first N texts and its 95 % interval."""

    texts: int  # N
    tokens: int
    mean_nll_nats: float
    interval: Interval
    expected_half_nats: float  # half the width if the interval shrank as 1 / sqrt(N)

    @property
    def half_nats(self) -> float:
        """Half the width of the interval."""
        return (self.interval.high - self.interval.low) / 2


def means_by_count(losses: TextLosses, order: int = 0) -> tuple[MeanOfTexts, ...]:
    """Means of the first 5, 10, 20, ... texts, and of all.

    Args:
        losses: of at least five texts.
        order: seed of the order of the texts; 0 leaves them as they are.

    Returns:
        By number of texts; the expected widths go back from that of all texts.

    Raises:
        DataError: if a loss is infinite.
    """
    total = len(losses.tokens)
    places = np.random.default_rng(order).permutation(total) if order else np.arange(total)
    x, n = losses.nll_nats[places], losses.tokens[places]
    whole = _interval(x, n)
    found = []
    for count in [*(count for count in COUNTS if count < total), total]:
        interval = _interval(x[:count], n[:count])
        found.append(
            MeanOfTexts(
                count,
                int(n[:count].sum()),
                math.fsum(x[:count]) / n[:count].sum(),
                interval,
                (whole.high - whole.low) / 2 * math.sqrt(total / count),
            )
        )
    return tuple(found)


def _interval(x: np.ndarray, n: np.ndarray) -> Interval:
    """As the evaluator makes it."""
    found = ratio_interval(x, n)
    if found is None:
        raise DataError(IMPOSSIBLE)
    return found.not_below(0.0)
