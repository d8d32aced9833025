"""Faults planted into a quantized graph, to be found."""

import numpy as np
from onnx import ModelProto, numpy_helper

from fillmask_ui.onnx_tools.graph_parts import Part, find_parts

FAULTS = ("scale", "2 bits", "sign")


def plant(model: ModelProto, fault: str, layer: int, seed: int) -> str:
    """Break one part of a layer of an int8 graph in place; returns the value that it yields.

    `scale` multiplies one weight scale by ten, `2 bits` leaves four levels of a matrix, `sign`
    turns a bias around.
    """
    rng = np.random.default_rng(seed)
    kind = "bias" if fault == "sign" else "product"
    parts = [part for part in find_parts(model) if part.layer == layer and part.kind == kind]
    part = parts[rng.integers(len(parts))]
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    if fault == "scale":
        name = next(n for n in part.scales if stored[n].data_type == 1)
        values = numpy_helper.to_array(stored[name]).copy()
        values[rng.integers(len(values)) if values.ndim else ()] *= 10
    elif fault == "2 bits":
        name = part.constant
        levels = np.rint(numpy_helper.to_array(stored[name]).astype(float) / 64)
        values = (np.clip(levels, -2, 1) * 64).astype(np.int8)
    else:
        name = part.constant
        values = -numpy_helper.to_array(stored[name])
    stored[name].CopyFrom(numpy_helper.from_array(values, name))
    return part.output


def part_at(parts: tuple[Part, ...], output: str, kind: str) -> str:
    """The name of the part that yields a value."""
    return next(
        p.name for p in parts if p.output == output and (p.kind == "bias") == (kind == "sign")
    )
