"""Pseudo-perplexity: what perplexity becomes for a model that reads both sides.

Definition: hide one token at a time, sum -ln P(token | all others) over all tokens of all texts,
divide by their number, and take e^ of it. `within_word` also hides the later sub-tokens of the
same word, which else give a long word away.

Rivals: the perplexity of a causal model sees the left context only, so values do not compare;
cross-entropy costs a twentieth, but rests on a draw of tokens.

Source:
    Salazar et al. 2020, arXiv:1910.14659; within-word: Kauf and Ivanova 2023, arXiv:2305.10588.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fillmask_ui.evaluation.metrics.metric import Metric
from fillmask_ui.evaluation.rows import LATER, MaskedText
from fillmask_ui.masking import HiddenTokens, hide_as_masks, hideable
from fillmask_ui.options import option
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class PseudoPerplexity(Metric):
    """e^ of the mean NLL of every token, each hidden alone."""

    name = "pseudo-perplexity"
    label = "Pseudo-perplexity"
    note = "Each token is hidden once, alone: the most thorough and the slowest."
    hides = "each token once"
    figure_label = "Pseudo-perplexity"
    figure_key = "pseudo_perplexity"
    unit = ""
    seeded = False
    covers_the_text = True
    one_by_one = True
    exponential = True

    within_word: bool = option(False, "Pseudo-perplexity: hide the rest of the word too.")

    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        """Each token in a view of its own; draws nothing."""
        cols = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids))
        words = encoding.word_ids
        goes_on = [words[before] == words[col] for before, col in itertools.pairwise(cols)]
        return hide_as_masks(encoding, vocabulary, cols, self._until(cols, goes_on))

    def hidden_until(self, text: MaskedText) -> np.ndarray:
        """As `hide` gave it: a token goes on with the word of the one before it, or does not."""
        return self._until(text.cols, (text.parts[1:] == LATER).tolist())

    def _until(self, cols: np.ndarray, goes_on: Sequence[bool]) -> np.ndarray:
        """int64 [M], of positions [M] and of whether each but the first goes on with a word."""
        until = cols + 1
        for index in reversed(range(len(cols) - 1)) if self.within_word else ():
            if until[index] == cols[index + 1] and goes_on[index]:
                until[index] = until[index + 1]
        return until

    @property
    def reads_words(self) -> bool:
        return self.within_word

    @property
    def signature(self) -> tuple[str, ...]:
        return ("within-word:" + ("yes" if self.within_word else "no"),)
