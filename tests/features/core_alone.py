"""Runs the tests of the core in a copy of this project that has no feature.

PYTHONPATH=tests python tests/features/core_alone.py [OPTION OF PYTEST ...]
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from features.test_removal import ROOT, without

from fillmask_ui.extensions import FEATURES


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = without(FEATURES, Path(folder))
        # Of the whole program: what is recorded, where features are asked and listed, too.
        recorded = ("test_outputs.py", "test_served.py", "served*.py")
        left_out = shutil.ignore_patterns("__pycache__", "features", *recorded)
        shutil.copytree(ROOT / "tests", home / "tests", ignore=left_out)
        for name in ("app.py", "benchmarks", "docs"):
            (home / name).symlink_to(ROOT / name)
        command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
        environment = os.environ | {"PYTHONPATH": str(home)}
        return subprocess.run(command, cwd=home, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
