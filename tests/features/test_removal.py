"""Each feature can be taken out, by its folder and its row: the rest goes on without it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fillmask_ui.extensions import FEATURES

ROOT = Path(__file__).parent.parent.parent
# Every module of the core imports, and those of features on the page; the page is built with the
# tabs that are left; a mask is filled. That no feature names another, `test_layers.py` holds.
PROGRAM = """
import importlib, pkgutil, sys
import fillmask_ui
assert fillmask_ui.__file__.startswith(sys.argv[1]), fillmask_ui.__file__
heavy = ("fillmask_ui.features.", "fillmask_ui.models.torch", "fillmask_ui.runs.collator")
for module in pkgutil.walk_packages(fillmask_ui.__path__, "fillmask_ui."):
    if not module.name.startswith(heavy):  # they import PyTorch or Ray
        importlib.import_module(module.name)
from fillmask_ui.extensions import FEATURES, features
from fillmask_ui.ui.page import build_app, tabs
assert [feature.name for feature in features()] == list(FEATURES)
page = build_app()
built = {part["props"].get("id") for part in page.config["components"]}
assert built >= {tab.name for tab in tabs(public=False)}
best = fillmask_ui.fill(fillmask_ui.load_model(), "The capital of France is [MASK].").masks[0]
print(best.candidates[0].word)
"""


def without(names, target):
    """A copy of the package without the folders and the rows of some features."""
    leave_out = shutil.ignore_patterns("__pycache__", "node_modules", "packed.tar.xz")
    package = shutil.copytree(ROOT / "fillmask_ui", target / "fillmask_ui", ignore=leave_out)
    (target / "assets").symlink_to(ROOT / "assets")
    shutil.copyfile(ROOT / "pyproject.toml", target / "pyproject.toml")
    slot = package / "extensions.py"
    text = slot.read_text("utf-8")
    for name in names:
        shutil.rmtree(package / "features" / name)
        text, count = re.subn(rf'^    "{name}",\n', "", text, flags=re.MULTILINE)
        assert count == 1
    slot.write_text(text, "utf-8")
    return target


def run(home, *command):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=home,
        env={"PYTHONPATH": str(home), "PATH": "/usr/bin:/bin", "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", FEATURES)
def test_the_program_goes_on_without_a_feature(name, tmp_path):
    home = without([name], tmp_path)
    assert run(home, "-c", PROGRAM, str(home)) == "paris\n"


def test_the_core_goes_on_alone(tmp_path):
    home = without(FEATURES, tmp_path)
    assert run(home, "-c", PROGRAM, str(home)) == "paris\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FEATURES, "all"])
def test_the_types_are_right_without_a_feature(name, tmp_path):
    home = without(FEATURES if name == "all" else [name], tmp_path)
    assert "Success" in run(home, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"))
