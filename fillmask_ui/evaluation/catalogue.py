"""Figures declared once: the field of a record carries its name, unit and interval.

JSON, the shell, the page and the report read them by `figures_of`. A new figure is a field of a
record in `summary`; those of one metric stand with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fillmask_ui.intervals import Interval

NATS, BITS = "nats", "bits"


@dataclass(frozen=True)
class Figure:
    """One figure of a record."""

    key: str  # in JSON
    name: str  # for people
    unit: str = ""  # in brackets behind the name; blank for counts, shares and ratios
    interval: str = ""  # attribute of its 95% interval; blank for none
    attribute: str = ""  # of the record; the key if blank
    interval_in_json: bool = True
    share: bool = False  # whether tables write it as a percentage
    brief: bool = False  # whether the short table of the shell has it
    note: str = ""  # behind its value, where the page shows it beside the metric's own; else blank

    @property
    def interval_key(self) -> str:
        return f"{self.interval}_95" if self.interval and self.interval_in_json else ""

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def value(self, record: Any) -> Any:
        return getattr(record, self.attribute or self.key)

    def interval_of(self, record: Any) -> Interval | None:
        return getattr(record, self.interval) if self.interval else None


def figure(
    name: str,
    unit: str = "",
    interval: str = "",
    *,
    key: str = "",
    interval_in_json: bool = True,
    share: bool = False,
    brief: bool = False,
    note: str = "",
    **options: Any,
) -> Any:
    """A dataclass field that is a `Figure`; `options` are those of `dataclasses.field`."""
    row = Figure(
        key,
        name,
        unit,
        interval,
        interval_in_json=interval_in_json,
        share=share,
        brief=brief,
        note=note,
    )
    return field(metadata={"figure": row}, **options)


def figures_of(kind: Any) -> tuple[Figure, ...]:
    """The figures of a record's class, in order; the key is by default the field's name."""
    return tuple(
        replace(row, key=row.key or column.name, attribute=column.name)
        for column in fields(kind)
        if (row := column.metadata.get("figure"))
    )


# Groups that a model's figures are split into: attribute and JSON key, and what they go by.
TEXT_SPLITS = {"by_group": "group", "by_length": "tokens of the text"}
TOKEN_SPLITS = {
    "by_kind": "what the model saw",
    "by_part": "part of the word",
    "by_position": "position in the text",
    "by_frequency": "occurrences in the texts",
}
SPLITS = TEXT_SPLITS | TOKEN_SPLITS


def figures_dict(record: Any) -> dict[str, Any]:
    """Figures of a record in JSON, with their intervals.

    >>> from fillmask_ui.evaluation.summary import GroupFigures
    >>> figures_dict(GroupFigures("mask", 10, 2, 1.5, 0.5, 0.75, 8.0, 2.0))["mean_rank"]
    8.0
    """
    values: dict[str, Any] = {}
    for row in figures_of(type(record)):
        values[row.key] = row.value(record)
        if row.interval_key:
            values[row.interval_key] = interval_list(row.interval_of(record))
    return values


def splits_dict(record: Any, names: Iterable[str]) -> dict[str, Any]:
    """Groups of a record in JSON, by the names of its splits and their own."""
    return {
        name: {group.name: figures_dict(group) for group in getattr(record, name)} for name in names
    }


def interval_list(interval: Interval | None) -> list[float] | None:
    """An interval in JSON."""
    return None if interval is None else [interval.low, interval.high]
