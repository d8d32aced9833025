"""Slices: groups of the texts, by a column of the data or by their length, and their figures.

A slice has the figures and intervals that an evaluation of its texts alone has.

Axes: N texts, in the order of their ids.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.evaluation.running_sums import TextSums
from fillmask_ui.evaluation.summary import GroupChange, TextGroup

FEWEST_TEXTS = 5  # of a slice; an interval over fewer is too wide to be of use
MOST_VALUES = 50  # that are listed, those with the most texts
MOST_NUMBERS = 12  # taken as they are; more are cut into ranges
RANGES = 5
NO_VALUE, OTHERS = "(none)", "(others)"


@dataclass(frozen=True, eq=False)
class Partition:
    """Which texts each slice has."""

    members: Mapping[str, np.ndarray] = field(default_factory=dict)  # name to int64, indices in [N]
    notes: tuple[str, ...] = ()  # on values that were put together

    def groups(self, metric: Metric, texts: TextSums) -> tuple[TextGroup, ...]:
        """The figures of each slice under one model."""
        groups = []
        for name, indices in self.members.items():
            part = texts.part(indices)
            estimate = metric.figure(part)
            groups.append(
                TextGroup(
                    name,
                    len(indices),
                    int(part.tokens.sum()),
                    estimate.value,
                    float(part.nll_nats.sum() / part.tokens.sum()),
                    float(part.right.sum() / part.tokens.sum()),
                    estimate.interval if len(indices) >= FEWEST_TEXTS else None,
                )
            )
        return tuple(groups)

    def changes(
        self, metric: Metric, candidate: TextSums, reference: TextSums
    ) -> tuple[GroupChange, ...]:
        """The change of the metric in each slice, paired by text."""
        changes = []
        for name, indices in self.members.items():
            part = candidate.part(indices)
            change = metric.change(part, reference.part(indices))
            interval = change.interval if len(indices) >= FEWEST_TEXTS else None
            tokens = int(part.tokens.sum())
            changes.append(GroupChange(name, tokens, len(indices), change.value, interval))
        return tuple(changes)


def partition(values: Sequence[str]) -> Partition:
    """The slices of a column; `values` [N] may be blank. Without any value there is no slice.

    Many different numbers are cut into ranges with about as many texts each. Values with fewer than
    5 texts count together, and so do all but the 50 with the most texts.

    >>> partition(["news"] * 6 + ["mail"] * 2 + [""]).members["(others)"]
    array([6, 7, 8])
    """
    if not any(values):
        return Partition()
    members: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        members.setdefault(value or NO_VALUE, []).append(index)
    distinct = len(members) - (NO_VALUE in members)
    numbers = {name: _number(name) for name in members if name != NO_VALUE}
    numeric = all(map(math.isfinite, numbers.values()))
    notes = []
    if numeric and distinct > MOST_NUMBERS:
        members = _ranges(values, members.get(NO_VALUE, []))
        ranges = len(members) - (NO_VALUE in members)
        notes.append(
            f"the group column has {distinct:,} different numbers: they are cut into {ranges} "
            "ranges with about as many texts each"
        )
    elif numeric:
        members = dict(sorted(members.items(), key=lambda item: numbers.get(item[0], math.inf)))
    else:
        members = dict(sorted(members.items()))
    large = {name for name, indices in members.items() if len(indices) >= FEWEST_TEXTS}
    if not large:
        notes.append(
            f"none of the {distinct:,} values of the group column has {FEWEST_TEXTS} texts: name a "
            "column with fewer values (--group-column), or measure more texts"
        )
    elif small := len(members) - len(large):
        notes.append(
            f"values of the group with fewer than {FEWEST_TEXTS} texts: {small:,}; they count "
            f"together as {OTHERS}"
        )
    if len(large) > MOST_VALUES:
        notes.append(
            f"the group column has {distinct:,} values: the {MOST_VALUES} with the most texts are "
            f"listed, all others count together as {OTHERS}"
        )
        large = {*sorted(large, key=lambda name: -len(members[name]))[:MOST_VALUES]}
    listed = {name: np.array(indices) for name, indices in members.items() if name in large}
    others = [index for name in members.keys() - large for index in members[name]]
    if others:
        listed[OTHERS] = np.sort(np.array(others))
    return Partition(listed, tuple(notes))


def _number(value: str) -> float:
    """The number that a value is; NaN for none."""
    try:
        return float(value)
    except ValueError:
        return math.nan


def _ranges(values: Sequence[str], missing: list[int]) -> dict[str, list[int]]:
    """The indices of the numbers of each range, in order, then those of no number."""
    numbers = {index: float(value) for index, value in enumerate(values) if value}
    quantiles = np.quantile([*numbers.values()], np.linspace(0, 1, RANGES + 1)[1:-1])
    ranges: dict[int, list[int]] = {}
    for index, number in numbers.items():
        ranges.setdefault(int(np.searchsorted(quantiles, number, side="right")), []).append(index)
    ordered = [ranges[key] for key in sorted(ranges)]
    ends = [[numbers[index] for index in indices] for indices in ordered]
    bounds = [bound for inside in ends for bound in (min(inside), max(inside))]
    # As few digits as tell all bounds apart.
    digits = next(
        digits
        for digits in range(18)
        if len({f"{bound:.{digits}f}" for bound in bounds}) == len({*bounds}) or digits == 17
    )
    texts = [f"{bound:.{digits}f}".replace("-", "−") for bound in bounds]
    names = [f"{low} to {high}" for low, high in zip(texts[::2], texts[1::2], strict=True)]
    named = dict(zip(names, ordered, strict=True))
    return named | ({NO_VALUE: missing} if missing else {})
