"""Two models on one text; each module starts with its definitions."""

from fillmask_ui.comparing.masks import compare
from fillmask_ui.comparing.parting import Looked, Parting, Search, where_they_part
from fillmask_ui.comparing.records import (
    ComparedCandidate,
    ComparedJoint,
    Comparison,
    MaskComparison,
)
from fillmask_ui.comparing.tokenizers import same_tokenizer
from fillmask_ui.comparing.words import compare_sentence

__all__ = [
    "ComparedCandidate",
    "ComparedJoint",
    "Comparison",
    "Looked",
    "MaskComparison",
    "Parting",
    "Search",
    "compare",
    "compare_sentence",
    "same_tokenizer",
    "where_they_part",
]
