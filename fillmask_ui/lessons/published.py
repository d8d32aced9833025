"""The published comparison of eight models, and what its figures come to.

Source:
    winml-cli, pull request 318: masked cross-entropy on 1,000 texts of WikiText-2, ONNX on an NPU
    against PyTorch. Losses and changes are copied as printed there, all else is computed here.
"""

import math
from dataclasses import dataclass

from fillmask_ui.evaluation.metrics.metric import exp
from fillmask_ui.intervals import Limits


@dataclass(frozen=True)
class Change:
    """A loss beside the baseline's, in nats."""

    nll_nats: float
    baseline_nll_nats: float

    @property
    def relative_change(self) -> float:
        """0.03 is 3 % worse."""
        return self.nll_nats / self.baseline_nll_nats - 1

    @property
    def difference_nats(self) -> float:
        return self.nll_nats - self.baseline_nll_nats

    @property
    def perplexity_factor(self) -> float:
        """Perplexity over that of the baseline: e^ of the difference."""
        return exp(self.difference_nats)

    def verdict(self, limits: Limits) -> str:
        """The band of the change as it stands; one figure alone has no interval."""
        return limits.band(self.relative_change)


@dataclass(frozen=True)
class PublishedRow(Change):
    """One line of the table."""

    model: str
    printed_percent: float  # relative change, as printed: to one digit

    @property
    def as_printed(self) -> bool:
        """Whether the two losses give the printed change, to its last digit."""
        return math.isclose(round(100 * self.relative_change, 1), self.printed_percent)


PUBLISHED = (
    PublishedRow(2.1625, 2.1032, "bert-base-uncased", 2.8),
    PublishedRow(1.5680, 1.5272, "xlm-roberta-base", 2.7),
    PublishedRow(1.2023, 1.1999, "xlm-roberta-large", 0.2),
    PublishedRow(1.9361, 1.9061, "roberta-base", 1.6),
    PublishedRow(1.9178, 1.9265, "roberta-large", -0.5),
    PublishedRow(1.8312, 1.8057, "bert-base-multilingual-uncased", 1.4),
    PublishedRow(1.9570, 1.8814, "bert-base-multilingual-cased", 4.0),
    PublishedRow(8.5174, 2.3718, "distilbert-base-uncased", 259.1),
)
