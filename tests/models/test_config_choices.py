"""What config.json may not choose: code that transformers would fetch, the outputs of a call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from tiny_models import batch_of, texts_for

from fillmask_ui.errors import ModelError
from fillmask_ui.models import load_model

# As the `kernels` package, which is what downloads and imports a kernel; it notes what it is asked.
KERNELS = """
import os
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    def call(*arguments, **options):
        if name in ("get_kernel", "get_local_kernel", "load_kernel"):
            with open(os.environ["FETCHED"], "a") as file:
                print(name, *arguments, file=file)
            raise RuntimeError("fetched")
        return lambda own: own
    return call
"""
SCRIPT = """
import os, sys, transformers
from fillmask_ui.models import load_model
for folder in sys.argv[1:]:
    load_model(folder)
with open(os.environ["FETCHED"], "a") as file:
    print("by transformers alone", file=file)
try:
    transformers.AutoModelForMaskedLM.from_pretrained(sys.argv[1])
except ValueError as error:
    print(error)
"""
KERNEL = "kernels-community/flash-attn2"


@pytest.fixture
def changed(tiny_models, tmp_path):
    """`changed(family, **settings)`: a model on PyTorch whose config.json says more."""

    def make(family: str, **settings):
        folder = Path(mkdtemp(dir=tmp_path))
        for path in tiny_models.without_onnx(family).iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | settings))
        return folder

    return make


def test_a_kernel_that_a_config_names_is_not_fetched(changed, tmp_path):
    package = tmp_path / "packages"
    (package / "kernels").mkdir(parents=True)
    (package / "kernels" / "__init__.py").write_text(KERNELS)
    (package / "kernels-0.18.2.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.2\n"
    (package / "kernels-0.18.2.dist-info" / "METADATA").write_text(metadata)
    folders = [
        changed("bert", attn_implementation=KERNEL),
        changed("bert", _attn_implementation=KERNEL, _attn_implementation_internal=KERNEL),
        changed("bert", attn_implementation={"": KERNEL}, _experts_implementation="deepgemm"),
    ]
    log = tmp_path / "fetched.txt"
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, folders)],
        env={**os.environ, "PYTHONPATH": path, "FETCHED": str(log)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, *rest = log.read_text().splitlines()
    # transformers itself does fetch it, which shows that the stand-in is seen.
    assert first == "by transformers alone"
    assert any("flash-attn2" in line for line in rest)


def test_outputs_are_not_chosen_by_a_config(changed, loaded):
    folder = changed("bert", return_dict=False, output_hidden_states=True, output_attentions=True)
    model, usual = load_model(folder), loaded("bert", "torch")
    batch = batch_of(usual.vocabulary, texts_for("bert", "[MASK]"))
    np.testing.assert_array_equal(model.logits_at(*batch), usual.logits_at(*batch))
    np.testing.assert_array_equal(model.states_at(*batch), usual.states_at(*batch))
    assert model.signature.notes == usual.signature.notes


def test_stored_quantization_is_refused(changed):
    folder = changed("bert", quantization_config={"quant_method": "fp8"})
    with pytest.raises(ModelError, match="quantization_config"):
        load_model(folder)
