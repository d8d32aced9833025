"""Which variants are worth having: those that no other beats in everything at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite


def frontier(costs: Sequence[float], losses: Sequence[float]) -> list[int]:
    """The Pareto frontier of a cost and a loss, both the lower the better.

    A point is on it unless another is at most as large in both and smaller in one. Points that
    are equal in both are all on it.

    Args:
        costs: [N], such as bytes or milliseconds; of a speed give the negative.
        losses: [N], such as the mean NLL in nats. A pair with NaN or an infinite value is on no
            frontier.

    Returns:
        Places in the lists, by growing cost.

    Raises:
        ValueError: if the two have different lengths.

    Source:
        Pareto efficiency; the sweep is that of Kung, Luccio and Preparata 1975, "On finding the
        maxima of a set of vectors", for two dimensions.

    >>> frontier([88, 45, 23, 30], [2.40, 2.40, 2.47, 2.60])  # megabytes, nats
    [2, 1]
    """
    points = list(zip(costs, losses, strict=True))
    usable = [place for place, point in enumerate(points) if all(map(isfinite, point))]
    found: list[int] = []
    for place in sorted(usable, key=lambda own: points[own]):
        best = points[found[-1]] if found else None
        if best is None or points[place][1] < best[1] or points[place] == best:
            found.append(place)
    return found
