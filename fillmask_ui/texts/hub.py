"""Texts of Hugging Face data sets; the only file that imports the datasets library.

Stored data sets are shuffled by `Dataset.shuffle(seed)`. Streamed ones by
`IterableDataset.shuffle(seed)`, which mixes the files and shuffles within a buffer of 1,000 rows:
an order of its own, the same each time for the same version of the library.

The id of an example is its row in the split. Only a shuffled stream does not know it: there the
id is the place in that stream, so its masks are the same from run to run and from model to model,
but not those of the same text in a stored data set.
"""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fillmask_ui.errors import DataError, FillmaskError, NetworkError, OptionError, unknown
from fillmask_ui.records import Example
from fillmask_ui.texts.rows import as_text, choose_column
from fillmask_ui.texts.source import TextSource
from fillmask_ui.texts.texts import OpenedRows

if TYPE_CHECKING:
    import datasets

# A column of our own beside the text; shuffled with it, it keeps where each row was.
_POSITION = "__row_of_the_split__"
# Libraries through which datasets and huggingface_hub talk to the network.
_NETWORK_LIBRARIES = ("httpx", "httpcore", "requests", "urllib3", "aiohttp")


def open_dataset(source: TextSource) -> OpenedRows:
    """Examples of a data set on the hub, or of a folder that the datasets library can load.

    Raises:
        DataError: if the data set is missing, gated, unreadable or lacks the column.
        OptionError: for a configuration or split that it does not have; known ones are listed.
        NetworkError: if it has to be fetched and cannot be.
    """
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"reading the data set {source.where} needs the datasets library: "
            'pip install "fillmask-ui[hub]"'
        ) from error
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    # It says of every data set without a card that it has none.
    logging.getLogger("huggingface_hub.repocard").setLevel(logging.ERROR)
    with _explained(source):
        builder = _builder(source)
        _check_split(builder, source)
        opened = _streamed(builder, source) if source.streaming else _stored(builder, source)
    return OpenedRows(_explaining(opened.examples, source), opened.available)


def _builder(source: TextSource) -> datasets.DatasetBuilder:
    import datasets

    try:
        return datasets.load_dataset_builder(source.where, source.config, revision=source.revision)
    except ValueError as error:
        configs = datasets.get_dataset_config_names(source.where, revision=source.revision)
        if source.config is not None and source.config not in configs:
            message = unknown(f"configuration of {source.where}", source.config, configs)
        elif source.config is None and len(configs) > 1:
            message = (
                f"{source.where} has several configurations; choose one with --dataset-name: "
                + ", ".join(sorted(configs))
            )
        else:
            raise
        raise OptionError(message) from error


def _check_split(builder: datasets.DatasetBuilder, source: TextSource) -> None:
    """Refuse a split that is not there before anything large is fetched."""
    known = set(builder.info.splits or ()) or set(builder.config.data_files or ())
    asked = {part.split("[")[0].strip() for part in source.split.split("+")}
    for name in sorted(asked - known - {"all"}):
        if known:
            raise OptionError(unknown(f"split of {source.where}", name, known))
    if source.streaming and "[" in source.split:
        raise OptionError(
            f"the split {source.split!r} is a slice, which a streamed data set cannot give; take "
            "the whole split with a number of samples, or do not stream"
        )


def _stored(builder: datasets.DatasetBuilder, source: TextSource) -> OpenedRows:
    import datasets

    builder.download_and_prepare()
    rows = builder.as_dataset(split=source.split)
    if not isinstance(rows, datasets.Dataset):
        raise OptionError(f"the split {source.split!r} of {source.where} is not one split")
    column = choose_column(rows.column_names, source.column, source.where)
    _check_holds_text(rows.features[column], column, source.where)
    available = len(rows)
    rows = rows.select_columns([column])
    if source.shuffle and available:
        rows = rows.add_column(_POSITION, np.arange(available)).shuffle(seed=source.seed)
    if source.samples is not None:
        rows = rows.select(range(min(source.samples, available)))
    return OpenedRows(_examples(rows, column, source.where), available)


def _streamed(builder: datasets.DatasetBuilder, source: TextSource) -> OpenedRows:
    rows = builder.as_streaming_dataset(split=source.split)
    first: dict[str, Any] = {}
    if rows.features is None:
        first = next(iter(rows), first)
    columns = list(rows.features or first)
    if not columns:
        return OpenedRows(iter(()), 0)
    column = choose_column(columns, source.column, source.where)
    if rows.features is not None:
        _check_holds_text(rows.features[column], column, source.where)
    rows = rows.select_columns([column])
    if source.shuffle:
        rows = rows.shuffle(seed=source.seed)
    examples = islice(_examples(rows, column, source.where), source.samples)
    split = (builder.info.splits or {}).get(source.split)
    return OpenedRows(examples, split.num_examples or None if split is not None else None)


def _examples(rows: Any, column: str, place: str) -> Iterator[Example]:
    for index, row in enumerate(rows):
        position = row.get(_POSITION, index)
        yield Example(position, as_text(row[column], column, f"{place}, row {position}"))


def _check_holds_text(feature: Any, column: str, place: str) -> None:
    # A column of nulls alone is one of empty texts.
    if getattr(feature, "dtype", None) not in ("string", "large_string", "null"):
        held = getattr(feature, "dtype", None) or type(feature).__name__
        raise DataError(
            f"{place}: column {column!r} holds {held}, text was wanted; choose another column "
            "(--column input_column=NAME)"
        )


def _explaining(examples: Iterator[Example], source: TextSource) -> Iterator[Example]:
    """The same examples; a network lost on the way is explained as well."""
    with _explained(source):
        yield from examples


@contextmanager
def _explained(source: TextSource) -> Iterator[None]:
    """Errors of the libraries as errors with a remedy."""
    import pyarrow as pa
    from datasets.exceptions import DatasetsError

    try:
        yield
    except FillmaskError:
        raise
    except Exception as error:
        # The libraries below have no common base class; what is not theirs stays as it is.
        expected = (DatasetsError, OSError, ValueError, RuntimeError, pa.ArrowException)
        if isinstance(error, expected) or _of_network(error):
            raise _explanation(error, source) from error
        raise


def _explanation(error: BaseException, source: TextSource) -> FillmaskError:
    chain = list(_chain(error))
    names = {kind.__name__ for link in chain for kind in type(link).__mro__}
    said = " ".join(str(link) for link in chain)
    name = source.where
    if "GatedRepoError" in names or "gated dataset" in said:
        return DataError(
            f"the data set {name} is gated: accept its terms at "
            f"https://huggingface.co/datasets/{name}, then log in with: hf auth login"
        )
    if "RevisionNotFoundError" in names or (source.revision and "Revision '" in said):
        return DataError(
            f"the data set {name} has no revision {source.revision!r}; give a branch, a tag or a "
            "commit (--revision)"
        )
    if names & {"RepositoryNotFoundError", "DatasetNotFoundError", "HFValidationError"}:
        return DataError(
            f"{name} is no file here and no data set on the hub that can be read; check the name "
            "(OWNER/NAME), or log in with: hf auth login if it is private"
        )
    if "corresponds to no data" in said:
        return DataError(f"{name} is empty: its split {source.split!r} has no texts")
    if names & {"DataFilesNotFoundError", "EmptyDatasetError"}:
        return DataError(f"the data set {name} has no data files that can be read")
    if any(getattr(link, "errno", None) == errno.ENOSPC for link in chain):
        return DataError(
            f"the disk is full: the data set {name} is stored in the cache of the datasets "
            "library; free space, set HF_HOME to another folder, or stream it (--streaming)"
        )
    lost = [link for link in chain if _of_network(link)]
    if lost:
        return NetworkError(
            f"the data set {name} cannot be fetched ({_first_line(lost[-1])}); check the "
            "connection, or use the embedded texts or a file"
        )
    return DataError(f"the data set {name} cannot be read: {_first_line(chain[-1])}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, the origin last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _of_network(error: BaseException) -> bool:
    library = type(error).__module__.split(".")[0]
    return isinstance(error, ConnectionError | TimeoutError) or library in _NETWORK_LIBRARIES


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
