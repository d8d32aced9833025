"""The texts that a caller gives: a list of them, or a column of a data set or data frame."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.records import Example


def texts_of(given: Iterable[Any], column: str | None = None) -> Iterator[Any]:
    """Texts or examples in their order, unchecked.

    `given` are texts, mappings such as the rows of a `datasets.IterableDataset`, or a table whose
    columns have names, as a `datasets.Dataset` and a data frame of pandas have: then `column` is
    that of the texts, by default `text` or the only one.

    >>> [*texts_of([{"id": 5, "text": "a"}, {"id": 6, "text": "b"}])]
    ['a', 'b']
    """
    if isinstance(given, str | Example):
        raise OptionError("the examples were one text: give a list of texts, as in [text]")
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        parts = ", ".join(map(str, given)) if isinstance(given, Mapping) else ""
        raise DataError(
            f"texts were wanted, or a data set of them; the type was {type(given).__name__}"
            + (f" with the parts {parts}: give one of them" if parts else "")
        )
    names: Any = getattr(given, "column_names", getattr(given, "columns", None))
    if names is not None:
        yield from given[choose_column([*names], column, "the data", "column=NAME")]  # type: ignore[index]
        return
    rows = iter(given)
    first = [*islice(rows, 1)]
    if first and isinstance(first[0], Mapping):
        column = choose_column(first[0], column, "the data", "column=NAME")
        yield from (row.get(column) for row in chain(first, rows))
    elif first and column is not None:
        raise OptionError(f"the examples have no columns such as {column!r}: leave out column=")
    else:
        yield from chain(first, rows)


def choose_column(
    columns: Collection[str], asked: str | None, place: str, by: str = "--column input_column=NAME"
) -> str:
    """The column that holds the texts: the one named, else `text`, else the only one.

    Case and surrounding spaces matter only between names that differ in nothing else. `by` is how
    one is named.

    >>> choose_column(["label", " Text"], None, "example")
    ' Text'
    """
    wanted = asked or "text"
    alike = [name for name in columns if name.strip().casefold() == wanted.strip().casefold()]
    found = [name for name in columns if name == wanted] or alike
    if not found and asked is None and len(columns) == 1:
        found = [*columns]
    if len(found) == 1:
        return found[0]
    what = f"no column {wanted!r}" if not found else f"{len(found)} columns are called {wanted!r}"
    known = ", ".join(map(repr, columns)) or "no columns"
    raise DataError(f"{place}: {what}; it has {known}; choose one ({by})")
