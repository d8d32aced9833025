"""Logits of an ONNX file in WebAssembly, as in browsers: onnxruntime-web in a process of Node."""

import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.features.quantize.onnx_file import OnnxFile
from fillmask_ui.masking import HiddenTokens

_SCRIPT = Path(__file__).with_suffix(".mjs")
_NOT_FOUND = 3  # exit code of the script
_REMEDY = "npm install onnxruntime-web in a folder, and name that by --onnxruntime-web"


def web_logits(
    file: OnnxFile, level: str, hidden: Sequence[HiddenTokens], folder: Path | None
) -> tuple[list[np.ndarray], str]:
    """Logits at the hidden positions of each text, [M, V], and the library's version.

    `folder` is where npm installed onnxruntime-web; None leaves it to the variable NODE_PATH. An
    `OptionError` if Node or the library is not there, a `ModelError` if the file does not run.
    """
    node = shutil.which("node")
    if node is None:
        raise OptionError(f"node is not here: install Node.js, then {_REMEDY}")
    node_path = {} if folder is None else {"NODE_PATH": str(folder.absolute() / "node_modules")}
    with tempfile.TemporaryDirectory(prefix="fillmask-") as home:
        job, outputs = Path(home, "job.json"), Path(home, "outputs")
        values = {
            "model": str(file.graph_files.path.absolute()),
            "external": [
                [name, str(path.absolute())] for name, path in file.graph_files.external.items()
            ],
            "level": "disabled" if level == "none" else level,
            "logits": file.logits_name,
            "outputs": str(outputs),
            "calls": [_call(file, text) for text in hidden],
        }
        job.write_text(json.dumps(values), "utf-8")
        command, environment = [node, str(_SCRIPT), str(job)], {**os.environ, **node_path}
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        if process.returncode == _NOT_FOUND:
            raise OptionError(f"no onnxruntime-web in {folder or 'NODE_PATH'}: {_REMEDY}")
        if process.returncode:
            reason = (
                process.stderr.strip() or f"node ended with {process.returncode}"
            ).splitlines()[-1]
            raise ModelError(f"{file.signature.name} does not run there: {reason[:300]}")
        output = json.loads(process.stdout.splitlines()[-1])
        logits = np.fromfile(outputs, output["type"]).reshape(-1, output["width"])
    stops = np.cumsum([len(text.cols) for text in hidden])
    return np.split(logits, stops[:-1]), output["version"]


def _call(file: OnnxFile, text: HiddenTokens) -> dict[str, Any]:
    feeds = {
        name: (array.dtype.name, array.shape, b64encode(array.tobytes()).decode())
        for name, array in file.feeds(text.input_ids).items()
    }
    return {"feeds": feeds, "positions": text.cols.tolist()}
