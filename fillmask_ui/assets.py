"""Where files lie: those that ship with the project, and those that it keeps for its user.

In a clone and an editable install the shipped ones are `assets/` beside the package; a wheel
carries them inside the package as `_assets/`.
"""

import os.path
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.errors import DataError, ModelError


def asset(name: str) -> Path:
    """Path of a shipped folder or file, e.g. `model` or `texts`.

    Raises:
        ModelError: if the installation lacks it.
    """
    package = Path(__file__).parent
    for root in (package / "_assets", package.parent / "assets"):
        if (root / name).exists():
            return root / name
    raise ModelError(
        f"the shipped asset {name!r} is missing from this installation; "
        "reinstall with: pip install --force-reinstall fillmask-ui"
    )


def expanded(path: str) -> Path:
    """A path with a home in place of `~` or `~name`; as it is written where there is none."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - `Path.expanduser` raises then


def home() -> Path:
    """The user's home folder, for `UserFolder.path`, which refuses `~` where there is none."""
    return expanded("~")


@dataclass(frozen=True)
class UserFolder:
    """A folder in the home of a user, by the conventions of each platform."""

    variable: str  # of the environment that names another one
    xdg: str  # variable of the XDG base directories, and what stands in for it
    unix: str
    mac: str
    inner: str  # path behind these

    def path(self, environment: Mapping[str, str], platform: str, home: Path) -> Path:
        """The folder on a `sys.platform`.

        Raises:
            DataError: if it would lie in a home that there is not.

        >>> CACHE.path({}, "linux", Path("/home/ada")).as_posix()
        '/home/ada/.cache/fillmask-ui'
        >>> CACHE.path({"FILLMASK_UI_CACHE": " "}, "linux", Path("/home/ada")).as_posix()
        '/home/ada/.cache/fillmask-ui'
        >>> RUNS.path({}, "darwin", Path("/home/ada")).as_posix()
        '/home/ada/Library/Application Support/fillmask-ui/runs'
        """
        given = environment.get(self.variable, "")
        found = expanded(given) if given.strip() else self._usual(environment, platform, home)
        if found.parts[:1] and found.parts[0].startswith("~"):
            raise DataError(
                f"there is no home folder for {found}: set {self.variable} to a folder that can be "
                "written"
            )
        return found

    def _usual(self, environment: Mapping[str, str], platform: str, home: Path) -> Path:
        """The folder where the variable does not name one."""
        if platform == "win32":
            base = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
        elif platform == "darwin":
            base = home / self.mac
        else:
            base = Path(environment.get(self.xdg) or home / self.unix)
        return base / self.inner


CACHE = UserFolder("FILLMASK_UI_CACHE", "XDG_CACHE_HOME", ".cache", "Library/Caches", "fillmask-ui")
RUNS = UserFolder(
    "FILLMASK_UI_RUNS",
    "XDG_DATA_HOME",
    ".local/share",
    "Library/Application Support",
    "fillmask-ui/runs",
)
VARIANTS = UserFolder(
    "FILLMASK_UI_VARIANTS",
    "XDG_DATA_HOME",
    ".local/share",
    "Library/Application Support",
    "fillmask-ui/variants",
)
