"""Constants of a graph that may give NaN on other hardware, with where they are read.

Masks are often written as the lowest float32, -3.4e38, times (1 - mask). What computes in float16
makes that -inf, and 0 * -inf is NaN for every token that is not masked at all.
"""

import numpy as np
from onnx import ModelProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from fillmask_ui.onnx_tools.constant_folding import FLOATS, Constants, attributes_of

_LARGEST_HALF = 65504.0  # of float16; the sum of two such is infinite there
_HARMLESS = {"Clip", "Max", "Min"}  # they compare with a constant alone


def risky_constants(model: ModelProto) -> tuple[str, ...]:
    """A line for each with a number of 65,504 or more in size, but for weights outside the file."""
    constants, lines = Constants(model.graph), []
    values = dict(constants.stored)
    for node in model.graph.node:
        if node.op_type in ("Constant", "ConstantOfShape"):
            attributes = attributes_of(node)
            number = np.float32(attributes.get("value_floats", attributes.get("value_float", 0.0)))
            values[node.output[0]] = attributes.get("value") or numpy_helper.from_array(number)
    for name, tensor in values.items():
        readers = constants.readers.get(name, ())
        reader = next((node for node in readers if node.op_type not in _HARMLESS), None)
        if reader is None or tensor.data_type not in FLOATS or uses_external_data(tensor):
            continue
        numbers = numpy_helper.to_array(tensor).ravel()
        bad = numbers[~(np.abs(numbers) < _LARGEST_HALF)]  # NaN is not below it, either
        if bad.size:
            operator = f"{reader.op_type} {reader.name or reader.output[0]}"
            half = "" if np.isinf(bad[0]) else "past half precision, "
            reason = f"{half}NaN where 0 multiplies it or a softmax sees nothing else"
            lines.append(f"{name} = {bad[0]:.6g}, read by {operator}: {reason}")
    return tuple(lines)
