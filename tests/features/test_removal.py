"""Each feature can be taken out, by its folder and its row: the rest goes on without it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fillmask_ui.extensions import FEATURES

ROOT = Path(__file__).parent.parent.parent
# For each copy of the package, whose modules replace those of the copy before: every module of the
# core imports, and those of features on the page; the page is built with the tabs that are left; a
# mask is filled. Other libraries are imported once. `test_layers.py` holds that no feature names
# another.
PROGRAM = """
import importlib, os, pkgutil, sys

def check(home):
    import fillmask_ui
    assert fillmask_ui.__file__.startswith(home + os.sep), fillmask_ui.__file__
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
    print(*FEATURES, best.candidates[0].word, flush=True)

for home in sys.argv[1:]:
    sys.path.insert(0, home)
    check(home)
    for name in [name for name in sys.modules if name.partition(".")[0] == "fillmask_ui"]:
        del sys.modules[name]
    sys.path.remove(home)
    sys.path_importer_cache.clear()
"""


def without(names, target):
    """A copy of the package without the folders and the rows of some features."""
    leave_out = shutil.ignore_patterns("node_modules", "packed.tar.xz")
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


def test_the_program_goes_on_without_a_feature_and_without_any(tmp_path):
    """Each line that it prints tells which features were left."""
    removed = [*([name] for name in FEATURES), FEATURES]
    homes = []
    for names in removed:
        homes.append(tmp_path / "-".join(names))
        homes[-1].mkdir()
        without(names, homes[-1])
    printed = run(homes[0], "-c", PROGRAM, *map(str, homes)).splitlines()
    left = [[name for name in FEATURES if name not in names] for names in removed]
    assert [line.split() for line in printed] == [[*names, "paris"] for names in left]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FEATURES, "all"])
def test_the_types_are_right_without_a_feature(name, tmp_path):
    home = without(FEATURES if name == "all" else [name], tmp_path)
    assert "Success" in run(home, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"))
