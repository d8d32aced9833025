"""Cross-entropy of the last n tokens, all hidden together.

Definition: show the last n tokens of each text as mask tokens and average -ln P(true token) over
them: how well a model goes on with a text when it sees the left context only.

Rivals: a causal model predicts them one after another, each given those before it; here none of
them sees another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fillmask_ui.evaluation.schemes.scheme import Scheme
from fillmask_ui.masking import HiddenTokens, hide_suffix, hideable
from fillmask_ui.options import check_options, option

if TYPE_CHECKING:
    from fillmask_ui.protocol import Vocabulary
    from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class Suffix(Scheme):
    """Mean NLL of the tokens at the end."""

    name = "suffix"
    label = "End of the text"
    note = "The last tokens of each text are hidden."
    hides = "the tokens at the end"
    figure_label = "Mean loss, end hidden"
    seeded = False

    # how many are hidden; all where a text has fewer
    suffix_tokens: int = option(
        8,
        "Suffix: how many tokens at the end are hidden.",
        label="Number of tokens at the end",
        metavar="N",
        least=1,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def hide(
        self, encoding: Encoding, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> HiddenTokens:
        """The last tokens that can be hidden; draws nothing."""
        ids = np.array(encoding.ids, dtype=np.int64)
        return hide_suffix(
            ids,
            can_hide=hideable(ids, vocabulary.special_ids),
            mask_id=vocabulary.mask_id,
            count=self.suffix_tokens,
        )

    @property
    def signature(self) -> tuple[str, ...]:
        return (f"suffix:{self.suffix_tokens}",)
