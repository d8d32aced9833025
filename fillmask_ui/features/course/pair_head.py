"""BERT's head for next sentences, beside the masked-LM head of a model.

The core knows nothing of it: it lies in the other outputs of an ONNX graph, or in weights that
transformers reads as another class. Either is loaded when a lesson first asks for it.

Axes: T tokens of the pair, M hidden positions, V vocabulary.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import ModelError
from fillmask_ui.models.model_files import ModelFiles
from fillmask_ui.models.weights import tensor_names

# What exporters call its logits.
_GRAPH_OUTPUT = re.compile(r"seq_relationship|next_sentence|nsp_logits", re.IGNORECASE)
_WEIGHTS = "seq_relationship."  # in their names


@dataclass(frozen=True, eq=False)
class PairLogits:
    """Logits of both heads of BERT's pre-training for a pair of sentences."""

    tokens: np.ndarray  # float32 [M, V], at the hidden positions
    order: np.ndarray  # float32 [2]: the second sentence follows the first, or is any other


@runtime_checkable
class _OnGraph(Protocol):
    """A model over an ONNX graph; `models.onnx_model` is one."""

    logits_name: str
    output_names: tuple[str, ...]

    def whole_outputs(self, *batch: np.ndarray) -> Mapping[str, np.ndarray]: ...


@runtime_checkable
class _OnWeights(Protocol):
    """A model over weights of PyTorch; `models.torch_model` is one."""

    files: ModelFiles

    def output_as(self, loader: str, batch: PaddedBatch, **inputs: np.ndarray) -> Any: ...


def predicts_next(model: object) -> bool:
    """Whether a model has a head for next sentences."""
    if isinstance(model, _OnGraph):
        return _order_name(model) is not None
    if isinstance(model, _OnWeights):
        return any(_WEIGHTS in name for name in tensor_names(model.files.weights))
    return False


def pair_logits(
    model: object, input_ids: np.ndarray, segments: np.ndarray, cols: np.ndarray
) -> PairLogits:
    """Logits of both heads for one pair, [CLS] A [SEP] B [SEP].

    Args:
        model: one that `predicts_next`; else it is a `ModelError`.
        input_ids: int64 [T].
        segments: int64 [T], 0 for A and its [SEP], 1 for B and its [SEP].
        cols: int64 [M], the hidden positions.
    """
    batch = PaddedBatch(input_ids[None], np.ones_like(input_ids)[None])
    if isinstance(model, _OnGraph) and (order_name := _order_name(model)):
        outputs = model.whole_outputs(batch.input_ids, batch.attention_mask, segments[None])
        tokens, order = outputs[model.logits_name], outputs[order_name].reshape(-1, 2)
    elif isinstance(model, _OnWeights) and predicts_next(model):
        output = model.output_as("AutoModelForPreTraining", batch, token_type_ids=segments[None])
        tokens = output.prediction_logits.float().cpu().numpy()
        order = output.seq_relationship_logits.float().cpu().numpy()
    else:
        raise ModelError("the model has no head for next sentence prediction: choose another model")
    # tokens are [1, T, V], the order is [1, 2]
    return PairLogits(
        tokens[0, cols].astype(np.float32, copy=False), order[0].astype(np.float32, copy=False)
    )


def _order_name(model: _OnGraph) -> str | None:
    return next(filter(_GRAPH_OUTPUT.search, model.output_names), None)
