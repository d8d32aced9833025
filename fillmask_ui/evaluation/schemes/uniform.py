"""Cross-entropy at a share of hidden tokens drawn anew for each text.

Definition: draw a share uniformly from (0, 1], hide that share of the tokens as mask tokens, and
average -ln P(true token) over the hidden ones: the objective of masked diffusion models.

Rivals: cross-entropy at 15 % says how a model does with much context around each gap, this one how
it does with any.

Source:
    LLaDA, arXiv:2502.09992, in the variant with an exact count.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fillmask_ui.evaluation.schemes.scheme import Scheme
from fillmask_ui.masking import HiddenTokens, hide_as_masks, hideable
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class Uniform(Scheme):
    """Mean NLL of a share of the tokens, every share equally likely."""

    name = "uniform"
    label = "Uniform share"
    note = "A share of each text, drawn anew from 0 to 100 %, as diffusion models are trained."
    hides = "a share drawn anew for each text"
    figure_label = "Mean loss, uniform share hidden"

    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        """ceil(share * n) of the n tokens that can be hidden: each count is equally likely."""
        places = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids))
        share = 1.0 - rng.random()  # random() lies in [0, 1)
        chosen = rng.permutation(places)[: math.ceil(share * len(places))]
        return hide_as_masks(encoding, vocabulary, np.sort(chosen))
