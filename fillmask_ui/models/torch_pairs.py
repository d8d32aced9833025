"""Both heads of BERT's pre-training, from a checkpoint that holds them, on PyTorch.

Axes: T tokens of one pair, M asked positions, V vocabulary.
"""

import numpy as np
import torch

from fillmask_ui.errors import ModelError, first_line
from fillmask_ui.models.files import ModelFiles
from fillmask_ui.models.torch_read import read_torch
from fillmask_ui.models.weights import tensor_names
from fillmask_ui.protocol import PairLogits

# Part of the names of its weights in BERT and its relatives.
_HEAD = "seq_relationship."


def has_next_head(files: ModelFiles) -> bool:
    """Whether weights of next sentence prediction are among those on disk."""
    return any(_HEAD in name for name in tensor_names(files.weights))


class PretrainingModel:
    """A transformers model for pre-training: masked tokens and the order of two sentences."""

    def __init__(self, files: ModelFiles, dtype: torch.dtype, device: torch.device) -> None:
        self._name, self._device = files.name, device
        what = "a model for next sentence prediction"
        self._model = read_torch(files, "AutoModelForPreTraining", what, dtype, device)

    def logits(self, input_ids: np.ndarray, segments: np.ndarray, cols: np.ndarray) -> PairLogits:
        """As `pair_logits` of `PairPretraining`."""
        ids, types = (
            torch.from_numpy(np.asarray(own, dtype=np.int64))[None].to(self._device)
            for own in (input_ids, segments)
        )
        try:
            with torch.inference_mode():
                output = self._model(
                    input_ids=ids, token_type_ids=types, attention_mask=torch.ones_like(ids)
                )
        except (RuntimeError, IndexError) as error:
            raise ModelError(
                f"{self._name} failed on a pair of {len(input_ids)} tokens: {first_line(error)}"
            ) from error
        tokens = output.prediction_logits[0, torch.from_numpy(np.asarray(cols, dtype=np.int64))]
        order = output.seq_relationship_logits[0]
        return PairLogits(tokens.float().cpu().numpy(), order.float().cpu().numpy())
