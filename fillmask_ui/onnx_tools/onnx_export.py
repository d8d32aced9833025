"""A Hugging Face masked LM of torch to an ONNX graph.

Exported graphs have int64 inputs `input_ids`, `attention_mask` and, with segment embeddings,
`token_type_ids`, all [batch, sequence] with free sizes, and a float32 output `logits` [batch,
sequence, V]. Constants are folded and each is stored once, see `float32_graph.make_whole`.
"""

import inspect
from typing import Any

import onnx
import torch
from transformers import PreTrainedModel

from fillmask_ui.errors import ModelError, first_line, how_to_install
from fillmask_ui.onnx_tools.constant_folding import rename
from fillmask_ui.onnx_tools.dynamic_int8 import quiet_tools
from fillmask_ui.onnx_tools.float32_graph import make_whole

OPSET = 18  # the oldest that torch.onnx writes without converting down


class _LogitsOnly(torch.nn.Module):
    """The model as a function of positional arguments, logits alone.

    With `broadcast_mask`, an additive [B, 1, 1, T] mask, it builds none itself in a dozen nodes.
    """

    def __init__(self, model: PreTrainedModel, names: list[str], broadcast_mask: bool) -> None:
        super().__init__()
        self.model, self.names, self.broadcast_mask = model, names, broadcast_mask

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        arguments = dict(zip(self.names, inputs, strict=True))
        if self.broadcast_mask:
            visible = arguments["attention_mask"][:, None, None, :].to(torch.float32)
            arguments["attention_mask"] = (1.0 - visible) * -1e4  # [B, 1, 1, T]; fits float16
        return self.model(**arguments).logits


def probe_inputs(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The inputs of the graph: two rows, the second padded, int64 [2, T]; T exceeds any window."""
    config, size = model.config, model.config.vocab_size
    length = 9 + 2 * (getattr(config, "sliding_window", None) or 0)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(min(10, size - 1), size, (2, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, -3:] = 0
    if getattr(config, "pad_token_id", None) is not None:
        ids[1, -3:] = config.pad_token_id
    inputs = {"input_ids": ids, "attention_mask": mask}
    takes_types = "token_type_ids" in inspect.signature(model.forward).parameters
    if takes_types and getattr(config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.zeros_like(ids)
    return inputs


@torch.no_grad()
def _takes_broadcast_mask(model: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> bool:
    visible = inputs["attention_mask"].bool()
    expected = model(**inputs).logits[visible]
    try:
        logits = _LogitsOnly(model, list(inputs), True)(*inputs.values())[visible]
    except (TypeError, ValueError, RuntimeError, IndexError):
        return False
    return bool((logits - expected).abs().max() < 1e-4 * expected.std())


def export_onnx(model: PreTrainedModel) -> onnx.ModelProto:
    """Trace a model, float32 on the CPU with eager attention, as a whole graph.

    A ModelError if torch cannot trace it or the exporter is not installed.
    """
    model.eval()
    inputs = probe_inputs(model)
    names = list(inputs)
    wrapped = _LogitsOnly(model, names, _takes_broadcast_mask(model, inputs))
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence")
    try:
        with quiet_tools():
            program: Any = torch.onnx.export(
                wrapped,
                tuple(inputs.values()),
                dynamo=True,
                input_names=names,
                output_names=["logits"],
                dynamic_shapes=(({0: batch, 1: sequence},) * len(names),),
                opset_version=OPSET,
                verbose=False,
            )
    except ModuleNotFoundError as error:
        raise ModelError(
            f"exporting needs {error.name}, which is not installed: {how_to_install('torch')}"
        ) from error
    except torch.onnx.OnnxExporterError as error:
        raise ModelError(
            f"torch cannot export this {model.config.model_type}: {first_line(error)}"
        ) from error
    proto: onnx.ModelProto = program.model_proto
    # Drop what only says where in the Python code a node came from.
    graph = proto.graph
    proto.producer_name = "fillmask-ui"
    del graph.value_info[:]
    for part in (proto, graph, *graph.node):
        part.doc_string = ""
    for part in (proto, graph, *graph.node, *graph.input, *graph.output):
        del part.metadata_props[:]
    renamed = {tensor.name: tensor.name.removeprefix("model.") for tensor in graph.initializer}
    # Of two names of one weight the exporter takes the last, the model's own the first.
    first_names: dict[int, str] = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        first_name = first_names.setdefault(id(weight), name)
        if f"model.{name}" in renamed:
            renamed[f"model.{name}"] = first_name
    for tensor in graph.initializer:
        tensor.name = renamed[tensor.name]
    rename(graph, renamed)
    make_whole(proto, model.config.model_type)
    return proto
