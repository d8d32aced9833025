"""Two distributions side by side; each module starts with its definitions."""

from fillmask_ui.comparing.contrast import Comparison, Contrast, ContrastedWord, compare, pair_masks
from fillmask_ui.comparing.divergence_search import divergent_sentences
from fillmask_ui.comparing.word_contrast import compare_sentence

__all__ = [
    "Comparison",
    "Contrast",
    "ContrastedWord",
    "compare",
    "compare_sentence",
    "divergent_sentences",
    "pair_masks",
]
