"""Writes what the commands in the documents print: `python docs/outputs.py [PAGE...]`.

Blocks of `console` hold the commands, behind a `$`. Those of a page run in one new folder, from top
to bottom. Their standard output is written below them, without signatures.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PROGRAM = 'fillmask-ui() { "$PYTHON" -m fillmask_ui "$@"; }\n'


def with_outputs(page: str, folder: str) -> str:
    """The text of a page with new outputs."""
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "FILLMASK_UI_RUNS": f"{folder}/runs",
        "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }

    def printed(block: re.Match[str]) -> str:
        lines = ""
        for line in re.findall(r"^\$ .*\n", block[1], re.MULTILINE):
            script = ["bash", "-c", PROGRAM + line.removeprefix("$ ")]
            done = subprocess.run(
                script, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False
            )
            output = re.sub(r"(?m)^(model|metric):.*\n", "", done.stdout.decode()).strip("\n")
            lines += line + (f"{output}\n" if output else "")
        return f"```console\n{lines}```\n"

    return re.sub(r"(?ms)^```console\n(.*?)^```\n", printed, page)


if __name__ == "__main__":
    every = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else every:
        with TemporaryDirectory() as folder:
            path.write_text(with_outputs(path.read_text("utf-8"), folder), "utf-8")
