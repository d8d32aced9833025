"""What lies in the hub's cache, repository by repository, so that a damaged one hides no other.

models--org--name/refs/main            the commit of a branch or tag
models--org--name/snapshots/COMMIT/    its files, most of them links to blobs
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fillmask_ui.errors import first_line

# `org/name`, or `name` alone.
_NAMED = re.compile(r"models--(?!-)(?:(?!--).)+(?:--(?!-)(?:(?!--).)+)?")


@dataclass(frozen=True)
class Snapshot:
    """One revision of a model as it lies in the cache."""

    reference: str  # as for `load_model`: the id, with a revision unless it is the main one
    folder: Path
    size_bytes: int  # of all its files


def snapshots(folder: Path) -> Iterator[Snapshot]:
    """Those of all models in a cache; a repository that cannot be read is left out with a warning.

    Raises:
        OSError: if the folder itself cannot be read.
    """
    for repository in sorted(folder.iterdir()):
        if _NAMED.fullmatch(repository.name):
            try:
                yield from list(_snapshots(repository))
            except (OSError, RuntimeError, ValueError) as error:  # a link to itself is the second
                _warn(f"{repository} is damaged and left out: {first_line(error)}")


def _snapshots(repository: Path) -> Iterator[Snapshot]:
    refs: dict[str, list[str]] = {}  # by commit
    for path in filter(Path.is_file, (repository / "refs").rglob("*")):
        name = path.relative_to(repository / "refs").as_posix()
        refs.setdefault(path.read_text(encoding="utf-8"), []).append(name)
    name = repository.name.removeprefix("models--").replace("--", "/")
    for folder in filter(Path.is_dir, (repository / "snapshots").glob("*")):
        files = {path.resolve(strict=True) for path in folder.rglob("*") if not path.is_dir()}
        known = refs.get(folder.name, [])
        other = min(known, default=folder.name)
        reference = name if "main" in known else f"{name}@{other}"
        yield Snapshot(reference, folder, sum(path.stat().st_size for path in files))


@cache
def _warn(line: str) -> None:
    """Once in a process."""
    logging.getLogger(__name__).warning(line)
