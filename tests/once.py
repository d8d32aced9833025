"""What takes seconds to make is made once for all workers of a test run: a pytest plugin."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


class Once:
    """Folders that all workers share.

    Attributes:
        root: the folder of this test run.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def do(self, name: str, action: Callable[[], object]) -> None:
        """Carry it out in the first worker that asks; the others wait."""
        marker = self.root / "done" / name.replace("/", "-")
        marker.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{marker}.lock"):
            if not marker.exists():
                action()
                marker.touch()

    def folder(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder `name`, filled by `make(folder)` once."""
        folder = self.root / name

        def fill() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            make(folder)

        self.do(name, fill)
        return folder


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """`once.folder(name, make)`: must not be changed by a test."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # each worker has a folder of its own in that of the run
    return Once(root / "once")
