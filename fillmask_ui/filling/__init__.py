"""What a model puts at the masks of one text; each module starts with its definitions."""

import warnings
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name != "surprise_windows":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("surprise_windows is now surprisal_windows", DeprecationWarning, stacklevel=2)
    return surprisal_windows
