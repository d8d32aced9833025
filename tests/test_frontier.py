"""The Pareto frontier, by examples worked out by hand."""

import math

import pytest

from fillmask_ui.quantizing.measure_variants import frontier


@pytest.mark.parametrize(
    ("costs", "losses", "on_it"),
    [
        ([], [], []),
        ([5], [1.0], [0]),
        ([5, 3], [1.0, 2.0], [1, 0]),  # each is better in one
        ([5, 3], [2.0, 1.0], [1]),  # one is better in both
        ([5, 5], [2.0, 1.0], [1]),  # the same size, a smaller loss
        ([5, 3], [1.0, 1.0], [1]),  # the same loss, a smaller size
        ([4, 4, 9], [1.0, 1.0, 1.0], [0, 1]),  # equal in both: neither beats the other
        ([1, 2, 3, 4], [4.0, 3.0, 3.5, 1.0], [0, 1, 3]),
        ([-900, -450, -300], [2.47, 2.40, 2.60], [0, 1]),  # speeds, as their negatives
        ([2, 1], [1.0, math.nan], [0]),
        ([2, 1], [1.0, math.inf], [0]),
    ],
)
def test_the_frontier(costs, losses, on_it):
    assert frontier(costs, losses) == on_it


def test_it_is_what_the_definition_says():
    # The definition itself, compared pair by pair, on all small point sets of a grid.
    points = [(x, y) for x in range(4) for y in range(4)]
    for mask in range(1, 2**16, 97):
        own = [point for place, point in enumerate(points) if mask >> place & 1]
        beaten = [any(a <= x and b <= y and (a, b) != (x, y) for a, b in own) for x, y in own]
        expected = [place for place, lost in enumerate(beaten) if not lost]
        costs, losses = zip(*own, strict=True)
        assert sorted(frontier(costs, losses)) == expected


def test_as_many_losses_as_costs():
    with pytest.raises(ValueError, match="argument"):
        frontier([1, 2], [1.0])
