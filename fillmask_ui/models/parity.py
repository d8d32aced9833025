"""Whether two runtimes of one model agree."""

import numpy as np

from fillmask_ui.batching import pad
from fillmask_ui.errors import ModelError
from fillmask_ui.protocol import MaskedLM

PARITY = 1e-3  # largest allowed difference of a logit between ONNX and PyTorch
_MAX_TOKENS = 256


def check_parity(one: MaskedLM, other: MaskedLM) -> float:
    """Largest |difference| of a logit at any token of three texts; a ModelError above 1e-3."""
    vocabulary, longest = one.vocabulary, min(one.max_tokens, _MAX_TOKENS)
    mask = vocabulary.mask_token
    texts = (
        f"The {mask} is on the table.",
        mask,
        f"In 1969 the first people walked on the {mask}, and the whole world {mask}. " * 8,
    )
    encoded = [np.array(vocabulary.encode(text).ids) for text in texts]
    batch = pad([ids for ids in encoded if len(ids) <= longest], vocabulary.pad_id)
    asked = (batch.input_ids, batch.attention_mask, *batch.attention_mask.nonzero())
    parity = float(np.abs(one.logits_at(*asked) - other.logits_at(*asked)).max())  # of [M, V]
    if not parity <= PARITY:
        raise ModelError(
            f"the exported graph differs from PyTorch by {parity:g} in a logit; at most {PARITY:g} "
            "is allowed: its logits are too large for float32, or the export is wrong"
        )
    return parity
