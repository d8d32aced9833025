"""Fine bins of a histogram gathered to the few bars that a chart has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui.evaluation.summary import Histogram

MAX_BARS = 50
# Bars have one of these widths, all multiples of the fine bins' 0.02 nats.
BAR_NATS = (0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Bars:
    """Bins of equal width; the first and last hold all that lies beyond."""

    edges: np.ndarray  # [bars + 1]
    counts: list[np.ndarray]  # of each histogram, [bars]


def bars_of(histograms: Sequence[Histogram]) -> Bars:
    """Fine bins gathered to at most `MAX_BARS` that hold 99.8 % of the tokens."""
    fine = histograms[0].edges
    low = min(histogram.quantile(0.001) for histogram in histograms)
    high = max(histogram.quantile(0.999) for histogram in histograms)
    step = fine[1] - fine[0]
    width = next((w for w in BAR_NATS if (high - low) / w <= MAX_BARS - 2), BAR_NATS[-1])
    # Edges are multiples of the width, so that zero is one of them where there are differences.
    least, most = np.round(fine[[0, -1]] / width)
    first = min(max(np.floor(low / width), least), most - 1)
    last = min(max(np.ceil(high / width), first + 1), most)
    edges = np.round(np.arange(first, last + 1) * width, 9)
    places = np.round((edges - fine[0]) / step).astype(int)
    counts = []
    for histogram in histograms:
        total = histogram.total
        inner = np.add.reduceat(total, places[:-1])
        inner[-1] = total[places[-2] :].sum()
        inner[0] += total[: places[0]].sum()
        counts.append(inner)
    return Bars(edges, counts)
