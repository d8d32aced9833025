"""Texts of Hugging Face data sets; the only module that imports the datasets library.

A stream is shuffled within a buffer of 1,000 rows, in an order fixed for one version of the
library. Its ids are places in that order, so masks are the same from run to run, but differ from
those of the same text in a stored data set.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fillmask_ui.errors import NetworkError, OptionError, first_line, opening, unknown
from fillmask_ui.evaluation.given_texts import nested_names, outer_name
from fillmask_ui.models.loading_progress import quiet_logger
from fillmask_ui.records import Example
from fillmask_ui.texts.files import is_folder
from fillmask_ui.texts.rows import (
    Cells,
    Notes,
    OrderedRows,
    cells_of,
    choose_columns,
    optional_library,
)
from fillmask_ui.texts.source import TextSource

if TYPE_CHECKING:
    import datasets

# How long to wait for the hub before using the cache.
ANSWER_SECONDS = 3.0
_OFFLINE = threading.Lock()  # held while the library's own switch is read or set
# An added column with each row's place before shuffling.
_POSITION = "__row_of_the_split__"


def open_dataset(source: TextSource, notes: Notes) -> OrderedRows:
    """Examples of a data set on the hub, or of a folder that the library can load."""
    datasets = optional_library("datasets")
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    with quiet_logger("huggingface_hub.repocard"), opening("texts", source.where):
        builder = _builder(source)
        # Refuse an unknown split before any large download.
        names = builder.info.splits or builder.config.data_files or ()
        splits = {str(name) for name in names}  # for files in a folder they are not strings
        requested = {part.split("[")[0].strip() for part in source.split.split("+")}
        if splits and (missing := sorted(requested - splits - {"all"})):
            problem = unknown(f"split of {source.where}", missing[0], splits)
            raise OptionError(f"{problem} (--split)")
        return _rows(builder, source, notes)


def _builder(source: TextSource) -> datasets.DatasetBuilder:
    """The builder, from the cache if the hub does not answer."""
    import datasets

    with _OFFLINE:
        offline = datasets.config.HF_HUB_OFFLINE
        # The library would keep asking an unreachable hub for 24 s.
        silence = "" if offline or is_folder(source.where) else _silence(source)
        datasets.config.HF_HUB_OFFLINE = offline or bool(silence)
        try:
            return datasets.load_dataset_builder(
                source.where, source.config, revision=source.revision
            )
        except ConnectionError as error:
            why = silence or first_line(error)
            raise NetworkError(
                f"{source.where} is not in the cache and cannot be fetched ({why}): check the "
                "connection, or use the embedded texts or a file"
            ) from error
        except ValueError as error:  # its second line lists the configurations
            message = " ".join(str(error).splitlines()[:2])
            raise OptionError(f"{source.where}: {message} (--dataset-name)") from error
        finally:
            datasets.config.HF_HUB_OFFLINE = offline


def _silence(source: TextSource) -> str:
    """Why the hub does not answer about a data set; blank if it does, even with an error."""
    from huggingface_hub import HfApi, errors

    try:
        HfApi().dataset_info(source.where, expand=["sha"], timeout=ANSWER_SECONDS)
    except errors.HfHubHTTPError as error:
        return first_line(error) if error.response.status_code >= 500 else ""
    except (errors.HTTPError, OSError) as error:
        return f"the hub cannot be reached: {first_line(error)}"
    except ValueError:  # not a name of a data set; the library reports it
        return ""
    return ""


def _rows(builder: datasets.DatasetBuilder, source: TextSource, notes: Notes) -> OrderedRows:
    available: int | None
    if source.streaming:
        rows: Any = builder.as_streaming_dataset(split=source.split)
        split = (builder.info.splits or {}).get(source.split)
        available = (split and split.num_examples) or None
    else:
        builder.download_and_prepare()
        rows = builder.as_dataset(split=source.split)
        available = len(rows)
    # Some streams learn their columns from the first row.
    outer: Any = rows.features or next(iter(rows), {})
    names = [*outer, *outer.flatten()] if rows.features else nested_names(outer)
    chosen = choose_columns(dict.fromkeys(names), source, source.where)
    read = filter(None, chosen)
    whole = [name if name in outer else outer_name(name) for name in read]
    rows = rows.select_columns([*dict.fromkeys(whole)])
    if source.shuffle:
        if not source.streaming:
            rows = rows.add_column(_POSITION, np.arange(len(rows)))
        rows = rows.shuffle(seed=source.seed)
    return islice(_examples(rows, chosen, source, notes), source.samples), available


def _examples(rows: Any, columns: Cells, source: TextSource, notes: Notes) -> Iterator[Example]:
    group = columns[2] if len(columns) > 2 else None
    # A class label is stored by its number.
    labels = getattr((rows.features or {}).get(group), "names", None)
    with opening("texts", source.where):  # the network may fail midway
        for index, row in enumerate(rows):
            position = row.get(_POSITION, index)
            if labels and row[group] is not None and row[group] >= 0:
                row[group] = labels[row[group]]
            cells = cells_of(row, columns, f"{source.where}, row {position}", notes)
            yield Example(position, *cells)
