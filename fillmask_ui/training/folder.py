"""A trained model as the folder that ships: half precision, ONNX, int8, nothing stored twice.

config.json  tokenizer.json  tokenizer_config.json
model.safetensors        float16
onnx/model.onnx          full precision; weights are those of model.safetensors
onnx/model_int8.onnx     dynamic int8; whatever stays in full precision is shared as well
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from fillmask_ui.errors import ModelError
from fillmask_ui.files import write_text
from fillmask_ui.models.loading_progress import quiet_transformers
from fillmask_ui.models.model_files import WEIGHTS
from fillmask_ui.onnx_tools.export import export_onnx
from fillmask_ui.onnx_tools.quantize import quantize_dynamic
from fillmask_ui.quantizing.hub_folder import FULL, INT8, write_graph


@dataclass(frozen=True)
class Int8Scheme:
    """How the int8 graph is made."""

    per_channel: bool = True  # one scale per output column, or one per matrix
    keep: tuple[str, ...] = ()  # layers that stay in full precision, by their names in the model


def write_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """`tokenizer.json` without blanks and a configuration of what matters.

    The class is the plain one: those of a family build the normalizer and the splitting into words
    anew from their own arguments, whatever `tokenizer.json` says.
    """
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content["truncation"] = content["padding"] = None
    compact = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    write_text(compact, folder / "tokenizer.json")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": list(tokenizer.model_input_names),
        "model_max_length": tokenizer.model_max_length,
    }
    for kind in ("unk", "cls", "sep", "pad", "mask", "bos", "eos"):
        if token := getattr(tokenizer, f"{kind}_token"):
            config[f"{kind}_token"] = str(token)
    text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(text + "\n", folder / "tokenizer_config.json")


def write_weights(model: PreTrainedModel, folder: Path) -> None:
    """`config.json` and float16 weights.

    The model's own weights are rounded in place and stay float32: what every runtime will compute
    with. Values that are not in the file, such as the frequencies of rotary positions, stay as
    they are.

    Raises:
        ModelError: if a weight does not fit into float16.
    """
    largest = max(float(p.detach().abs().max()) for p in model.parameters())
    if not largest < torch.finfo(torch.float16).max:
        raise ModelError(f"a weight of {largest:g} does not fit into float16")
    half = copy.deepcopy(model).half()
    with quiet_transformers():
        half.save_pretrained(folder)
    model.load_state_dict(half.state_dict())
    (folder / WEIGHTS).chmod(0o644)  # safetensors writes files that only the owner may read
    (folder / "generation_config.json").unlink(missing_ok=True)


def write_int8(graph: onnx.ModelProto, folder: Path, scheme: Int8Scheme) -> Path:
    """Quantize the float32 graph and save it as the folder's int8 model."""
    quantized = quantize_dynamic(graph, per_channel=scheme.per_channel, keep=scheme.keep)
    return write_graph(quantized, folder, INT8)


def write_folder(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path
) -> onnx.ModelProto:
    """Write everything but the card; the float32 graph is returned for further quantization."""
    (folder / FULL).parent.mkdir(parents=True, exist_ok=True)
    write_tokenizer(tokenizer, folder)
    write_weights(model, folder)
    graph = export_onnx(model)
    write_int8(graph, folder, Int8Scheme())
    write_graph(graph, folder, FULL)
    return graph
