"""The texts that a caller gives: a list of them, or a column of a data set or data frame."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.records import Example


@dataclass(frozen=True)
class PairLayout:
    """Columns of a known data set of pairs, in the notation of `cell_of`."""

    better: str
    worse: str
    group: str
    given: str | None = None  # a text before both


# Source: the data sets of arXiv:1912.00582, arXiv:2010.00133 and arXiv:2004.09456 (StereoSet, whose
# labels are names in its own file and numbers on the hub); the last is that of our own pairs.
PAIR_LAYOUTS = (
    PairLayout("sentence_good", "sentence_bad", "linguistics_term"),
    PairLayout("sent_more", "sent_less", "bias_type"),
    PairLayout(
        "sentences[gold_label=stereotype|1].sentence",
        "sentences[gold_label=anti-stereotype|0].sentence",
        "bias_type",
        # With a blank it is a template of the sentences, not a text before them.
        "context[without=BLANK]",
    ),
    PairLayout("good", "bad", "phenomenon"),
)
# Known columns of texts. Source: arXiv:1804.06876 (WinoBias), whose texts are lists of tokens.
TEXT_COLUMNS = ("text", "tokens")


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
        read = [*dict.fromkeys(_stored(name, names) for name in chosen_columns if name)]
        columns = (texts[name] for name in read)  # type: ignore[index]
        records = (dict(zip(read, cells, strict=True)) for cells in zip(*columns, strict=True))
        yield from _of_records(records, chosen_columns, pairs is not None)
        return
    rows = iter(texts)
    first = [*islice(rows, 1)]
    if first and isinstance(first[0], Mapping):
        chosen_columns = _columns(first[0], column, pairs, group_column)
        yield from _of_records(chain(first, rows), chosen_columns, pairs is not None)
    elif first and (name := column or group_column) is not None:
        option = "column=" if column else "group_column="
        raise OptionError(f"the examples have no columns such as {name!r}: leave out {option}")
    else:
        yield from chain(first, rows)


def _of_records(
    records: Iterable[Mapping[str, Any]], columns: Sequence[str | None], are_pairs: bool
) -> Iterator[Any]:
    """The text of each row, or an example if the row has a group as well; of pairs tuples."""
    for index, record in enumerate(records):
        cells: list[Any] = [name and _known_cell(record, name) for name in columns]
        first, *others = cells
        texts, more = others[:are_pairs], others[are_pairs:]
        more = ["" if value is None else str(value) for value in more]
        if are_pairs:
            yield first, *texts, *more
        else:
            yield Example(index, first, group=more[0]) if more else first


def _known_cell(record: Mapping[str, Any], name: str) -> Any:
    try:
        return cell_of(record, name)
    except KeyError:  # as of a row that lacks the column
        return None


def _stored(name: str, names: Collection[str]) -> str:
    """The column that holds what a name in the notation of `cell_of` means."""
    return name if name in names else outer_name(name)


def _columns(
    names: Collection[str],
    column: str | Sequence[str] | None,
    pairs: tuple[str | None, ...] | None,
    group_column: str | None,
) -> tuple[str | None, ...]:
    if pairs is not None:
        requested = pairs if column is None else tuple(column)
        if isinstance(column, str) or len(requested) not in (2, 3):
            raise OptionError(
                'a pair has two columns (column=("BETTER", "WORSE") or with "GROUP"); '
                f"it was {column!r}"
            )
        group = (*requested, None)[2] if column is not None else group_column
        requested = (*requested[:2], group or group_column, pairs[2])
        return pair_columns(names, requested, "the data", "better_column=, worse_column=")
    if not isinstance(column, str | None):
        raise OptionError(f"a text has one column (column=NAME); they were {column!r}")
    chosen = (choose_column(names, column, "the data", "column=NAME"),)
    if group_column is None:
        return chosen
    return (*chosen, choose_column(names, group_column, "the data", "group_column=NAME"))


def pair_columns(
    columns: Collection[str],
    requested: Sequence[str | None],
    source: str,
    by: str = "--better-column NAME --worse-column NAME",
) -> tuple[str | None, ...]:
    """The columns of the better and the worse sentence and, if there are any, of group and given.

    Those `requested`, four names or None, else those of a known layout.

    >>> pair_columns(["UID", "sentence_good", "sentence_bad"], (None, None, "UID", None), "example")
    ('sentence_good', 'sentence_bad', 'UID')
    """
    better, worse, group, given = requested
    layouts = [
        layout
        for layout in PAIR_LAYOUTS
        if {outer_name(name) for name in (layout.better, layout.worse, layout.given) if name}
        <= {*map(outer_name, columns)}
    ]
    if better is None and not layouts:
        raise DataError(
            f"{source}: it has {', '.join(map(repr, columns)) or 'no columns'}, which is no "
            f"known layout of pairs; name both sentences ({by})"
        )
    layout = layouts[0] if layouts else None
    if layout and better in (None, layout.better) and worse in (None, layout.worse):
        better, worse, given = layout.better, layout.worse, given or layout.given
        if group is None and layout.group in columns:
            group = layout.group
    chosen = [
        _chosen(columns, better, source, by),
        _chosen(columns, worse, source, by),
        group and _chosen(columns, group, source, "--group-column NAME"),
        given and _chosen(columns, given, source, "--given-column NAME"),
    ]
    while chosen[-1] is None:
        del chosen[-1]
    return tuple(chosen)


def _chosen(columns: Collection[str], name: str | None, source: str, by: str) -> str:
    """The column of a name, which may choose an element of it in the notation of `cell_of`."""
    if name and "[" in name and outer_name(name) in map(outer_name, columns):
        return name
    return choose_column(columns, name, source, by)


def outer_name(name: str) -> str:
    """The column that the notation of `cell_of` starts from.

    >>> outer_name("sentences[gold_label=1].sentence"), outer_name("translation.en")
    ('sentences', 'translation')
    """
    return re.split(r"[.\[]", name, maxsplit=1)[0]


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


_SELECTED = re.compile(
    r"(?P<outer>[^\[\]]+)\[(?P<key>\w+)=(?P<values>[^\]]*)\](?:\.(?P<inner>.+))?"
)


def cell_of(record: Mapping[str, Any], name: str) -> Any:
    """The value of a column; None inside of null; a `KeyError` for no such.

    `a.b` is b inside of a. `a[key=x|y].b` is b of that element of the list a whose key is x or y;
    the elements may also lie in lists by key. `a[without=x]` is null for a text with x in it.

    >>> cell_of({"translation": {"en": "A dog."}}, "translation.en")
    'A dog.'
    >>> rows = {"label": [0, 1], "text": ["no", "yes"]}
    >>> cell_of({"rows": rows}, "rows[label=true|1].text")
    'yes'
    """
    if match := _SELECTED.fullmatch(name):
        value = cell_of(record, match["outer"])
        if match["key"] == "without":
            return None if value and match["values"] in value else value
        if isinstance(value, Mapping):
            value = [
                dict(zip(value, cells, strict=True)) for cells in zip(*value.values(), strict=True)
            ]
        wanted = match["values"].split("|")
        for element in value or ():
            if str(element[match["key"]]) in wanted:
                return cell_of(element, match["inner"])
        return None
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
    """The column that holds the texts: the one named, else a known one, else the only one.

    Case and surrounding spaces matter only between names that differ in nothing else. `by` is how
    one is named.

    >>> choose_column(["label", " Text"], None, "example")
    ' Text'
    """
    names = {name.strip().casefold() for name in columns}
    known = next((name for name in TEXT_COLUMNS if name in names), "text")
    target = requested or known
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
