"""The objective of masked diffusion models: a share of each text is hidden, drawn anew for each.

Definition: of the L tokens of a text hide l as mask tokens, each l from 1 to L equally likely. The
text counts L / l times the sum of -ln P(true token) over its hidden tokens; these are summed over
the texts and divided by the sum of their L. The expectation over the draws is an upper bound of
the negative log-likelihood a token.

Rivals: the mean over the hidden tokens (`mean_nll_nats`, shown beside it) counts a text by how much
of it was hidden, so that it says most of texts with little context left: it is mostly larger.
Cross-entropy at 15% says how a model does with much context around each gap.

Source:
    LLaDA, arXiv:2502.09992, the likelihood bound with l of L tokens hidden; the same weight, as 1/t
    of a share t that is not an exact count, is MDLM's, arXiv:2406.07524.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fillmask_ui.evaluation.metrics.metric import Contribution, Metric
from fillmask_ui.evaluation.rows import EvaluatedText, TokenScores


@dataclass(frozen=True)
class Uniform(Metric):
    """NLL a token, each text weighted by L / l, every share equally likely."""

    name = "uniform"
    label = "Uniform share"
    note = (
        "A share of each text, drawn anew from 0 to 100%. The figure is the objective of masked "
        "diffusion models: each text's loss times its tokens, by how many are hidden."
    )
    hides = "a share drawn anew for each text"
    figure_label = "Diffusion objective, uniform share hidden"
    figure_key = "diffusion_loss"

    def choose(self, positions: np.ndarray, rng: Generator) -> np.ndarray:
        """ceil(share * L) of the L tokens that can be hidden: each count is equally likely."""
        share = 1.0 - rng.random()  # random() lies in [0, 1)
        return np.sort(rng.permutation(positions)[: math.ceil(share * len(positions))])

    def contribution(self, row: EvaluatedText, scores: TokenScores) -> Contribution:
        """Of l hidden tokens of L: their loss times L / l, and L."""
        return Contribution(scores.nll_nats.sum() * row.can_hide / len(row.cols), row.can_hide)
