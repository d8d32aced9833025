"""Files that a page offers to save: the last one of each purpose."""

import shutil
import tempfile
from pathlib import Path


class Downloads:
    """Folders of one page.

    Args:
        scratch: the folder that they are made in.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._folders: dict[str, Path] = {}

    def fresh_folder(self, purpose: str) -> Path:
        """A folder for a file, in place of the last one of this purpose."""
        self._drop(purpose)
        self._folders[purpose] = Path(tempfile.mkdtemp(dir=self._scratch))
        return self._folders[purpose]

    def clear(self) -> None:
        """Remove them all."""
        for purpose in [*self._folders]:
            self._drop(purpose)

    def _drop(self, purpose: str) -> None:
        folder = self._folders.pop(purpose, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
