"""The interface of a metric.

A metric hides tokens of a text, has them scored, and turns the sum of the negative log-likelihoods
of the true tokens into a figure: the loss per unit (a token, a byte, ...), or e^ of it. Subclasses
are frozen dataclasses whose fields are the metric's own options.

Axes: T tokens of a text, M hidden positions.
"""

import math
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from fillmask_ui.batching import Budget
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation.batch_scoring import Scorer
from fillmask_ui.evaluation.rows import MaskedText, TokenScores, UnmaskedScores, covered
from fillmask_ui.evaluation.running_sums import OwnSums
from fillmask_ui.masking import HiddenTokens, hide_as_masks, hideable
from fillmask_ui.options import check_options
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding, MaskFilling


@dataclass(frozen=True, eq=False)
class Reading:
    """How a model read a text when one hidden token was scored."""

    ids: np.ndarray  # int64 [T], what the model read
    asked: np.ndarray  # int64, entries of `cols` that were scored in this very reading
    position: int  # of the token, in [0, T)
    true_id: int  # the token to be found
    filled: UnmaskedScores | None = None  # of a text that was filled step by step


@dataclass(frozen=True)
class Metric(ABC):
    """One metric with its options."""

    name: ClassVar[str]  # on the command line and in run.json
    label: ClassVar[str]  # on the page
    note: ClassVar[str]  # one sentence that helps to choose a metric
    hides: ClassVar[str]  # what it hides, as the end of "the metric hides ..."
    figure_label: ClassVar[str]  # of its figure, on the page
    figure_key: ClassVar[str] = "cross_entropy"  # of its figure in JSON
    unit: ClassVar[str] = "nats"  # of its figure; may be blank
    seeded: ClassVar[bool] = True  # whether the seed changes what is hidden
    covers_the_text: ClassVar[bool] = False  # whether every token is hidden once
    one_by_one: ClassVar[bool] = False  # whether it takes about a row of the model per token
    exponential: ClassVar[bool] = False  # whether the figure is e^ of the loss per unit
    scaled: ClassVar[bool] = False  # whether a text's loss counts times units / hidden tokens
    parts: ClassVar[tuple[str, ...]] = ("text",)  # of an `Example` that are measured, in turn
    # Whether its figure is the share of texts that come out right (`OwnSums.right`): higher is
    # better, and models are compared by which texts they have right.
    counts_right: ClassVar[bool] = False
    measures: ClassVar[str] = "text"  # what one row is called
    # Columns of exported tokens that it alone has: singulars of fields of its scores.
    token_columns: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_options(self)

    def hide(self, encoding: Encoding, vocabulary: Vocabulary, rng: Generator) -> HiddenTokens:
        """Hidden tokens of one text; `rng` comes from (seed, id of the text)."""
        places = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids))
        return hide_as_masks(encoding, vocabulary, self.choose(places, rng))

    def choose(self, places: np.ndarray, rng: Generator) -> np.ndarray:
        """Which of the positions that can be hidden are, as mask tokens; int64, ascending."""
        return places

    def scorer(
        self, models: Sequence[MaskedLM], batch_tokens: int, budget: Budget, seed: int
    ) -> Scorer:
        """How its texts are measured; `seed` is of what is drawn while that goes on."""
        return Scorer(models, batch_tokens, budget)

    def unfit(self, rows: Sequence[MaskedText]) -> str:
        """Why an example cannot be measured, of its parts under each tokenizer; blank if it can."""
        return ""

    @property
    def columns(self) -> tuple[str | None, str | None, str | None] | None:
        """Which columns of the data hold both sentences and the group, for one that reads pairs."""
        return None

    def own_sums(self) -> OwnSums | None:
        """Empty sums for figures that this metric alone has."""
        return None

    def hidden_until(self, text: MaskedText) -> np.ndarray | None:
        """`HiddenTokens.hidden_until` of a hidden text; None for one view."""
        return None

    def reading(self, row: MaskedText, entry: int, scores: TokenScores, mask_id: int) -> Reading:
        """What the model read when hidden token `entry`, in [0, M), was scored."""
        input_ids = row.ids.copy()
        input_ids[row.cols] = row.shown_ids
        until = self.hidden_until(row)
        hidden = HiddenTokens(row.ids, input_ids, row.cols, row.kinds, mask_id, until)
        view = 0 if until is None else entry
        position, true_id = int(row.cols[entry]), int(row.true_ids[entry])
        return Reading(hidden.view(view), hidden.scored(view), position, true_id)

    @property
    def reads_words(self) -> bool:
        """Whether its figure depends on where words begin."""
        return False

    @property
    def signature(self) -> tuple[str, ...]:
        """Its own options as `name:value`, for the signature of a figure."""
        return ()

    @property
    def compares_tokenizers(self) -> bool:
        """Whether what is hidden stands for the same characters under any tokenizer."""
        return self.covers_the_text

    def units(self, text: MaskedText) -> float:
        """What the loss of a text is divided by; summed over texts."""
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


def with_stored(mask: MaskFilling, scores: TokenScores, entry: int) -> MaskFilling:
    """A replayed distribution with the row's own figures of its true token and its best guess.

    Texts that share a batch round each other in the seventh digit.
    """
    nll, best = float(scores.nll_nats[entry]), float(scores.top_probabilities[entry])
    probability = float(np.exp(-nll))
    (true,) = mask.scored
    known: dict[int, dict[str, Any]] = {
        int(scores.top_ids[entry]): {"probability": best, "nll_nats": float(-np.log(best))},
        true.parts[0].token_id: {"probability": probability, "nll_nats": nll},
    }
    candidates = tuple(replace(own, **known.get(own.token_id, {})) for own in mask.candidates)
    stored = replace(
        true,
        nll_nats=nll,
        probability=probability,
        rank=int(scores.ranks[entry]),
        parts=(replace(true.parts[0], nll_nats=nll),),
    )
    entropy = float(scores.entropy_nats[entry])
    return replace(mask, entropy_nats=entropy, candidates=candidates, scored=(stored,))
