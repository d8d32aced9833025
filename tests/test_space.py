"""The tree that `fillmask-ui space` writes: what is in it, and that it starts as a Space does."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from fnmatch import fnmatch
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml
from packaging.requirements import Requirement
from serving import free_port
from test_package import ROOT, new_environment, run
from typer.testing import CliRunner

from fillmask_ui.cli.main import app
from fillmask_ui.errors import OptionError
from fillmask_ui.files import asset

COMPILED = {"__pycache__", "_assets", "node_modules", "packed.tar.xz"}


def files_in(folder):
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if COMPILED.isdisjoint(path.parts)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("space") / "tree"
    written = run(sys.executable, "-m", "fillmask_ui", "space", str(folder))
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith(f"{folder}: {len(files_in(folder))} files, ")
    return folder


def test_the_tree_holds_the_page_and_nothing_else(tree):
    assert {path.name for path in tree.iterdir()} == {
        *("README.md", "app.py", "requirements.txt", ".gitattributes", "fillmask_ui", "assets")
    }
    assert files_in(tree / "fillmask_ui") == files_in(ROOT / "fillmask_ui")
    assert {path.name for path in (tree / "assets").iterdir()} == {"model", "texts"}
    for name in ("model", "texts"):
        assert files_in(tree / "assets" / name) == files_in(asset(name))
    header = yaml.safe_load((tree / "README.md").read_text("utf-8").split("---\n")[1])
    assert (header["sdk"], header["app_file"]) == ("gradio", "app.py")
    wanted = (tree / "requirements.txt").read_text().splitlines()
    ours = (ROOT / "requirements.txt").read_text().splitlines()
    assert {*map(Requirement, wanted)} == {*map(Requirement, ours)}
    gradio = next(own for own in map(Requirement, wanted) if own.name == "gradio")
    assert header["sdk_version"] in gradio.specifier
    kinds = [line.split()[0] for line in (tree / ".gitattributes").read_text().splitlines()]
    for path in tree.rglob("*"):
        if path.is_file() and path.stat().st_size > 10 * 1024**2:
            assert any(fnmatch(path.name, kind) for kind in kinds), path


@pytest.mark.parametrize("offline", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_space_shows_the_first_page(tree, tmp_path, offline):
    """Offline its requirements resolve to what is installed here; else they come from PyPI."""
    requirements = str(tree / "requirements.txt")
    python = new_environment(tmp_path / "venv", "-r", requirements, offline=offline)
    port = str(free_port())
    own = {"SPACE_ID": "me/space", "GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": port}
    log = tmp_path / "log"
    with log.open("w") as file:
        page = subprocess.Popen(
            [str(python), "-B", "app.py"], cwd=tree, env=os.environ | own, stdout=file, stderr=file
        )
    try:
        while page.poll() is None:
            with suppress(URLError), urlopen(f"http://127.0.0.1:{port}/") as answer:
                assert b"Fill-mask explorer" in answer.read()
                assert "https://*.hf.space" in answer.headers["content-security-policy"]
                return
            time.sleep(0.1)
        pytest.fail(log.read_text())
    finally:
        page.kill()
        page.wait()


@pytest.mark.parametrize("directory", [".", "fillmask_ui/ui/new"])
def test_a_folder_of_this_installation_is_refused(directory, monkeypatch):
    monkeypatch.chdir(ROOT)
    answer = CliRunner().invoke(app, ["space", directory])
    assert isinstance(answer.exception, OptionError)
    assert "is part of this installation" in str(answer.exception)
