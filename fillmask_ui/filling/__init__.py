"""What a model puts at the masks of one text; each module starts with its definitions."""

from fillmask_ui.filling.candidates import (
    MAX_TOP_K,
    fill,
    fill_at,
    score_candidate_at,
    score_candidates,
    unscorable,
)
from fillmask_ui.filling.logit_lens import layers
from fillmask_ui.filling.occlusion import occlude, occlusion_windows
from fillmask_ui.filling.word_surprisal import surprisal, surprisal_windows

__all__ = [
    "MAX_TOP_K",
    "fill",
    "fill_at",
    "layers",
    "occlude",
    "occlusion_windows",
    "score_candidate_at",
    "score_candidates",
    "surprisal",
    "surprisal_windows",
    "unscorable",
]
