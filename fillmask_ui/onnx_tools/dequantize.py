"""The numbers that a graph computes with, however they are stored.

Source:
    MatMulNBits and GatherBlockQuantized as in docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, helper

from fillmask_ui.onnx_tools.constants import Constants, attributes_of, run_nodes
from fillmask_ui.onnx_tools.parts import Part


def dequantized(model: ModelProto, part: Part) -> np.ndarray:
    """What the graph computes with, as float32 of `part.shape`; weights must be in the graph."""
    constants = Constants(model.graph)
    node = constants.makers[part.node]
    values = constants.value(node.input[part.place])
    if node.op_type == "MatMulNBits" and part.place == 1:
        return _from_blocks(constants, node)
    if node.op_type == "GatherBlockQuantized":
        return _all_rows(constants, node)
    if part.scales and node.op_type != "MatMulNBits":
        return _scaled(constants, part, values.astype(np.float32))
    if attributes_of(node).get("transB") and part.place == 1:
        values = values.T
    return values.astype(np.float32).reshape(part.shape)


def _scaled(constants: Constants, part: Part, values: np.ndarray) -> np.ndarray:
    """(values - zero point) * scale; both are single numbers or one for each column, or row."""
    for name in part.scales:
        kind = constants.kind(name)
        if kind is not None and not kind.is_float:
            values = values - constants.value(name).astype(np.float32)
    for name in part.scales:
        kind = constants.kind(name)
        if kind is not None and kind.is_float:
            scale = constants.value(name).astype(np.float32)
            by_row = part.kind == "embedding" and scale.shape == values.shape[:1]
            values = values * (scale[:, None] if by_row else scale)
    return values


def _from_blocks(constants: Constants, node: NodeProto) -> np.ndarray:
    """The float32 [K, N] of a MatMulNBits, which stores [N, blocks, bytes of a block]."""
    own = attributes_of(node)
    rows, columns, bits, size = own["K"], own["N"], own.get("bits", 4), own["block_size"]
    blocks = (rows + size - 1) // size
    packed = constants.value(node.input[1]).reshape(columns, -1)
    values = _unpacked(packed, bits).reshape(columns, blocks, size)
    scales = constants.value(node.input[2]).astype(np.float32).reshape(columns, blocks, 1)
    zero_points: np.ndarray | float = 2.0 ** (bits - 1)
    if len(node.input) > 3 and node.input[3]:
        stored = constants.value(node.input[3])
        if stored.dtype == np.uint8:
            stored = _unpacked(stored.reshape(columns, -1), bits)[:, :blocks]
        zero_points = stored.astype(np.float32).reshape(columns, blocks, 1)
    whole = (values.astype(np.float32) - zero_points) * scales
    return np.ascontiguousarray(whole.reshape(columns, -1)[:, :rows].T)


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of a few bits out of uint8 [N, bytes], the lowest bits of a byte first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[:, :, None] >> shifts) & (2**bits - 1)).reshape(len(packed), -1)


def _all_rows(constants: Constants, node: NodeProto) -> np.ndarray:
    """What a GatherBlockQuantized gives for every row."""
    rows = constants.known(node.input[0]).dims[0]
    stored = [constants.stored[name] for name in node.input if name in constants.stored]
    copy = type(node)()
    copy.CopyFrom(node)
    copy.input[1], copy.output[0] = "every_row", "rows"
    row = helper.make_tensor_value_info("every_row", 7, [None])
    output = helper.make_tensor_value_info("rows", constants.known(node.input[2]).type, None)
    graph = helper.make_graph([copy], "rows", [row], [output], stored)
    return run_nodes(graph, {"every_row": np.arange(rows)})[0].astype(np.float32)
