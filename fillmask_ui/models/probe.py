"""A small batch that every model must get right before it is handed out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fillmask_ui.protocol import Vocabulary


@dataclass(frozen=True)
class Probe:
    """Two texts of different lengths, with questions.

    Attributes:
        input_ids: int64 [2, T].
        attention_mask: int64 [2, T]; the second text is padded.
        rows: int64 [M].
        cols: int64 [M].
    """

    input_ids: np.ndarray
    attention_mask: np.ndarray
    rows: np.ndarray
    cols: np.ndarray


def probe_texts(vocabulary: Vocabulary) -> Probe:
    """Masks and plain tokens between the tokenizer's own special tokens."""
    mask = vocabulary.mask_token
    encodings = [vocabulary.encode(text) for text in (f"{mask} a {mask} the {mask}", mask)]
    length = max(len(encoding) for encoding in encodings)
    input_ids = np.full((2, length), vocabulary.pad_id, dtype=np.int64)
    attention_mask = np.zeros((2, length), dtype=np.int64)
    for row, encoding in enumerate(encodings):
        input_ids[row, : len(encoding)] = encoding.ids
        attention_mask[row, : len(encoding)] = 1
    rows, cols = np.nonzero(attention_mask)
    return Probe(input_ids, attention_mask, rows.astype(np.int64), cols.astype(np.int64))
