"""Texts of Hugging Face data sets; the only file that imports the datasets library.

`IterableDataset.shuffle(seed)` mixes the files of a stream and shuffles within a buffer of 1,000
rows: the same order each time for the same version of the library. A stream so shuffled does not
know the rows of the split: there the id of an example is the place in the stream, so its masks are
the same from run to run, but not those of the same text in a stored data set.
"""

from __future__ import annotations

import errno
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fillmask_ui.errors import (
    DataError,
    FillmaskError,
    NetworkError,
    OptionError,
    first_line,
    unknown,
)
from fillmask_ui.records import Example
from fillmask_ui.texts.lines import is_folder
from fillmask_ui.texts.order import OrderedRows
from fillmask_ui.texts.rows import as_text, choose_column, text_column
from fillmask_ui.texts.source import TextSource

if TYPE_CHECKING:
    import datasets

# So long the hub is waited for before the cache is used.
ANSWER_SECONDS = 3.0
_OFFLINE = threading.Lock()
# A column of our own beside the text; shuffled with it, it keeps where each row was.
_POSITION = "__row_of_the_split__"
# Libraries through which datasets and huggingface_hub talk to the network.
_NETWORK_LIBRARIES = ("httpx", "httpcore", "requests", "urllib3", "aiohttp")
# Names of errors and what they say -> the message; {0} is the `TextSource`. The first applies.
_EXPLANATIONS = {
    ("GatedRepoError", "gated dataset"): (
        "the data set {0.where} is gated: accept its terms at "
        "https://huggingface.co/datasets/{0.where}, then log in with: hf auth login"
    ),
    ("RevisionNotFoundError", "Revision '{0.revision}'"): (
        "the data set {0.where} has no revision {0.revision!r}; give a branch, a tag or a commit "
        "(--revision)"
    ),
    ("RepositoryNotFoundError", "DatasetNotFoundError", "HFValidationError"): (
        "{0.where} is no file here and no data set on the hub that can be read; check the name "
        "(OWNER/NAME), or log in with: hf auth login if it is private"
    ),
    ("corresponds to no data",): "{0.where} is empty: its split {0.split!r} has no texts",
    ("DataFilesNotFoundError", "EmptyDatasetError"): (
        "the data set {0.where} has no data files that can be read"
    ),
    (f"[Errno {errno.ENOSPC}]",): (
        "the disk is full: the data set {0.where} is stored in the cache of the datasets library; "
        "free space, set HF_HOME to another folder, or stream it (--streaming)"
    ),
}


def open_dataset(source: TextSource) -> OrderedRows:
    """Examples of a data set on the hub, or of a folder that the datasets library can load."""
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
        builder = _reached_builder(source)
        _check_split(builder, source)
        return _rows(builder, source)


def _reached_builder(source: TextSource) -> datasets.DatasetBuilder:
    """The builder, from the cache where the hub does not answer; a `NetworkError` without either.

    The library would ask for 24 s, and for more than a minute where nobody refuses.
    """
    import datasets

    if datasets.config.HF_HUB_OFFLINE or is_folder(Path(source.where)):
        return _builder(source)
    silence = _silence(source)
    if not silence:
        return _builder(source)
    # Nobody else loses a hub by this: it does not answer.
    with _OFFLINE:
        datasets.config.HF_HUB_OFFLINE = True
        try:
            return _builder(source)
        except ConnectionError as error:
            raise NetworkError(
                f"the data set {source.where} cannot be fetched ({silence}) and is not in the "
                "cache; check the connection, or use the embedded texts or a file"
            ) from error
        finally:
            datasets.config.HF_HUB_OFFLINE = False


def _silence(source: TextSource) -> str:
    """Why the hub says nothing of a data set; blank where it answers, if only that it has none."""
    from huggingface_hub import HfApi, errors

    said = [f"the hub did not answer within {ANSWER_SECONDS:g} s"]

    def ask() -> None:
        try:
            HfApi().dataset_info(source.where, revision=source.revision, expand=["sha"])
        except errors.HfHubHTTPError as error:
            failed = error.response.status_code >= 500
            said.append(f"the hub failed: {first_line(error)}" if failed else "")
        except (errors.HTTPError, OSError) as error:
            said.append(f"the hub cannot be reached: {first_line(error)}")
        except ValueError:  # no name of a data set, which is said later
            said.append("")
        else:
            said.append("")

    # A thread, as no timeout of the client includes the search for the address.
    asking = threading.Thread(target=ask, daemon=True, name="hub")
    asking.start()
    asking.join(ANSWER_SECONDS)
    return said[-1]


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
    found = builder.info.splits or builder.config.data_files or ()
    known = {str(name) for name in found}  # which of files in a folder are no strings
    asked = {part.split("[")[0].strip() for part in source.split.split("+")}
    if known and (missing := sorted(asked - known - {"all"})):
        raise OptionError(unknown(f"split of {source.where}", missing[0], known))
    if source.streaming and "[" in source.split:
        raise OptionError(
            f"the split {source.split!r} is a slice, which a streamed data set cannot give; take "
            "the whole split with a number of samples, or do not stream"
        )


def _rows(builder: datasets.DatasetBuilder, source: TextSource) -> OrderedRows:
    available: int | None
    if source.streaming:
        rows: Any = builder.as_streaming_dataset(split=source.split)
        split = (builder.info.splits or {}).get(source.split)
        available = (split and split.num_examples) or None
    else:
        builder.download_and_prepare()
        rows = builder.as_dataset(split=source.split)
        available = len(rows)
    if rows.features is not None:
        column = text_column(rows.features.arrow_schema, source.column, source.where)
    elif (first := next(iter(rows), None)) is not None:
        column = choose_column(first, source.column, source.where)
    else:
        return OrderedRows(iter(()), 0)
    rows = rows.select_columns([column])
    if source.shuffle:
        if not source.streaming:
            rows = rows.add_column(_POSITION, np.arange(len(rows)))
        rows = rows.shuffle(seed=source.seed)
    return OrderedRows(islice(_examples(rows, column, source), source.samples), available)


def _examples(rows: Any, column: str, source: TextSource) -> Iterator[Example]:
    with _explained(source):  # a network lost on the way as well
        for index, row in enumerate(rows):
            position = row.get(_POSITION, index)
            place = f"{source.where}, row {position}"
            yield Example(position, as_text(row[column], column, place))


@contextmanager
def _explained(source: TextSource) -> Iterator[None]:
    """Errors of the libraries, which have no common base class, as errors with a remedy."""
    try:
        yield
    except FillmaskError:
        raise
    except Exception as error:
        chain: list[BaseException] = [error]  # the error and what led to it, the origin last
        while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
            chain.append(cause)
        kinds = {kind.__name__ for link in chain for kind in type(link).__mro__}
        wording = " ".join([*kinds, *map(str, chain)])
        for signs, message in _EXPLANATIONS.items():
            if any(sign.format(source) in wording for sign in signs):
                raise DataError(message.format(source)) from error
        lost = [link for link in chain if _of_network(link)]
        origin = first_line((lost or chain)[-1]).rstrip(".")
        if lost:
            raise NetworkError(
                f"the data set {source.where} cannot be fetched ({origin}); check the connection, "
                "or use the embedded texts or a file"
            ) from error
        raise DataError(f"the data set {source.where} cannot be read: {origin}") from error


def _of_network(error: BaseException) -> bool:
    library = type(error).__module__.split(".")[0]
    return isinstance(error, ConnectionError | TimeoutError) or library in _NETWORK_LIBRARIES
