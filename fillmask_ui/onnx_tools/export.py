"""A Hugging Face masked LM of torch to an ONNX graph.

The contract of every exported graph: int64 inputs `input_ids`, `attention_mask` and, where the
model has segment embeddings, `token_type_ids`, all [batch, sequence] with free sizes; float32
output `logits` [batch, sequence, V].
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from fillmask_ui.errors import ModelError

if TYPE_CHECKING:
    import onnx

OPSET = 18  # the oldest that torch.onnx writes without converting down


class _LogitsOnly(torch.nn.Module):
    """The model as a function of positional arguments, logits alone.

    `broadcast_mask`: hand the model an additive [B, 1, 1, T] mask, which keeps its own mask
    building, a dozen shape nodes in any export, out of the graph.
    """

    def __init__(self, model: Any, names: list[str], broadcast_mask: bool) -> None:
        super().__init__()
        self.model, self.names, self.broadcast_mask = model, names, broadcast_mask

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        arguments = dict(zip(self.names, inputs, strict=True))
        if self.broadcast_mask:
            visible = arguments["attention_mask"][:, None, None, :].to(torch.float32)
            arguments["attention_mask"] = (1.0 - visible) * -1e9  # [B, 1, 1, T]
        return self.model(**arguments).logits


def input_names(model: Any) -> list[str]:
    """Which inputs the exported graph has."""
    names = ["input_ids", "attention_mask"]
    takes_types = "token_type_ids" in inspect.signature(model.forward).parameters
    if takes_types and getattr(model.config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    return names


def probe_inputs(model: Any, names: list[str]) -> list[torch.Tensor]:
    """Two rows of tokens, the second padded, as int64 [2, T] tensors; T exceeds any window."""
    length = 9 + 2 * (getattr(model.config, "sliding_window", None) or 0)
    generator = torch.Generator().manual_seed(0)
    size = model.config.vocab_size
    ids = torch.randint(min(10, size - 1), size, (2, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, length - 3 :] = 0
    pad = getattr(model.config, "pad_token_id", None)
    if pad is not None:
        ids[1, length - 3 :] = pad
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    return [values[name] for name in names]


@torch.no_grad()
def _takes_broadcast_mask(model: Any, names: list[str]) -> bool:
    inputs = probe_inputs(model, names)
    seen = inputs[1].bool()
    expected = _LogitsOnly(model, names, False)(*inputs)[seen]
    try:
        got = _LogitsOnly(model, names, True)(*inputs)[seen]
    except (TypeError, ValueError, RuntimeError, IndexError):
        return False
    return bool((got - expected).abs().max() < 1e-4 * expected.std())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    # torch.onnx reports its stages on standard output, warns of its own internals and logs that
    # torchvision, which nothing here needs, is missing.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)


def export_onnx(model: Any) -> onnx.ModelProto:
    """Trace a model in evaluation mode; weights are inside the returned graph.

    Args:
        model: a float32 masked LM on the CPU, loaded with `attn_implementation="eager"`.

    Raises:
        ModelError: if torch cannot trace it or the exporter is not installed.
    """
    model.eval()
    names = input_names(model)
    wrapped = _LogitsOnly(model, names, _takes_broadcast_mask(model, names))
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence")
    try:
        with _quiet():
            program = torch.onnx.export(
                wrapped,
                tuple(probe_inputs(model, names)),
                dynamo=True,
                input_names=names,
                output_names=["logits"],
                dynamic_shapes=(({0: batch, 1: sequence},) * len(names),),
                opset_version=OPSET,
            )
    except ModuleNotFoundError as error:
        raise ModelError(
            f"exporting needs {error.name}: pip install 'fillmask-ui[torch]'"
        ) from error
    except torch.onnx.OnnxExporterError as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(f"torch cannot export this {model.config.model_type}: {reason}") from error
    proto = program.model_proto
    _tidy(proto)
    return proto


def _tidy(proto: onnx.ModelProto) -> None:
    """Drop what only says where in the Python code a node came from."""
    proto.producer_name = "fillmask-ui"
    proto.doc_string = ""
    del proto.metadata_props[:]
    graph = proto.graph
    graph.doc_string = ""
    del graph.metadata_props[:]
    del graph.value_info[:]
    renamed = {}
    for tensor in graph.initializer:
        renamed[tensor.name] = tensor.name.removeprefix("model.")
        tensor.name = renamed[tensor.name]
    for node in graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
    for value in [*graph.input, *graph.output]:
        del value.metadata_props[:]
