"""A checkpoint of PyTorch as an ONNX graph."""

from typing import TYPE_CHECKING

import torch

from fillmask_ui.models.files import ModelFiles
from fillmask_ui.models.torch import read_torch
from fillmask_ui.onnx_tools.export import export_onnx

if TYPE_CHECKING:
    from onnx import ModelProto


def export_files(files: ModelFiles) -> "ModelProto":
    """`onnx_tools.export.export_onnx` of the model in some files; errors as of `read_torch`."""
    model = read_torch(files, torch.float32, torch.device("cpu"))
    model.set_attn_implementation("eager")
    return export_onnx(model)
