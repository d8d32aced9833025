"""Slices of an evaluation in one place: its texts by a column or their length, its tokens by kind.

Those that changed most come first, or of one model those that it knows worst; those with too few
texts for an interval come last.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.catalogue import NATS, TEXT_SPLITS, TOKEN_SPLITS, Figure
from fillmask_ui.evaluation.summary import GroupChange
from fillmask_ui.records import ROLES
from fillmask_ui.show.figures import INTERVAL, figure_cells, models_of
from fillmask_ui.show.numbers import interval_text, signed_percent
from fillmask_ui.show.table import Column, Table

MOST_BRIEF = 8  # rows where the slices stand beside other figures


def slice_tables(summary: Summary, column: str = "") -> Iterator[Table]:
    """A table of the texts, and one of the tokens; `column` is the name of the group column."""
    value, splits = _metric_value(summary), dict(TEXT_SPLITS)
    splits["by_group"] = column or splits["by_group"]
    yield _table(summary, splits, value, f"Slices of the texts: {value.name}")
    # The tokens of two tokenizers are not the same.
    if summary.comparison is None or summary.comparison.unit == "token":
        loss = Figure("mean_nll_nats", "mean NLL", NATS, "interval")
        yield _table(summary, TOKEN_SPLITS, loss, f"Slices of the tokens: {loss.label}")


def text_slices_table(summary: Summary, splits: Iterable[str]) -> Table:
    """The slices of the texts by some splits."""
    words = {split: TEXT_SPLITS[split] for split in splits}
    return _table(summary, words, _metric_value(summary), "")


def group_table(summary: Summary, column: str = "") -> Table | None:
    """The groups of a column alone, in a few rows; None without one."""
    if not summary.model.by_group:
        return None
    value = _metric_value(summary)
    table = _table(summary, {"by_group": ""}, value, f"By {column or 'group'}: {value.name}")
    rows, title = table.rows[:MOST_BRIEF], table.title
    if len(rows) < len(table.rows):
        title += f" ({len(rows)} of {len(table.rows)} groups)"
    return Table(table.columns, rows).headed(column or "group", title)


def _metric_value(summary: Summary) -> Figure:
    metric = summary.metric_figure
    return Figure("value", metric.label, interval="interval", share=metric.share)


def _table(summary: Summary, splits: Mapping[str, str], figure: Figure, title: str) -> Table:
    """A row per slice of some splits: the change, its figure under each model, and its size."""
    models, pair = models_of(summary), summary.comparison
    columns: list[str | Column] = ["slice", "value", INTERVAL]
    if pair:
        columns = ["slice", Column("change", signed_percent, right=True)]
        columns.append(Column(INTERVAL, lambda span: interval_text(span, signed_percent)))
        columns += ROLES
    rows = []
    for split, words in splits.items():
        changes = _by_name(getattr(pair, split, ()))
        groups = [_by_name(getattr(model, split)) for model in models]
        for name, group in groups[-1].items():
            value, interval = figure_cells(figure, group)
            change: GroupChange | None = changes.get(name)
            row: list[Any] = [f"{words}: {name}" if words else name, value, interval]
            if change:
                reference, _ = figure_cells(figure, groups[0].get(name))
                row[1:] = [change.relative_change, change.relative_change_interval]
                row += [reference, value]
            rows.append((row[2] is None, _order(value, change, summary), row))
            row += [group.texts, group.tokens]
    rows.sort(key=lambda entry: entry[:2])
    return Table.of([*columns, "texts", "tokens"], (row for *_, row in rows), title)


def _by_name(groups: Iterable[Any]) -> dict[str, Any]:
    return {group.name: group for group in groups}


def _order(value: float, change: GroupChange | None, summary: Summary) -> float:
    """Smaller comes first; what has no number comes last."""
    if change is None:
        return value if summary.metric.higher_is_better else -value
    return math.inf if math.isnan(change.relative_change) else -abs(change.relative_change)
