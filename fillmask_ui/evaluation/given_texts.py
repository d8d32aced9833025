"""The texts that a caller gives: a list of them, or a column of a data set or data frame."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.records import Example

# Known layouts of minimal pairs: columns of the better and the worse sentence, and of the group.
# Source: the data sets of arXiv:1912.00582 and arXiv:2010.00133; the last is that of our own pairs.
PAIR_LAYOUTS = (
    ("sentence_good", "sentence_bad", "linguistics_term"),
    ("sent_more", "sent_less", "bias_type"),
    ("good", "bad", "phenomenon"),
)


def texts_of(
    texts: Iterable[Any],
    column: str | Sequence[str] | None = None,
    pairs: tuple[str | None, ...] | None = None,
    group_column: str | None = None,
) -> Iterator[Any]:
    """Texts or examples in their order, unchecked; with `pairs`, as of `Metric.columns`, tuples.

    `texts` are strings, mappings such as the rows of a `datasets.IterableDataset`, or a table whose
    columns have names, as a `datasets.Dataset` and a data frame of pandas have: then `column` is
    that of the texts, by default `text` or the only one; of pairs those of `pair_columns`. With a
    `group_column` texts come as examples.

    >>> [*texts_of([{"id": 5, "text": "a"}, {"id": 6, "text": "b"}])]
    ['a', 'b']
    """
    if isinstance(texts, str | bytes | Example):
        raise OptionError("the examples were one text: give a list of texts, as in [text]")
    if isinstance(texts, Mapping) or not isinstance(texts, Iterable):
        parts = ", ".join(map(str, texts)) if isinstance(texts, Mapping) else ""
        raise DataError(
            f"texts were wanted, or a data set of them; the type was {type(texts).__name__}"
            + (f" with the parts {parts}: give one of them" if parts else "")
        )
    names: Any = getattr(texts, "column_names", getattr(texts, "columns", None))
    if names is not None:
        chosen_columns = _columns([*names], column, pairs, group_column)
        cells: Iterator[Any] = zip(*(texts[name] for name in chosen_columns), strict=True)  # type: ignore[index]
        yield from cells if pairs is not None else _texts_of_cells(cells)
        return
    rows = iter(texts)
    first = [*islice(rows, 1)]
    if first and isinstance(first[0], Mapping):
        chosen_columns = _columns(first[0], column, pairs, group_column)
        cells = (tuple(row.get(name) for name in chosen_columns) for row in chain(first, rows))
        yield from cells if pairs is not None else _texts_of_cells(cells)
    elif first and (name := column or group_column) is not None:
        option = "column=" if column else "group_column="
        raise OptionError(f"the examples have no columns such as {name!r}: leave out {option}")
    else:
        yield from chain(first, rows)


def _texts_of_cells(cells: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """The text of each row, or an example if the row has a group as well."""
    for index, (text, *group) in enumerate(cells):
        if group:
            value = "" if group[0] is None else str(group[0])
            yield Example(index, text, group=value)
        else:
            yield text


def _columns(
    names: Collection[str],
    column: str | Sequence[str] | None,
    pairs: tuple[str | None, ...] | None,
    group_column: str | None,
) -> tuple[str, ...]:
    if pairs is not None:
        requested = pairs if column is None else tuple(column)
        if isinstance(column, str) or len(requested) not in (2, 3):
            raise OptionError(
                'a pair has two columns (column=("BETTER", "WORSE") or with "GROUP"); '
                f"it was {column!r}"
            )
        requested = (*requested, group_column)[:3]
        return pair_columns(names, requested, "the data", "better_column=, worse_column=")
    if not isinstance(column, str | None):
        raise OptionError(f"a text has one column (column=NAME); they were {column!r}")
    chosen = (choose_column(names, column, "the data", "column=NAME"),)
    if group_column is None:
        return chosen
    return (*chosen, choose_column(names, group_column, "the data", "group_column=NAME"))


def pair_columns(
    columns: Collection[str],
    requested: tuple[str | None, ...],
    source: str,
    by: str = "--better-column NAME --worse-column NAME",
) -> tuple[str, ...]:
    """The columns of the better and the worse sentence and, if there is one, of the group.

    Those `requested`, three names or None, else those of a known layout.

    >>> pair_columns(["UID", "sentence_good", "sentence_bad"], (None, None, "UID"), "example")
    ('sentence_good', 'sentence_bad', 'UID')
    """
    better, worse, group = requested
    layouts = [layout for layout in PAIR_LAYOUTS if {*layout[:2]} <= {*columns}]
    if better is None:
        if not layouts:
            raise DataError(
                f"{source}: it has {', '.join(map(repr, columns)) or 'no columns'}, which is no "
                f"known layout of pairs; name both sentences ({by})"
            )
        better, worse = layouts[0][:2]
    chosen = [choose_column(columns, name, source, by) for name in (better, worse)]
    if group is not None:
        chosen.append(choose_column(columns, group, source, "--group-column NAME"))
    elif layouts and chosen == [*layouts[0][:2]] and layouts[0][2] in columns:
        chosen.append(layouts[0][2])
    return tuple(chosen)


def nested_names(record: Mapping[str, Any]) -> list[str]:
    """Names of columns, and dotted ones of what lies inside an object.

    >>> nested_names({"id": 1, "translation": {"en": "A dog.", "de": "Ein Hund."}})
    ['id', 'translation', 'translation.en', 'translation.de']
    """
    names = []
    for name, value in record.items():
        names.append(name)
        if isinstance(value, Mapping):
            names += [f"{name}.{inner}" for inner in nested_names(value)]
    return list(dict.fromkeys(names))  # a name may hold a dot itself


def cell_of(record: Mapping[str, Any], name: str) -> Any:
    """The value of a column, also of a dotted name; None inside of null; a `KeyError` for no such.

    >>> cell_of({"translation": {"en": "A dog."}}, "translation.en")
    'A dog.'
    """
    outer, dot, inner = name.partition(".")
    if name in record or not dot:
        return record[name]
    value = record[outer]
    if isinstance(value, Mapping):
        return cell_of(value, inner)
    if value is None:
        return None
    raise KeyError(name)


def choose_column(
    columns: Collection[str],
    requested: str | None,
    source: str,
    by: str = "--column input_column=NAME",
) -> str:
    """The column that holds the texts: the one named, else `text`, else the only one.

    Case and surrounding spaces matter only between names that differ in nothing else. `by` is how
    one is named.

    >>> choose_column(["label", " Text"], None, "example")
    ' Text'
    """
    target = requested or "text"
    alike = [name for name in columns if name.strip().casefold() == target.strip().casefold()]
    matches = [name for name in columns if name == target] or alike
    if not matches and requested is None and len(columns) == 1:
        matches = [*columns]
    if len(matches) == 1:
        return matches[0]
    problem = f"no column {target!r}"
    if matches:
        problem = f"{len(matches)} columns are called {target!r}"
    listed = ", ".join(map(repr, columns)) or "no columns"
    raise DataError(f"{source}: {problem}; it has {listed}; choose one ({by})")
