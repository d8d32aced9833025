"""A source as the files it is read from, each of which a process of its own can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fillmask_ui.errors import DataError
from fillmask_ui.texts.folders import text_files
from fillmask_ui.texts.lines import file_bytes
from fillmask_ui.texts.rows import count_parquet, read_parquet, read_rows
from fillmask_ui.texts.source import FILE, FOLDER, TextSource


def shards(source: TextSource) -> tuple[TextSource, ...]:
    """The files of a folder that is read in its own order, each as a source; others as they are.

    The texts of all files (`file_texts`), one file after another, are those of the folder, and
    their places in that stream their ids. `samples` of the folder is not kept: it is for the whole.

    Raises:
        DataError: if the folder cannot be read, has no file of texts, or files of two layouts.
        OptionError: for a unit or column that the layout of its files does not have.
    """
    return files_of(source) if source.kind == FOLDER and not source.shuffle else (source,)


def files_of(source: TextSource) -> tuple[TextSource, ...]:
    """The files of a folder in the order of their names, or the one file: whole, not shuffled.

    Errors as of `shards`.
    """
    whole = replace(source, samples=None, shuffle=False)
    if source.kind == FILE:
        return (whole,)
    files = [replace(whole, kind=FILE, where=str(path)) for path in text_files(source.where)]
    for file in files:
        if file.layout != files[0].layout:
            raise DataError(
                f"the files of a folder must be of one layout; {files[0].where} is "
                f"{files[0].layout}, {file.where} is {file.layout}: keep one kind in the folder, "
                "or give the format of all (--format)"
            )
    return tuple(files)


def file_texts(file: TextSource) -> Iterator[str]:
    """All texts of a file in its own order; a `DataError` with its name if it cannot be read."""
    if file.layout == "parquet":
        return read_parquet(file.where, file.column)
    return read_rows(file, file_bytes(file.where, compressed=file.compressed))


def count_texts(file: TextSource) -> int:
    """How many `file_texts` there are: for parquet from its metadata, else by reading past them."""
    if file.layout == "parquet":
        return count_parquet(file.where)
    return sum(1 for _ in file_texts(file))
