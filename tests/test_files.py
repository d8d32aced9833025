"""The folders of a user, on each platform as `platformdirs` knows it."""

from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from fillmask_ui.errors import DataError
from fillmask_ui.files import user_folder


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("FILLMASK_UI_CACHE", "FILLMASK_UI_RUNS", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")


@pytest.mark.parametrize(
    ("platform", "kind", "folder"),
    [
        (Unix, "cache", "/home/ada/.cache/fillmask-ui"),
        (Unix, "runs", "/home/ada/.local/share/fillmask-ui/runs"),
        (MacOS, "cache", "/home/ada/Library/Caches/fillmask-ui"),
        (MacOS, "runs", "/home/ada/Library/Application Support/fillmask-ui/runs"),
    ],
)
def test_the_folders_of_platforms(monkeypatch, platform, kind, folder):
    monkeypatch.setattr(platformdirs, "PlatformDirs", platform)
    assert user_folder(kind) == Path(folder)


def test_variables_name_other_folders(monkeypatch):
    monkeypatch.setenv("FILLMASK_UI_RUNS", "~/mine")
    monkeypatch.setenv("FILLMASK_UI_CACHE", " ")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert user_folder("runs") == Path("/home/ada/mine")
    assert user_folder("cache") == Path("/x/fillmask-ui")


def test_a_home_that_does_not_exist_is_said(monkeypatch):
    monkeypatch.setenv("FILLMASK_UI_RUNS", "~nosuchuser/runs")
    with pytest.raises(DataError, match="no home folder for ~nosuchuser/runs"):
        user_folder("runs")
