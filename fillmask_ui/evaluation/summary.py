"""The figures of an evaluation: frozen records, and how they print as JSON.

Averages are token averages in float64; intervals take whole texts as the unit. Nothing is rounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fillmask_ui.evaluation.catalogue import (
    BITS,
    NATS,
    SPLITS,
    Figure,
    figure,
    figures_dict,
    figures_of,
    interval_list,
    splits_dict,
)
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.evaluation.rows import TokenExample
from fillmask_ui.intervals import Interval, Limits, Verdict
from fillmask_ui.records import Displayed, counted, finite


@dataclass(frozen=True)
class GroupFigures:
    """Figures of a part of the tokens; token averages, rank 1 for the best guess."""

    name: str  # what the tokens have in common, e.g. `mask`, `first sub-token`, `8-15`.
    tokens: int = figure("tokens")
    texts: int | None = figure("texts")  # with at least one of them; None where not counted
    mean_nll_nats: float = figure("mean NLL", NATS, "interval")
    top1_accuracy: float = figure("top-1", share=True)
    top5_accuracy: float = figure("top-5", share=True)
    mean_rank: float = figure("mean rank")
    mean_entropy_nats: float = figure("mean entropy", NATS)
    interval: Interval | None = None  # of the mean; None for fewer than 5 texts


@dataclass(frozen=True)
class TextGroup:
    """Figures of some of the texts, as an evaluation of these texts alone has them."""

    name: str  # what the texts have in common: a value of the group column, or `16-31` tokens
    texts: int = figure("texts")
    tokens: int = figure("tokens")
    value: float = figure("value", "", "interval")  # the figure that the metric names
    mean_nll_nats: float = figure("mean NLL", NATS)
    top1_accuracy: float = figure("top-1", share=True)
    interval: Interval | None = None  # of the value; None for fewer than 5 texts


@dataclass(frozen=True)
class GroupChange:
    """How a candidate differs from its reference in some of the texts or tokens, paired by text."""

    name: str
    tokens: int = figure("tokens")
    texts: int | None = figure("texts")
    # Of texts that of the metric; of tokens that of the mean NLL. 0.03 is 3% higher.
    relative_change: float = figure("change", "", "relative_change_interval", share=True)
    relative_change_interval: Interval | None = None  # None for fewer than 5 texts


@dataclass(frozen=True)
class CalibrationBin:
    """Tokens whose best guess had a probability in [low, high)."""

    low: float
    high: float
    tokens: int = figure("tokens")
    mean_probability: float = figure("mean stated", share=True)
    accuracy: float = figure("right", share=True)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts in bins of equal width, the first and last of which are open."""

    edges: np.ndarray  # float64 [bins + 1], in nats
    counts: Mapping[str, np.ndarray]  # group name to int64 [bins]

    @property
    def total(self) -> np.ndarray:
        return np.sum(list(self.counts.values()), axis=0)

    def quantile(self, share: float) -> float:
        """The value below which a share of the tokens lies, exact to one bin."""
        counts, below = self.total, np.cumsum(self.total)
        tokens = share * below[-1]
        index = min(int(np.searchsorted(below, tokens)), len(below) - 1)
        inside = (tokens - (below[index] - counts[index])) / max(counts[index], 1)
        low, high = self.edges[index], self.edges[index + 1]
        return float(low + (high - low) * inside)


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelFigures:
    """What was measured of one model; token averages."""

    mean_nll_nats: float = figure("mean NLL", NATS, "interval", brief=True)  # cross-entropy
    mean_nll_bits: float = figure("mean NLL", BITS)
    median_nll_nats: float = figure("median NLL", NATS)  # exact to 0.02
    perplexity: float = figure(
        "perplexity", "", "perplexity_interval", interval_in_json=False, brief=True
    )
    # Sum of losses by characters; compares tokenizers.
    nll_per_character_nats: float = figure(
        "NLL per character", NATS, "per_character_interval", brief=True
    )
    nll_per_character_bits: float = figure("NLL per character", BITS)
    top1_accuracy: float = figure(
        "top-1 accuracy", share=True, brief=True
    )  # share of tokens with rank 1
    top5_accuracy: float = figure("top-5 accuracy", share=True, brief=True)  # with rank 5 or better
    mean_rank: float = figure("mean rank")
    mean_entropy_nats: float = figure("mean entropy", NATS)
    calibration_error: float = figure("calibration error")  # mean |stated - right|
    tokens: int = figure("tokens", brief=True)  # hidden tokens scored
    # (sum n)^2 / sum n^2
    effective_texts: float = figure("texts of equal length that would count as much")
    # Of `mean_nll_nats`: how far it hangs on a few texts.
    top_texts_variance_share: float = figure(
        "share of the variance that 5% of the texts carry", share=True
    )
    characters: int = figure("characters")  # that the tokens stand for
    truncated: int = figure("texts cut at the end", key="texts_truncated")
    left_out: int = figure("tokens left out", key="tokens_left_out")  # unknown, written special
    interval: Interval | None
    perplexity_interval: Interval | None
    per_character_interval: Interval | None
    metric: float  # the figure that the metric names: the mean, e^mean, a loss per byte, ...
    metric_interval: Interval | None
    by_group: tuple[TextGroup, ...]  # by the group column; empty without one
    by_length: tuple[TextGroup, ...]  # by the tokens of the text
    by_kind: tuple[GroupFigures, ...]  # by what the model saw: mask, random, unchanged
    by_part: tuple[GroupFigures, ...]  # by whole word, first and later sub-token
    by_position: tuple[GroupFigures, ...]  # by token position
    by_frequency: tuple[GroupFigures, ...]  # by how often the token occurs in the texts
    calibration: tuple[CalibrationBin, ...]  # stated probability against how often it is right
    histogram: Histogram  # of the loss of a token, by kind
    # Record of figures of the metric alone: of texts filled step by step, of pairs.
    extra: Any = None

    def __repr__(self) -> str:
        mean = f"mean NLL {self.mean_nll_nats:.4g} nats"
        return f"ModelFigures({mean}, {counted(self.tokens, 'token')})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values, the histogram left out."""
        return {
            **(figures_dict(self.extra) if self.extra else {}),
            **figures_dict(self),
            **splits_dict(self, SPLITS),
            "interval_95": interval_list(self.metric_interval),
            "mean_nll_interval_95": interval_list(self.interval),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelComparison:
    """A candidate beside its reference, paired by text."""

    unit: str = figure("compared by")  # `token`, or `character` where the tokenizers differ
    texts: int = figure("texts in both")
    # Mean loss of the candidate less that of the reference, by unit.
    difference_nats: float = figure("difference of the mean NLL", NATS, "difference_interval")
    further_texts: int | None = figure("further texts that settle it four times in five")
    needed_texts: int | None = figure("texts that a verdict takes")
    # None by character, as all that follow, and where two stored runs are compared those with
    # distributions and logits.
    agreement: float | None = figure("same best guess", share=True, default=None)
    flips: int | None = figure("best guesses that differ", default=None)
    lost: int | None = figure("right in the reference only", default=None)
    won: int | None = figure("right in the candidate only", default=None)
    mean_kl_nats: float | None = figure("KL(candidate || reference)", NATS, default=None)
    mean_kl_reverse_nats: float | None = figure("KL(reference || candidate)", NATS, default=None)
    mean_abs_logit_difference: float | None = figure("mean |logit difference|", default=None)
    max_abs_logit_difference: float | None = figure("largest |logit difference|", default=None)
    histogram: Histogram | None = None  # of the difference of the loss of a token
    # Of `Summary.compared_metric`, against the reference; 0.03 is 3% higher, which is worse unless
    # of the metric `higher_is_better`.
    relative_change: float
    interval: Interval | None  # of it, paired
    difference_interval: Interval | None  # paired
    verdict: Verdict  # of the relative change
    extra: Any = None  # record of figures of the metric alone: of pairs
    # By the splits of `ModelFigures`; by character there are none of tokens.
    by_group: tuple[GroupChange, ...] = ()
    by_length: tuple[GroupChange, ...] = ()
    by_kind: tuple[GroupChange, ...] = ()
    by_part: tuple[GroupChange, ...] = ()
    by_position: tuple[GroupChange, ...] = ()
    by_frequency: tuple[GroupChange, ...] = ()

    def __repr__(self) -> str:
        change = f"change {self.relative_change:+.2%}, {self.verdict.label}"
        return f"ModelComparison({change}, {counted(self.texts, 'text')})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values, the histogram left out."""
        extra = figures_dict(self.extra) if self.extra else {}
        return {**extra, **figures_dict(self), **splits_dict(self, SPLITS)}


MODEL_FIGURES = figures_of(ModelFigures)
GROUP_FIGURES = figures_of(GroupFigures)
COMPARISON_FIGURES = figures_of(ModelComparison)
CALIBRATION_FIGURES = figures_of(CalibrationBin)


@dataclass(frozen=True, eq=False)
class Summary(Displayed):
    """All figures of one evaluation."""

    metric: Metric  # that the figures are of
    config: EvaluationConfig | None  # what was measured; None where the rows alone were given
    texts: int  # measured
    skipped: Mapping[str, int]  # reason to number of texts
    model: ModelFigures  # figures of the only model, or of the candidate
    reference: ModelFigures | None = None  # figures of the reference; None for one model
    comparison: ModelComparison | None = None  # of the two
    alarms: tuple[str, ...] = ()  # what a reader must know, in words
    group_notes: tuple[str, ...] = ()  # on values of the group column that were put together
    worst: tuple[TokenExample, ...] = ()  # tokens with the largest loss
    most_different: tuple[TokenExample, ...] = ()  # with the largest |difference| of losses
    limits: Limits = field(default_factory=Limits)  # borders of the verdict
    provisional: bool = False  # whether intervals are linearised, which can be too narrow
    # Float64 [1 or 2, n]: losses of a fair sample of tokens, and by token those of the reference.
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def __repr__(self) -> str:
        figures = [f"{self.metric_figure.name} {self.model.metric:.4g}"]
        if self.reference is not None and self.comparison is not None:
            figures.append(f"reference {self.reference.metric:.4g}")
            figures.append(self.comparison.verdict.label)
        return f"Summary({', '.join(figures)}, {counted(self.texts, 'text')})"

    @property
    def candidate(self) -> ModelFigures | None:
        """Figures of the candidate; None for one model."""
        return None if self.reference is None else self.model

    @property
    def metric_figure(self) -> Figure:
        """The metric's own figure, of `ModelFigures`, as a row of the catalogue."""
        key, share = self.metric.figure_key, self.metric.higher_is_better
        return Figure(key, key.replace("_", " "), "", "metric_interval", "metric", share=share)

    @property
    def compared_metric(self) -> str:
        """What `relative_change` is a change of, in words.

        Of two tokenizers both losses are taken over what they share: the characters, or for e^ of
        a loss the number of the reference's tokens.
        """
        name = self.metric_figure.label
        by_token = self.comparison is None or self.comparison.unit == "token"
        if by_token or self.metric.higher_is_better:
            return name
        # A perplexity has no unit.
        return "loss per character" if self.metric.unit else f"{name} over the reference's tokens"

    def to_dict(self) -> dict[str, Any]:
        """What `fillmask-ui eval --json` prints; None for what is infinite or undefined."""
        key = self.metric.figure_key
        values = {
            "metric": self.metric.name,
            key: self.model.metric,
            **self.model.to_dict(),
            "texts": self.texts,
            "skipped": dict(self.skipped),
            "alarms": list(self.alarms),
            "group_notes": list(self.group_notes),
        }
        if self.reference is not None and self.comparison is not None:
            values["reference"] = {key: self.reference.metric, **self.reference.to_dict()}
            values["relative_change"] = self.comparison.relative_change
            values["relative_change_interval_95"] = interval_list(self.comparison.interval)
            values["verdict"] = self.comparison.verdict.label
            values["comparison"] = self.comparison.to_dict()
        return finite(values)
