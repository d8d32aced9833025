"""The machine, and how fast it multiplies matrices: the rate of float32 products bounds a model.

Numpy or ONNX Runtime may be the faster, the latter on a MatMul with a constant matrix, as in a
model's layers. Both use all cores.
"""

import platform
import re
from collections.abc import Callable
from functools import cache
from importlib import metadata
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_ui import __version__
from fillmask_ui.bench.timing import Timing, timed
from fillmask_ui.models.model_choice import cores

# Rows, inner size and columns, as of the feed-forward layers of small and base models.
SHAPES = ((512, 384, 1536), (512, 768, 3072), (1024, 1024, 4096))
LIBRARIES = ("numpy", "onnxruntime")
_CALLS = 5
_CPUINFO = Path("/proc/cpuinfo")
_PACKAGES = ("onnxruntime", "numpy", "torch", "transformers")


def machine() -> dict[str, Any]:
    """CPU, usable cores, system, Python and the versions of libraries, without the host's name."""
    text = _CPUINFO.read_text("utf-8", "replace") if _CPUINFO.is_file() else ""
    line = re.search(r"^model name\s*:\s*(.+)", text, re.MULTILINE)
    installed = {own.name: own.version for own in metadata.distributions()}
    versions = {package: installed[package] for package in _PACKAGES if package in installed}
    return {
        "cpu": line[1].strip() if line else platform.processor() or platform.machine() or "unknown",
        "cores": cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"fillmask-ui": __version__, **versions},
    }


class MatrixProducts:
    """A contender that only multiplies."""

    def product(self, library: str, shape: tuple[int, int, int]) -> Timing:
        """A product [rows, inner] x [inner, columns], several times."""
        seconds, _ = timed(_product(library, *shape), _CALLS)
        return Timing(seconds, 2 * prod(shape))


@cache
def _product(library: str, rows: int, inner: int, columns: int) -> Callable[[], object]:
    random = np.random.default_rng(0)
    left = random.standard_normal((rows, inner), np.float32)
    right = random.standard_normal((inner, columns), np.float32)
    if library == "numpy":
        return lambda: left @ right
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    own = helper.make_tensor_value_info("left", TensorProto.FLOAT, [rows, inner])
    out = helper.make_tensor_value_info("product", TensorProto.FLOAT, [rows, columns])
    node = helper.make_node("MatMul", ["left", "right"], ["product"])
    graph = helper.make_graph([node], "g", [own], [out], [numpy_helper.from_array(right, "right")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"left": left})
