"""What metrics share that hide one token of a text at a time.

Definition: each token is hidden once, in a reading of its own, with all others shown. `within_word`
also hides the later sub-tokens of the same word, which else give a long word away.

Source:
    Salazar et al. 2020, arXiv:1910.14659; within-word: Kauf and Ivanova 2023, arXiv:2305.10588.

Axes: M hidden positions.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fillmask_ui.evaluation.metrics.metric import Metric, Reading
from fillmask_ui.evaluation.rows import LATER, MaskedText, TokenScores
from fillmask_ui.masking import HiddenTokens, hide_as_masks, hideable
from fillmask_ui.options import option
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class EachToken(Metric):
    """A metric that hides each token alone."""

    hides = "each token once"
    seeded = False
    one_by_one = True

    within_word: bool = option(
        False, "Hide the rest of the word too; also for bits-per-byte and pairs."
    )

    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        """Each token in a view of its own; draws nothing."""
        cols = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids))
        words = encoding.word_ids
        continues = [words[before] == words[col] for before, col in itertools.pairwise(cols)]
        return hide_as_masks(encoding, vocabulary, cols, self._until(cols, continues))

    def reading(self, row: MaskedText, entry: int, scores: TokenScores, mask_id: int) -> Reading:
        """A token continues the word of the one before it, or does not, as in `hide`."""
        position, true_id = int(row.cols[entry]), int(row.true_ids[entry])
        until = self._until(row.cols, (row.parts[1:] == LATER).tolist())
        input_ids = row.ids.copy()
        input_ids[position : until[entry]] = mask_id
        return Reading(input_ids, np.array([entry]), position, true_id)

    def _until(self, cols: np.ndarray, continues: Sequence[bool]) -> np.ndarray:
        """`HiddenTokens.hidden_until`, int64 [M], of positions [M].

        `continues` says of each but the first whether it continues the word of the one before it.
        """
        until = cols + 1
        if self.within_word:
            for index in reversed(range(len(cols) - 1)):
                if until[index] == cols[index + 1] and continues[index]:
                    until[index] = until[index + 1]
        return until

    @property
    def signature(self) -> tuple[str, ...]:
        return ("within-word:" + ("yes" if self.within_word else "no"),)

    @property
    def compares_tokenizers(self) -> bool:
        return True

    def covers_same(self, first: MaskedText, second: MaskedText) -> bool:
        """Both cover the whole text, unless some of it is cut off or unknown."""
        return not any(text.truncated or text.left_out for text in (first, second))

    @property
    def reads_words(self) -> bool:
        return self.within_word
