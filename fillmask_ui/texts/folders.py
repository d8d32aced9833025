"""Which files hold texts, and which folders are data sets for the datasets library."""

import re
from contextlib import suppress
from pathlib import Path

from fillmask_ui.errors import DataError, opening
from fillmask_ui.texts.lines import is_folder

FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
# Other endings under which the same formats are found.
_IN_FOLDERS = {
    **{name: name for name in FORMATS},
    "text": "txt",
    "ndjson": "jsonl",
    "pq": "parquet",
}
# Beside texts such files say something else, so that they count only where they are named.
ENDINGS = {**_IN_FOLDERS, "json": "jsonl", "log": "txt"}
# Files of the datasets library: of a data set that it wrote, or that has a loading description.
_MARKS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
# A split in the name of a file or folder (Source: Hugging Face datasets, `data_files.py`).
_SPLIT = re.compile(
    r"(^|[-._ 0-9])"
    r"(train|training|validation|valid|dev|val|test|testing|eval|evaluation)"
    r"($|[-._ 0-9])"
)
_CARD_CHARACTERS = 1 << 16


def ending(name: str) -> str:
    """What follows the last dot of a name in small letters, but for .gz.

    >>> ending("News.CSV.gz")
    'csv'
    """
    return Path(name.lower().removesuffix(".gz")).suffix.removeprefix(".")


def text_files(folder: str | Path) -> list[Path]:
    """The files of a known ending in a folder, or if it has none, those of the folders in it.

    They are sorted by name, folder by folder; hidden ones are left out. A `DataError` without any.
    """
    found = _found(Path(folder))
    if not found:
        raise DataError(
            f"the folder {folder} has no file that ends in .{', .'.join(_IN_FOLDERS)} (also .gz of "
            "the text ones); of a data set of the datasets library, name the split (--split train)"
        )
    return found


def is_data_set(folder: Path) -> bool:
    """Whether a folder is laid out for the datasets library, not just one of files.

    So it is if something in it is named after a split (`test.csv`, `test-00000-of-00002.parquet`,
    `train/`), if it holds the library's own files or a card that describes the data, or if it has
    folders and none of the files that `text_files` would find.
    """
    top, files = _entries(folder), _found(folder)
    folders = [path.name for path in top if is_folder(path)]
    names = [*folders, *(part for path in files for part in path.relative_to(folder).parts)]
    return (
        any(path.name in _MARKS for path in top)
        or any(map(_SPLIT.search, names))
        or (not files and bool(folders))
        or _describes_data(folder / "README.md")
    )


def _entries(folder: Path) -> list[Path]:
    with opening("texts", folder):
        visible = (path for path in folder.iterdir() if not path.name.startswith("."))
        return sorted(visible, key=lambda path: path.name)


def _found(folder: Path) -> list[Path]:
    paths = _entries(folder)
    files = [path for path in paths if ending(path.name) in _IN_FOLDERS and not is_folder(path)]
    # A link may lead back.
    inner = (path for path in paths if is_folder(path) and not path.is_symlink())
    return files or [file for path in inner for file in _found(path)]


def _describes_data(card: Path) -> bool:
    """Whether the YAML at the beginning of a README says which files make up a data set."""
    with suppress(OSError), card.open(encoding="utf-8", errors="replace") as file:
        header = file.read(_CARD_CHARACTERS).split("\n---", 1)[0]
        declared = re.search("^(configs|dataset_info):", header, re.MULTILINE)
        return header.startswith("---\n") and bool(declared)
    return False
