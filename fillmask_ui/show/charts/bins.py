"""Fine bins of a histogram gathered to the few bars that a chart has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.evaluation.summary import Histogram
from fillmask_ui.show.figures import Names, Table, headings

MAX_BARS = 50
# Bars have one of these widths, all multiples of the fine bins' 0.02 nats.
BAR_NATS = (0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Bars:
    """Bins of equal width; the first and last hold all that lies beyond.

    Attributes:
        edges: float64 [bars + 1], in nats.
        counts: int64 [bars], one per histogram.
    """

    edges: np.ndarray
    counts: list[np.ndarray]

    def places(self) -> dict[str, Any]:
        """Where plotly draws the bars, and what it calls each."""
        low, high = self.edges[:-1], self.edges[1:]
        names = [f"{a:.6g} to {b:.6g}" for a, b in zip(low, high, strict=True)]
        template = "%{hovertext} nats: %{y:,} tokens<extra></extra>"
        return {
            "x": (low + high) / 2,
            "width": high - low,
            "hovertext": names,
            "hovertemplate": template,
        }

    def ranges(self) -> list[str]:
        """`from:to` of what each bar counts of the losses, which begin at 0; the last is open.

        >>> Bars(np.array([0.5, 1.0, 1.5]), []).ranges()
        ['0:1', '1:']
        """
        inner = [f"{edge:.6g}" for edge in self.edges[1:-1]]
        return [f"{a}:{b}" for a, b in zip(["0", *inner], [*inner, ""], strict=True)]

    def table(self, names: Names) -> Table:
        """A row per bar; for each histogram its count, and the share of all up to this bar."""
        own = headings(["tokens", "share up to here"], names, len(self.counts))
        columns = [self.edges[:-1], self.edges[1:]]
        for counts in self.counts:
            columns += [counts, np.cumsum(counts) / counts.sum()]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return Table(("from (nats)", "to (nats)", *own), tuple(rows))


def bars_of(histograms: Sequence[Histogram]) -> Bars:
    """Fine bins gathered to at most `MAX_BARS` that hold 99.8 % of the tokens."""
    fine = histograms[0].edges
    low = min(histogram.quantile(0.001) for histogram in histograms)
    high = max(histogram.quantile(0.999) for histogram in histograms)
    width = next((w for w in BAR_NATS if (high - low) / w <= MAX_BARS - 2), BAR_NATS[-1])
    # Edges are multiples of the width, so that zero is one of them where there are differences.
    least, most = np.round(fine[[0, -1]] / width)
    first = min(max(np.floor(low / width), least), most - 1)
    last = min(max(np.ceil(high / width), first + 1), most)
    edges = np.round(np.arange(first, last + 1) * width, 9)
    # What lies beyond the outer edges goes to the outer bars.
    inner = np.round((edges[1:-1] - fine[0]) / (fine[1] - fine[0])).astype(int)
    starts = np.concatenate([[0], inner])
    return Bars(edges, [np.add.reduceat(histogram.total, starts) for histogram in histograms])
