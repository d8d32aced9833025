"""Which files hold texts, and which folders are data sets for the datasets library."""

import re
from contextlib import suppress
from pathlib import Path

from fillmask_ui.errors import DataError
from fillmask_ui.texts.lines import explained, is_folder, is_pipe

FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
# Other endings under which the same formats are found.
ENDINGS = {**{name: name for name in FORMATS}, "text": "txt", "ndjson": "jsonl", "pq": "parquet"}
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
    """The files of a known ending in a folder itself, sorted by name; hidden ones are left out.

    Raises:
        DataError: if there is no such folder, it cannot be read, or it has no such file.
    """
    if not is_folder(folder):
        raise DataError(f"{folder} is not a folder; check the path of the folder of texts")
    found = [path for path in _entries(folder) if _holds_texts(path)]
    for path in filter(is_pipe, found):
        raise DataError(f"{path} is a pipe, which nobody may ever write to: delete it")
    if not found:
        raise DataError(
            f"the folder {folder} has no file that ends in .{', .'.join(ENDINGS)} (also .gz of the "
            "text ones): put the texts into it, not into folders inside it; of a data set of the "
            "datasets library, name the split (--split train)"
        )
    return found


def is_data_set(folder: str | Path) -> bool:
    """Whether a folder is laid out for the datasets library, not just one of files.

    So it is if something in it is named after a split (`test.csv`, `test-00000-of-00002.parquet`,
    `train/`), if it holds the library's own files or a card that describes the data, or if
    whatever texts it may have lie in folders inside it.

    Raises:
        DataError: if it cannot be read.
    """
    paths = _entries(folder)
    files = [path for path in paths if _holds_texts(path)]
    folders = [path for path in paths if is_folder(path)]
    return (
        any(path.name in _MARKS for path in paths)
        or any(_SPLIT.search(path.name) for path in [*files, *folders])
        or (not files and bool(folders))
        or _describes_data(Path(folder) / "README.md")
    )


def _entries(folder: str | Path) -> list[Path]:
    with explained(str(folder)):
        paths = sorted(Path(folder).iterdir(), key=lambda path: path.name)
    return [path for path in paths if not path.name.startswith(".")]


def _holds_texts(path: Path) -> bool:
    return ending(path.name) in ENDINGS and not is_folder(path)


def _describes_data(card: Path) -> bool:
    """Whether the YAML at the beginning of a README says which files make up a data set."""
    with suppress(OSError), card.open(encoding="utf-8", errors="replace") as file:
        beginning = file.read(_CARD_CHARACTERS)
        header = beginning.split("\n---", 1)[0]
        return header.startswith("---\n") and bool(
            re.search("^(configs|dataset_info):", header, re.MULTILINE)
        )
    return False
