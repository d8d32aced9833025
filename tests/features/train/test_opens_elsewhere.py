"""ONNX files that are shipped or written open in other tools: weights lie inside or beside them."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from fillmask_ui.features.quantize.graphs import open_pair
from fillmask_ui.features.quantize.make_variants import export, quantize
from fillmask_ui.features.site.scripts import HERE
from fillmask_ui.files import asset
from fillmask_ui.models import ModelChoice
from fillmask_ui.onnx_tools.schemes import SCHEMES

OPEN_CJS = Path(__file__).parent / "open.cjs"
NODE_PATH = str(HERE / "node_modules")  # npm ci --ignore-scripts --prefix fillmask_ui/features/site
OPEN = """
import importlib.util, json, sys
import numpy as np, onnx, onnxruntime
assert not importlib.util.find_spec("fillmask_ui") and not importlib.util.find_spec("safetensors")
options = onnxruntime.SessionOptions()  # sums of bytes in 32 bits, on CPUs without VNNI too
options.add_session_config_entry("session.x64quantprecision", "1")
for path in sys.argv[1:]:
    onnx.load(path)
    onnx.checker.check_model(path)
    session = onnxruntime.InferenceSession(path, options)
    feeds = {entry.name: np.ones((1, 3), np.int64) for entry in session.get_inputs()}
    print(json.dumps(session.run(["logits"], feeds)[0][0, 0].tolist()))
"""


@pytest.fixture
def written(once, packaged, tiny_models):
    """Every ONNX file that ships or is written: by each scheme, by `export`, by `diagnose`."""
    bert, folder = tiny_models.without_onnx("bert"), once.root / "everything"

    def make():
        list(export(ModelChoice(str(bert)), folder / "exported"))
        full = ModelChoice(str(folder / "exported"))
        list(quantize(full, folder / "variants", ["all"]))
        small = ModelChoice(str(folder / "variants"), onnx_file="model_int8")
        with_part = folder / "mended" / "onnx" / "model.onnx"
        open_pair(small, full).write_restored(["bert.encoder.layer.0.output.dense"], with_part)

    once.do("everything", make)
    homes = (asset("model"), packaged, *folder.iterdir())
    paths = [path for home in homes for path in sorted(home.rglob("*.onnx"))]
    assert len(paths) == 2 + 2 + len(SCHEMES) + 1 + 1
    return paths


def answers(*command, **environment):
    """The numbers that a process prints, a line for each file."""
    environment = {"PATH": os.environ["PATH"], **environment}
    done = subprocess.run(
        command, cwd=OPEN_CJS.parent, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [np.array(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture
def by_onnxruntime(written, tmp_path):
    """Their logits by Python with nothing but onnxruntime, onnx and what these two depend on."""
    missing, seen = ["onnxruntime", "onnx"], set()
    while missing:
        name = missing.pop()
        if name not in seen:
            seen.add(name)
            package = distribution(name)
            for top in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
                (tmp_path / top).symlink_to(package.locate_file(top))
            needed = [
                requirement
                for requirement in package.requires or ()
                if "extra ==" not in requirement
            ]
            missing += [re.match(r"[\w.-]+", requirement)[0] for requirement in needed]
    return answers(sys.executable, "-S", "-c", OPEN, *written, PYTHONPATH=str(tmp_path))


def test_plain_onnxruntime_and_onnx_open_every_file(written, by_onnxruntime):
    assert len(by_onnxruntime) == len(written)
    assert all(np.isfinite(logits).all() and np.ptp(logits) > 0 for logits in by_onnxruntime)


def test_onnxruntime_web_opens_every_file(written, by_onnxruntime):
    by_node = answers("node", OPEN_CJS, *written, NODE_PATH=NODE_PATH)
    for path, here, there in zip(written, by_onnxruntime, by_node, strict=True):
        apart = np.abs(here - there).max() / np.abs(here).max()
        # Products with 4 bits round their activations as it suits the processor.
        assert apart < (0.1 if path.name == "model_q4.onnx" else 1e-4), path
