"""Let a graph take weights out of the ONNX file that it was read from.

What is external data to ONNX is "these bytes of that file", and the weights inside an ONNX file are
plain bytes too. So a changed graph need not carry a copy of them, however large they are.
"""

import mmap
from pathlib import Path

from onnx import ModelProto, TensorProto
from onnx.external_data_helper import set_external_data

_LEAST_BYTES = 4096  # smaller constants are cheaper inside the graph
_COMPARED_FIRST = 64


def point_into(model: ModelProto, path: Path, location: str) -> None:
    """Replace large weights inside a graph by references into the file they were read from.

    Args:
        model: read from `path`; changed in place.
        path: an ONNX file.
        location: how the references name it.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = 0
        for tensor in model.graph.initializer:
            length = len(tensor.raw_data)
            if tensor.data_location == TensorProto.EXTERNAL or length < _LEAST_BYTES:
                continue
            # They stand in the file in the order of the graph, one behind the other.
            found = _find(content, tensor.raw_data, start)
            if found >= 0:
                set_external_data(tensor, location, offset=found, length=length)
                tensor.ClearField("raw_data")
                start = found + length


def _find(content: mmap.mmap, wanted: bytes, start: int) -> int:
    """First place of some bytes in a file, -1 if there is none."""
    beginning = wanted[:_COMPARED_FIRST]
    place = content.find(beginning, start)
    while place >= 0 and content[place : place + len(wanted)] != wanted:
        place = content.find(beginning, place + 1)
    return place
