"""Iterative unmasking, measured: what a model writes into gaps, and what it says of the truth.

Definition. Hide a share of the tokens, all shown as mask tokens; fill them step by step
(`fillmask_ui.unmasking`), and average -ln P(true token) at the step that wrote each position,
given all that the steps before it wrote.

Rivals: `uniform` and `suffix` ask about all hidden tokens at once, so that none sees another; the
joint likelihood of a text would feed the true tokens back, this feeds the model its own.

Source:
    Mask-predict, arXiv:1904.09324; the share is an exact count, as in `uniform`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.schemes.scheme import Scheme
from fillmask_ui.masking import HiddenTokens, hide_as_masks, hideable
from fillmask_ui.options import option
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding
from fillmask_ui.unmasking.unmasking_options import UnmaskingOptions


@dataclass(frozen=True)
class Unmasking(Scheme):
    """Mean NLL of hidden tokens at the step that wrote their position."""

    name = "unmasking"
    label = "Unmasking"
    note = "A share of the tokens is hidden and filled step by step; what is written is compared."
    hides = "a share of the tokens that is then filled step by step"
    figure_label = "Mean loss, filled step by step"
    figure_key = "unmasking_loss"
    one_by_one = True

    hidden_share: float = option(
        0.15,
        "Unmasking: share of the tokens hidden, above 0 and at most 1.",
        metavar="P",
        most=1,
    )
    decoding: UnmaskingOptions = field(default_factory=UnmaskingOptions)  # how they are filled

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden_share > 0:
            raise OptionError(
                "the hidden share must be above 0 and at most 1 (0.15 hides 15 % of the tokens); "
                f"it was {self.hidden_share:g}"
            )

    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        """The share of the n tokens that can be hidden, to the nearest whole one, at least one."""
        places = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids))
        chosen = rng.permutation(places)[: max(1, round(self.hidden_share * len(places)))]
        return hide_as_masks(encoding, vocabulary, np.sort(chosen))

    @property
    def signature(self) -> tuple[str, ...]:
        return (f"share:{self.hidden_share:g}", *self.decoding.signature.split("|"))
