"""What a model puts at the masks of one text; `predict.py` starts with the definitions."""

from fillmask_ui.filling.predict import (
    MAX_TOP_K,
    fill,
    score_candidate_at,
    score_candidates,
    unscorable,
)
from fillmask_ui.filling.prompt import (
    check_length,
    filled_text,
    mask_positions,
    mask_range,
    normalise_masks,
    split_words,
    write_token,
)

__all__ = [
    "MAX_TOP_K",
    "check_length",
    "fill",
    "filled_text",
    "mask_positions",
    "mask_range",
    "normalise_masks",
    "score_candidate_at",
    "score_candidates",
    "split_words",
    "unscorable",
    "write_token",
]
