"""What every metric has to say.

A metric hides tokens of a text, and turns the sum of the negative log-likelihoods of the true
tokens into a figure: the loss per unit (a token, a byte, ...), or e^ of it. Subclasses are frozen
dataclasses whose fields are the metric's own options.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from fillmask_ui.evaluation.rows import MaskedText
from fillmask_ui.masking import HiddenTokens
from fillmask_ui.options import check_options
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding


@dataclass(frozen=True)
class Scheme(ABC):
    """One metric with its options."""

    name: ClassVar[str]  # on the command line and in run.json.
    label: ClassVar[str]  # on the page
    note: ClassVar[str]  # one sentence for whoever chooses a metric
    hides: ClassVar[str]  # what it hides, as the end of "the metric hides ...".
    figure_label: ClassVar[str]  # of its figure, on the page
    figure_key: ClassVar[str] = "cross_entropy"  # of its figure in JSON
    unit: ClassVar[str] = "nats"  # of its figure; blank for a number without one
    seeded: ClassVar[bool] = True  # whether the seed changes what is hidden
    covers_the_text: ClassVar[bool] = False  # whether every token is hidden once
    one_by_one: ClassVar[bool] = False  # whether it takes about a row of the model per token
    per_token: ClassVar[bool] = True  # whether the unit of the loss is a hidden token
    exponential: ClassVar[bool] = False  # whether the figure is e^ of the loss per unit
    # Whether the loss of a text stands for all its units: it is scaled by units / hidden tokens.
    scaled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        """Hidden tokens of one text; `rng` is of (seed, id of the text), nothing else is random."""

    def hidden_until(self, text: MaskedText) -> np.ndarray | None:
        """`HiddenTokens.hidden_until` of a text that `hide` has hidden; None for one view."""
        return None

    @property
    def signature(self) -> tuple[str, ...]:
        """Its own options as `name:value`, for the signature of a figure."""
        return ()

    @property
    def compares_tokenizers(self) -> bool:
        """Whether what is hidden stands for the same characters under any tokenizer."""
        return self.covers_the_text

    def units(self, text: MaskedText) -> float:
        """What the loss of one text is divided by; summed over texts."""
        return len(text.cols)

    def figure(self, nll_per_unit_nats: float) -> float:
        """The metric of a loss per unit; increasing."""
        return exp(nll_per_unit_nats) if self.exponential else nll_per_unit_nats

    def covers_same(self, first: MaskedText, second: MaskedText) -> bool:
        """Whether what two tokenizers hide of a text stands for the same characters."""
        if first.truncated or second.truncated:
            return False
        if self.covers_the_text:
            return not first.left_out and not second.left_out
        return covered(first.text, first.spans) == covered(second.text, second.spans)


def exp(value: float) -> float:
    """e^value; infinite where a broken model's mean is past what a float holds."""
    return math.exp(value) if value < 700 else math.inf


def covered(text: str, spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    """Characters of a text, blanks left out, that its hidden tokens stand for."""
    places = (place for start, end in spans for place in range(start, end))
    return frozenset(place for place in places if not text[place].isspace())
