"""A folder with the recorded models and texts, in which each test works."""

import gzip
import shutil
from pathlib import Path

import pytest
from recorded.exact_models import build_all
from recorded.program import HERE


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models and texts under names without a path, as those are recorded."""
    root = tmp_path_factory.mktemp("workshop")
    shutil.copytree(HERE / "texts", root, dirs_exist_ok=True)
    content = (root / "texts.txt").read_bytes()
    (root / "texts.txt.gz").write_bytes(gzip.compress(content, mtime=0))
    build_all(root, content.decode().splitlines())
    return root


@pytest.fixture(autouse=True)
def in_workshop(workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start in the workshop; runs go to a folder of the test."""
    monkeypatch.chdir(workshop)
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "160")
