"""The one model call, asked for log-probabilities at one position of each text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import pad
from fillmask_ui.protocol import MaskedLM

# Rows of one model call: bounds memory, since M rows bring M x V logits.
ROWS_PER_CALL = 64


def log_probabilities_at(
    model: MaskedLM, texts: Sequence[Sequence[int]], positions: Sequence[int]
) -> np.ndarray:
    """Log-probabilities at one position of each of M texts, float64 [M, V].

    Equal texts go through the model once, so that the masks of one text cost one row.
    """
    if len(texts) > ROWS_PER_CALL:
        return np.concatenate(
            [
                log_probabilities_at(
                    model, texts[i : i + ROWS_PER_CALL], positions[i : i + ROWS_PER_CALL]
                )
                for i in range(0, len(texts), ROWS_PER_CALL)
            ]
        )
    distinct = {ids: row for row, ids in enumerate(dict.fromkeys(tuple(ids) for ids in texts))}
    batch = pad([np.array(ids) for ids in distinct], model.vocabulary.pad_id)  # [B, T]
    rows = np.array([distinct[tuple(ids)] for ids in texts], dtype=np.int64)  # [M]
    cols = np.array(positions, dtype=np.int64)  # [M]
    return scoring.log_probabilities(
        model.logits_at(batch.input_ids, batch.attention_mask, rows, cols)
    )
