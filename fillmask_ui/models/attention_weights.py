"""Attention weights of a model for one text, on either runtime.

Definition. In each head, row i of softmax(Q K^T / sqrt(d)) says how token i mixes the values of all
tokens. A row sums to 1.

What it is not: a measure of what a prediction rests on. Values differ in length, residual
connections go around attention, and later layers mix what earlier ones have mixed already.

Source:
    Attention: Vaswani et al. 2017, arXiv:1706.03762. Whether it explains: Jain and Wallace 2019,
    arXiv:1902.10186 (no); Wiegreffe and Pinter 2019, arXiv:1908.04626 (it depends).
"""

from typing import TYPE_CHECKING

import numpy as np

from fillmask_ui.batching import PaddedBatch
from fillmask_ui.errors import ModelError
from fillmask_ui.filling.prompt import check_text, encode_masked, encode_text, encode_unmasked
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import Encoding

if TYPE_CHECKING:
    from fillmask_ui.models.onnx_model import OnnxMaskedLM
    from fillmask_ui.models.torch_model import TorchMaskedLM

# Largest distance of the sum of a row from 1: that of half precision. Linear attention is far off.
_TOLERANCE = 0.02


def attention(model: ModelLike, text: str) -> np.ndarray:
    """How much each token of a text looks at each other one, float32 [L, A, T, T].

    L layers, A heads, T tokens with special ones; the third axis is the token that looks, the
    fourth the token looked at.

    Args:
        model: from `load_model`, on ONNX Runtime or PyTorch, or a reference such as `embedded`.
        text: with masks as in `fill`, or without.

    Errors are those of `fill`, or a `ModelError` if the model does not show its attention.

    >>> from fillmask_ui import load_model
    >>> weights = attention(load_model("embedded"), "The capital of France is [MASK].")
    >>> weights.shape, bool(np.allclose(weights.sum(axis=-1), 1, atol=1e-5))
    ((6, 12, 9, 9), True)
    """
    model = as_model(model)
    return weights_of(model, encode(model, text))


def encode(model: MaskedLM, text: str) -> Encoding:
    """A text with or without masks to token ids; errors as of `fill`."""
    check_text(text)
    if not text.strip() or model.vocabulary.mask_id in encode_text(model.vocabulary, text).ids:
        return encode_masked(model, text)
    return encode_unmasked(model, text)


def weights_of(model: MaskedLM, encoding: Encoding) -> np.ndarray:
    """`attention` of an encoded text."""
    ids = np.array(encoding.ids, dtype=np.int64)[None]  # [1, T]
    layers = _layers(model, ids)
    count = len(encoding)
    heads = layers[0].shape[0] if layers and layers[0].ndim == 3 else 0
    if not heads or {layer.shape for layer in layers} != {(heads, count, count)}:
        raise _refusal(model, "it has no weight for each pair of tokens in each layer")
    weights = np.stack(layers).astype(np.float32, copy=False)
    if not np.abs(weights.sum(axis=-1) - 1).max() <= _TOLERANCE:
        raise _refusal(model, "its weights do not sum to 1, as in linear attention")
    return weights


def _layers(model: MaskedLM, ids: np.ndarray) -> list[np.ndarray]:
    """Weights of each layer for a text [1, T]; a `ModelError` if there are none."""
    if model.signature.runtime == "torch":  # the import takes seconds
        from fillmask_ui.models.torch_model import TorchMaskedLM

        if isinstance(model, TorchMaskedLM):
            return _torch_layers(model, ids)
    if model.signature.runtime == "onnx":
        from fillmask_ui.models.onnx_model import OnnxMaskedLM

        if isinstance(model, OnnxMaskedLM):
            return _onnx_layers(model, ids)
    raise _refusal(model, "it runs on neither ONNX Runtime nor PyTorch")


def _torch_layers(model: "TorchMaskedLM", ids: np.ndarray) -> list[np.ndarray]:
    output = model.eager_output(PaddedBatch(ids, np.ones_like(ids)), output_attentions=True)
    layers = getattr(output, "attentions", None) or ()
    return [layer[0].float().cpu().numpy() for layer in layers if layer is not None]


def _onnx_layers(model: "OnnxMaskedLM", ids: np.ndarray) -> list[np.ndarray]:
    from fillmask_ui.onnx_tools.attention_graph import attention_values

    mask = np.ones_like(ids)
    rows, length = next(iter(model.arrays(ids, mask).values())).shape  # fixed in some graphs
    tokens = ids.shape[1]
    layers = []
    for values in model.inner_values(attention_values, ids, mask):
        if values.shape[-2:] != (length, length):
            raise _refusal(model, "it has no weight for each pair of tokens in each layer")
        heads = values.reshape(rows, -1, length, length)[0]  # texts and heads may be one axis
        layers.append(heads[:, :tokens, :tokens].astype(np.float32))
    return layers


def _refusal(model: MaskedLM, reason: str) -> ModelError:
    return ModelError(
        f"{model.signature.name} does not show its attention: {reason}; choose the embedded model, "
        "or another one"
    )
