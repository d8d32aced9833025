"""Masked cross-entropy: BERT's training objective, measured.

Definition: choose each token with probability 15%, show 80% of these as the mask token, 10% as a
random token and 10% unchanged, and average -ln P(true token) over the chosen ones.

Rivals: perplexity is e^ of it; pseudo-perplexity hides every token alone and so depends on no
draw, at some twenty times the cost.

Source:
    BERT, arXiv:1810.04805, section 3.1.
"""

from dataclasses import dataclass, field

from numpy.random import Generator

from fillmask_ui.evaluation.metrics.metric import Metric
from fillmask_ui.masking import UNIGRAM, HiddenTokens, MaskRecipe, hide_random
from fillmask_ui.options import option
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class CrossEntropy(Metric):
    """Mean NLL of tokens chosen at random."""

    name = "cross-entropy"
    label = "Cross-entropy"
    note = "Each token is hidden with probability 15%, as in BERT's training."
    hides = "a share of the tokens at random"
    figure_label = "Cross-entropy"

    recipe: MaskRecipe = field(default_factory=MaskRecipe)  # what is chosen and how it is shown
    mask_stream: str = option(
        "text",
        "text: masks depend on the text's position alone; collator: one random stream through all "
        "texts, as in the published evaluator.",
        choices=("text", "collator"),
    )

    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        return hide_random(encoding, vocabulary, self.recipe, rng)

    @property
    def reads_words(self) -> bool:
        return self.recipe.whole_word

    @property
    def signature(self) -> tuple[str, ...]:
        recipe = self.recipe
        unigram = ("random:unigram",) if recipe.random_from == UNIGRAM else ()
        return (
            f"p:{recipe.probability:g}",
            f"shares:{recipe.mask_share:g}/{recipe.random_share:g}/{recipe.unchanged_share:g}",
            *unigram,
            "unit:" + ("word" if recipe.whole_word else "token"),
            f"stream:{self.mask_stream}",
        )

    @property
    def compares_tokenizers(self) -> bool:
        return self.recipe.whole_word and self.mask_stream == "text"
