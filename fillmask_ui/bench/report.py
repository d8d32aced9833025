"""From runs to rows: medians, their spread, and how much faster each subject is than each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

# Of these more is better, of all others (ms, s, MB) less.
_SPEEDS = ("tokens/s", "GFLOP/s", "share")


@dataclass
class Samples:
    """What one subject took for one work, run by run."""

    work: str
    subject: str
    unit: str
    peer: bool = False  # whether it is something else than this project
    values: list[float] = field(default_factory=list)
    loss: float | None = None  # in nats; the same for all that did the same
    error: str | None = None  # why it was not measured, or not to the end


@dataclass(frozen=True)
class Row:
    """One subject at one work."""

    work: str
    subject: str
    median: float | None  # None if it failed before the first run ended
    unit: str
    spread: float | None  # interquartile range of the runs; None for a single one
    loss: float | None  # mean NLL of the hidden tokens, or of the first candidate, in nats
    ratios: dict[str, float]  # subject -> how many times faster, or smaller, this one is
    p95: float | None = None  # of the time of one sentence
    p99: float | None = None
    error: str | None = None  # why it failed
    peer: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; percentiles and the error where there are some."""
        values = asdict(self)
        del values["peer"]
        rare = ("p95", "p99", "error")
        return {key: own for key, own in values.items() if key not in rare or own is not None}


@dataclass(frozen=True)
class Report:
    """What `fillmask-ui bench` found."""

    machine: dict[str, Any]
    rows: tuple[Row, ...]  # by work
    notes: tuple[str, ...] = ()  # what a reader should know

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"machine": self.machine, "rows": [row.to_dict() for row in self.rows]}


def rows_of(samples: Sequence[Samples]) -> tuple[Row, ...]:
    """A row for all that were measured or failed, in their order.

    >>> own, other = Samples("w", "a", "ms", values=[2.0]), Samples("w", "b", "ms", values=[6.0])
    >>> rows_of([own, other])[0].ratios
    {'b': 3.0}
    """
    medians = {
        (one.work, one.subject): float(np.median(one.values)) for one in samples if one.values
    }
    rows = []
    for one in samples:
        own = medians.get((one.work, one.subject))
        if own is None:
            if one.error is not None:
                failed = Row(one.work, one.subject, None, one.unit, None, None, {})
                rows.append(replace(failed, error=one.error, peer=one.peer))
            continue
        others = {
            subject: value
            for (work, subject), value in medians.items()
            if work == one.work and subject != one.subject
        }
        faster = one.unit in _SPEEDS
        low, high = np.percentile(one.values, [25, 75]).tolist()
        tail = np.percentile(one.values, [95, 99]).tolist() if one.unit == "ms" else (None, None)
        rows.append(
            Row(
                work=one.work,
                subject=one.subject,
                median=own,
                unit=one.unit,
                spread=high - low if len(one.values) > 1 else None,
                loss=one.loss,
                ratios={k: own / v if faster else v / own for k, v in others.items()},
                p95=tail[0],
                p99=tail[1],
                error=one.error,
                peer=one.peer,
            )
        )
    return tuple(rows)
