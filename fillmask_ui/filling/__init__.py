"""What a model puts at the masks of one text; each module starts with its definitions."""

from fillmask_ui.filling.occlusion import occlude, occlusion_windows
from fillmask_ui.filling.pairs import pair_masks
from fillmask_ui.filling.predict import (
    MAX_TOP_K,
    fill,
    fill_at,
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
from fillmask_ui.filling.surprise import (
    sentence_surprise,
    summarize_surprise,
    surprise_windows,
)

__all__ = [
    "MAX_TOP_K",
    "check_length",
    "fill",
    "fill_at",
    "filled_text",
    "mask_positions",
    "mask_range",
    "normalise_masks",
    "occlude",
    "occlusion_windows",
    "pair_masks",
    "score_candidate_at",
    "score_candidates",
    "sentence_surprise",
    "split_words",
    "summarize_surprise",
    "surprise_windows",
    "unscorable",
    "write_token",
]
