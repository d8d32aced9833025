"""The folders of a user, on each platform as `platformdirs` knows it."""

from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from fillmask_ui.files import user_folder


@pytest.mark.parametrize(
    ("platform", "kind", "variables", "folder"),
    [
        (Unix, "cache", {}, "/home/ada/.cache/fillmask-ui"),
        (Unix, "runs", {}, "/home/ada/.local/share/fillmask-ui/runs"),
        (MacOS, "cache", {}, "/home/ada/Library/Caches/fillmask-ui"),
        (MacOS, "runs", {}, "/home/ada/Library/Application Support/fillmask-ui/runs"),
        (Unix, "runs", {"FILLMASK_UI_RUNS": "~/mine"}, "/home/ada/mine"),
        (Unix, "cache", {"FILLMASK_UI_CACHE": " ", "XDG_CACHE_HOME": "/x"}, "/x/fillmask-ui"),
    ],
)
def test_the_folders_of_a_user(monkeypatch, platform, kind, variables, folder):
    for name in ("FILLMASK_UI_CACHE", "FILLMASK_UI_RUNS", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/ada", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(platformdirs, "PlatformDirs", platform)
    assert user_folder(kind) == Path(folder)
