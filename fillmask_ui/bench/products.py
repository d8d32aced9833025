"""How fast this machine multiplies float32 matrices: the bound of every model on it.

Two libraries, as either may be the faster: numpy's, and ONNX Runtime's on a graph of a single
MatMul with a constant matrix, as the layers of a model are. Both use all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fillmask_ui.bench.timing import Timing, timed

# Rows, inner size and columns, as of the feed-forward layers of small and base models.
SHAPES = ((512, 384, 1536), (512, 768, 3072), (1024, 1024, 4096))
LIBRARIES = ("numpy", "onnxruntime")


class MatrixProducts:
    """A contender that only multiplies."""

    def __init__(self) -> None:
        self._products: dict[tuple[str, tuple[int, ...]], Callable[[], object]] = {}

    def product(self, library: str, shape: Sequence[int], runs: int) -> Timing:
        """A product [rows, inner] x [inner, columns]."""
        key = (library, tuple(shape))
        if key not in self._products:
            self._products[key] = _product(*key)
        rows, inner, columns = shape
        return Timing(timed(self._products[key], runs)[0], 2 * rows * inner * columns)


def _product(library: str, shape: tuple[int, ...]) -> Callable[[], object]:
    rows, inner, columns = shape
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
