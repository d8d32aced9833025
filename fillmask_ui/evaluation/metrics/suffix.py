"""Cross-entropy of the last n tokens, all hidden together.

Definition: show the last n tokens of each text as mask tokens and average -ln P(true token) over
them: how well a model goes on with a text when it sees the left context only.

Rivals: a causal model predicts them one after another, each given those before it; here none of
them sees another.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fillmask_ui.evaluation.metrics.metric import Metric
from fillmask_ui.options import option


@dataclass(frozen=True)
class Suffix(Metric):
    """Mean NLL of the tokens at the end."""

    name = "suffix"
    label = "End of the text"
    note = "The last tokens of each text are hidden."
    hides = "the tokens at the end"
    figure_label = "Mean loss, end hidden"
    seeded = False

    suffix_tokens: int = option(
        8,
        "Number of hidden tokens at the end.",
        label="Number of tokens at the end",
        metavar="N",
        least=1,
    )

    def choose(self, positions: np.ndarray, rng: Generator) -> np.ndarray:
        return positions[-self.suffix_tokens :]

    @property
    def signature(self) -> tuple[str, ...]:
        return (f"suffix:{self.suffix_tokens}",)
