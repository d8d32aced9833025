"""Tables of the figures of an evaluation, the same for shell, page and report.

`evaluation/summary.py` declares the figures; nothing here knows one of them by name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fillmask_ui.evaluation import Summary
from fillmask_ui.evaluation.catalogue import SPLITS, Figure, figures_of
from fillmask_ui.evaluation.summary import (
    COMPARISON_FIGURES,
    GROUP_FIGURES,
    MODEL_FIGURES,
    ModelFigures,
)
from fillmask_ui.records import ROLES
from fillmask_ui.show.numbers import Share
from fillmask_ui.show.table import Table

# What tables and charts call one model, or the reference and the candidate.
Names = tuple[str, ...]
INTERVAL = "95% interval"


def models_of(summary: Summary) -> tuple[ModelFigures, ...]:
    """Figures of the model alone, or of the reference and the candidate."""
    return (*([summary.reference] if summary.reference else []), summary.model)


def roles_of(summary: Summary) -> Names:
    """What its models are called where their names would be too long."""
    return ("model",) if summary.reference is None else ROLES


def headings(labels: Sequence[str], names: Names) -> tuple[str, ...]:
    """Headings of the columns of each model; a single model is not named.

    >>> headings(["tokens", "top-1"], ("A", "B"))
    ('tokens, A', 'top-1, A', 'tokens, B', 'top-1, B')
    """
    if len(names) == 1:
        return tuple(labels)
    return tuple(f"{label}, {name}" for name in names for label in labels)


def interval_heading(summary: Summary) -> str:
    """What an interval is called, while an evaluation runs and after it."""
    return f"provisional {INTERVAL}" if summary.provisional else INTERVAL


def figures_table(summary: Summary, names: Names = (), metric_label: str = "") -> Table:
    """A row per figure, the metric's own first: value and interval of each model.

    The last rows count the texts. `metric_label` replaces the metric's own label.
    """
    models, metric = models_of(summary), summary.metric_figure
    span = interval_heading(summary)
    columns = [heading for name in names or roles_of(summary) for heading in (name, span)]
    counts = {"texts": summary.texts}
    counts |= {f"skipped: {reason}": count for reason, count in summary.skipped.items()}
    padding = (None,) * (len(columns) - 1)
    rows = [(metric_label or summary.metric.figure_label, *_values(metric, models))]
    rows += _extra_rows(models)
    rows += [(figure.label, *_values(figure, models)) for figure in MODEL_FIGURES]
    rows += [(label, count, *padding) for label, count in counts.items()]
    return Table.of(("figure", *columns), rows)


def brief_table(summary: Summary) -> Table:
    """The metric's own figure and the most important ones, in eight rows at most.

    One model has its intervals; two have none, as that of their change is beside the verdict.
    """
    models, metric = models_of(summary), summary.metric_figure
    figures = [metric, *(figure for figure in MODEL_FIGURES if figure.brief)]
    rows: list[list[Any]] = []
    for figure in figures:
        row: list[Any] = [figure.label]
        for model in models:
            value, interval = _values(figure, [model])
            row += [value, interval] if len(models) == 1 else [value]
        rows.append(row)
    rows.append(["texts", *(summary.texts for _ in models)])
    if len(models) == 1:
        rows[-1].append(None)
        return Table.of(("figure", "value", interval_heading(summary)), rows)
    return Table.of(("figure", *ROLES), rows)


def comparison_table(summary: Summary) -> Table:
    """The differences of two models that are known; no rows for one model."""
    pair, rows = summary.comparison, []
    if pair is not None:
        figures = [figure for figure in COMPARISON_FIGURES if figure.value(pair) is not None]
        rows = _extra_rows([pair])
        rows += ((figure.label, *_values(figure, [pair])) for figure in figures)
    return Table.of(("figure", "value", interval_heading(summary)), rows)


def _extra_rows(records: Iterable[Any]) -> list[tuple[Any, ...]]:
    """A row per figure that the metric alone has; none where it has none."""
    extras = [record.extra for record in records if record.extra is not None]
    figures = figures_of(type(extras[0])) if extras else ()
    return [(figure.label, *_values(figure, extras)) for figure in figures]


def _values(figure: Figure, records: Iterable[Any]) -> Iterator[Any]:
    for record in records:
        value, span = figure.value(record), figure.interval_of(record)
        if figure.share:
            value, span = value if value is None else Share(value), span and span.map(Share)
        yield value
        yield span


def groups_table(
    records: Sequence[Any],
    split: str,
    names: Names = ROLES,
) -> Table:
    """A row per group of the tokens of each record."""
    by_name = [{(group.name,): group for group in getattr(record, split)} for record in records]
    keys = [(name,) for name in group_names(records, split)]
    return records_table((SPLITS[split],), keys, by_name, GROUP_FIGURES, names)


def records_table(
    heading: tuple[str, ...],
    keys: Sequence[tuple[Any, ...]],
    records: Sequence[Mapping[tuple[Any, ...], Any]],
    figures: Sequence[Figure],
    names: Names,
) -> Table:
    """A row per key, with the figures of each model's record side by side.

    A model without a record of a key has 0 tokens. `heading` is that of the cells of the key.
    """
    labels = []
    for figure in figures:
        labels += [figure.label, INTERVAL] if figure.interval else [figure.label]
    rows = []
    for key in keys:
        row = list(key)
        for by_key in records:
            for figure in figures:
                cells = figure_cells(figure, by_key.get(key))
                row += cells if figure.interval else cells[:1]
        rows.append(row)
    return Table.of((*heading, *headings(labels, names[: len(records)])), rows)


def figure_cells(figure: Figure, record: Any) -> list[Any]:
    """A figure and its interval; without a record there are 0 tokens, and nothing else."""
    if record is None:
        return [0 if figure.key == "tokens" else None, None]
    return list(_values(figure, [record]))


def group_names(models: Sequence[Any], split: str) -> list[str]:
    """Names of all groups, in order; another tokenizer may have other ones."""
    longest_first = sorted((getattr(model, split) for model in models), key=len, reverse=True)
    names = dict.fromkeys(group.name for groups in longest_first for group in groups)
    # `8-15` and `4096+` go by where they begin; words keep their order.
    return sorted(names, key=lambda name: int((re.match(r"\d+", name) or "0")[0]))
