"""The interface of a metric.

A metric hides tokens of a text, has them scored, and says what each text contributes to its
figure: the loss per unit (a token, a byte, ...), or e^ of it. Subclasses are frozen dataclasses
whose fields are the metric's own options.

Axes: T tokens of a text, M hidden positions.
"""

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from fillmask_ui.batching import Budget
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.batch_scoring import Scorer
from fillmask_ui.evaluation.rows import (
    EvaluatedText,
    MaskedText,
    TokenScores,
    UnmaskedScores,
    covered,
)
from fillmask_ui.evaluation.running_sums import ExtraSums, TextSums, loss_difference
from fillmask_ui.intervals import Estimate, estimate_ratio
from fillmask_ui.masking import HiddenTokens, hide_as_masks, hideable
from fillmask_ui.options import check_options
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding


@dataclass(frozen=True, eq=False)
class Reading:
    """How a model read a text when one hidden token was scored."""

    ids: np.ndarray  # int64 [T], what the model read
    scored: np.ndarray  # int64, entries of `cols` that were scored in this very reading
    position: int  # of the token, in [0, T)
    true_id: int  # the token to be found
    filled: UnmaskedScores | None = None  # of a text that was filled step by step


class Contribution(NamedTuple):
    """What one text adds to a metric, which is a function of the ratio of the sums of both."""

    numerator: float
    denominator: float


@dataclass(frozen=True)
class Metric(ABC):
    """One metric with its options.

    Five methods define it: `hide` (or `choose`), `contribution`, `figure`, `change`, `signature`.
    By default the figure is the mean loss of tokens that are hidden together. Few metrics need what
    stands below these methods.
    """

    option_panel: ClassVar[str] = ""  # of `--help`, for the fields that are options
    name: ClassVar[str]  # on the command line and in run.json
    label: ClassVar[str]  # on the page
    note: ClassVar[str]  # one sentence that helps to choose a metric
    hides: ClassVar[str]  # what it hides, as the end of "the metric hides ..."
    figure_label: ClassVar[str]  # of its figure, on the page
    figure_key: ClassVar[str] = "cross_entropy"  # of its figure in JSON
    unit: ClassVar[str] = "nats"  # of its figure; may be blank
    seeded: ClassVar[bool] = True  # whether the seed changes what is hidden
    one_by_one: ClassVar[bool] = False  # whether it takes about a row of the model per token
    # Then the figure is a share of texts that come out right, else a loss.
    higher_is_better: ClassVar[bool] = False
    # Columns of exported tokens that it alone has, with the types of their cells: singulars of
    # fields of its scores.
    token_columns: ClassVar[Mapping[str, type]] = {}

    def __init_subclass__(cls) -> None:
        cls.option_panel = f"Metric {getattr(cls, 'name', '')}"

    def __post_init__(self) -> None:
        check_options(self)

    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        """Hidden tokens of one text; `rng` comes from (seed, id of the text)."""
        positions = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids))
        return hide_as_masks(encoding, vocabulary, self.choose(positions, rng))

    def choose(self, positions: np.ndarray, rng: Generator) -> np.ndarray:
        """Which of the positions that can be hidden are, as mask tokens; int64, ascending."""
        return positions

    def contribution(self, row: EvaluatedText, scores: TokenScores) -> Contribution:
        """What one text adds, by the scores of one of the row's models."""
        return Contribution(scores.nll_nats.sum(), len(row.cols))

    def figure(self, texts: TextSums) -> Estimate:
        """The metric of all texts under one model."""
        return texts.ratio

    def change(self, candidate: TextSums, reference: TextSums) -> Estimate:
        """The relative change of the figure between two models on the same texts, 0.03 for +3%."""
        differences = loss_difference(candidate.numerators, reference.numerators)
        return estimate_ratio(differences, reference.numerators, candidate.quick)

    @property
    def signature(self) -> tuple[str, ...]:
        """Its own options as `name:value`, for the signature of a figure."""
        return ()

    @property
    def compares_tokenizers(self) -> bool:
        """Whether what is hidden can stand for the same characters under any two tokenizers."""
        return False

    def covers_same(self, first: MaskedText, second: MaskedText) -> bool:
        """Whether what two tokenizers hide of a text stands for the same characters."""
        if first.truncated or second.truncated:
            return False
        return covered(first.text, first.spans) == covered(second.text, second.spans)

    @property
    def reads_words(self) -> bool:
        """Whether its figure depends on where words begin."""
        return False

    @property
    def columns(self) -> tuple[str | None, str | None, str | None] | None:
        """Which columns hold the better and worse sentence and a text before them, for pairs."""
        return None

    @property
    def measures(self) -> str:
        """What one row is called."""
        return "text" if self.columns is None else "pair"

    def scorer(
        self, models: Sequence[MaskedLM], batch_tokens: int, budget: Budget, seed: int
    ) -> Scorer:
        """How its texts are measured; `seed` is of what is drawn while that goes on."""
        return Scorer(models, batch_tokens, budget)

    def reading(self, row: MaskedText, entry: int, scores: TokenScores, mask_id: int) -> Reading:
        """What the model read when hidden token `entry`, in [0, M), was scored."""
        input_ids = row.ids.copy()
        input_ids[row.cols] = row.shown_ids
        position, true_id = int(row.cols[entry]), int(row.true_ids[entry])
        return Reading(input_ids, np.arange(len(row.cols)), position, true_id)

    def extra_sums(self) -> ExtraSums | None:
        """Empty sums for figures that this metric alone has."""
        return None


def exp(value: float) -> float:
    """e^value; infinite where a broken model's mean is past what a float holds."""
    return math.exp(value) if value < 700 else math.inf


def expm1(value: float) -> float:
    """e^value - 1, as `exp`."""
    return math.inf if value > 700 else math.expm1(value)  # of NaN it is NaN


def replay(
    row: MaskedText, metric: Metric, vocabulary: Vocabulary, entry: int, scores: TokenScores
) -> Reading:
    """`Metric.reading`; a `DataError` for a row of another vocabulary, or that does not say it."""
    for token_id, token in zip(row.true_ids.tolist(), row.tokens, strict=True):
        if vocabulary.token(token_id) != token:
            raise DataError(
                f"text {row.id} was measured with a vocabulary whose token {token_id} is "
                f"{token!r}, and that of the model is {vocabulary.token(token_id)!r} now: the "
                "model has been replaced since; evaluate again"
            )
    return metric.reading(row, entry, scores, vocabulary.mask_id)
