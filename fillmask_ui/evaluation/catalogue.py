"""The catalogue of figures: each with its key, its label, where it is found and how it is written.

Everything that shows figures reads these tables: JSON, the shell's tables, the page, the report
and the model card. A new figure is an attribute of a record in `summary` and a row here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fillmask_ui.intervals import Interval

# How a figure is written: a count, a loss in nats or bits, a share of tokens, a perplexity, a
# rank, or words.
COUNT, LOSS, SHARE = "count", "loss", "share"
PERPLEXITY, RANK, WORDS = "perplexity", "rank", "words"


@dataclass(frozen=True)
class Figure:
    """One figure of a record."""

    key: str  # in JSON
    label: str  # for people, its unit in brackets
    form: str  # how it is written: `COUNT`, `LOSS`, ...
    interval: str = ""  # attribute of its 95 % interval; blank for none
    lower_is_better: bool | None = None  # None where neither is
    attribute: str = ""  # of the record; the key if blank
    interval_in_json: bool = True  # as `<attribute>_95`

    def value(self, record: Any) -> Any:
        """Unrounded; None where the record does not have it."""
        return getattr(record, self.attribute or self.key)

    def interval_of(self, record: Any) -> Interval | None:
        """Its 95 % interval; None where there is none."""
        return getattr(record, self.interval) if self.interval else None


MODEL_FIGURES = (
    Figure("mean_nll_nats", "mean NLL (nats)", LOSS, "interval", True),
    Figure("mean_nll_bits", "mean NLL (bits)", LOSS, "", True),
    Figure("median_nll_nats", "median NLL (nats)", LOSS, "", True),
    Figure("perplexity", "perplexity", PERPLEXITY, "perplexity_interval", True, "", False),
    Figure(
        "nll_per_character_nats", "NLL per character (nats)", LOSS, "per_character_interval", True
    ),
    Figure("nll_per_character_bits", "NLL per character (bits)", LOSS, "", True),
    Figure("top1_accuracy", "top-1 accuracy", SHARE, "", False),
    Figure("top5_accuracy", "top-5 accuracy", SHARE, "", False),
    Figure("mean_rank", "mean rank", RANK, "", True),
    Figure("mean_entropy_nats", "mean entropy (nats)", LOSS),
    Figure("calibration_error", "calibration error", SHARE, "", True),
    Figure("tokens", "tokens", COUNT),
    Figure("characters", "characters", COUNT),
    Figure("texts_truncated", "texts cut at the end", COUNT, attribute="truncated"),
    Figure("tokens_left_out", "tokens left out", COUNT, attribute="left_out"),
)
GROUP_FIGURES = (
    Figure("tokens", "tokens", COUNT),
    Figure("texts", "texts", COUNT),
    Figure("mean_nll_nats", "mean NLL (nats)", LOSS, "interval", True),
    Figure("top1_accuracy", "top-1", SHARE, "", False),
    Figure("top5_accuracy", "top-5", SHARE, "", False),
    Figure("mean_rank", "mean rank", RANK, "", True),
    Figure("mean_entropy_nats", "mean entropy (nats)", LOSS),
)
COMPARISON_FIGURES = (
    Figure("unit", "compared by", WORDS),
    Figure("texts", "texts in both", COUNT),
    Figure(
        "difference_nats", "difference of the mean NLL (nats)", LOSS, "difference_interval", True
    ),
    Figure("further_texts", "further texts that would settle it", COUNT),
    Figure("agreement", "same best guess", SHARE, "", False),
    Figure("flips", "best guesses that differ", COUNT, "", True),
    Figure("lost", "right in the baseline only", COUNT, "", True),
    Figure("won", "right in the model only", COUNT, "", False),
    Figure("mean_kl_nats", "KL(model || baseline) (nats)", LOSS, "", True),
    Figure("mean_kl_reverse_nats", "KL(baseline || model) (nats)", LOSS, "", True),
    Figure("mean_abs_logit_difference", "mean |logit difference|", LOSS, "", True),
    Figure("max_abs_logit_difference", "largest |logit difference|", LOSS, "", True),
)
# Groups that a model's figures are split into: attribute and JSON key, and what they go by.
SPLITS = {
    "by_kind": "what the model saw",
    "by_part": "part of the word",
    "by_position": "position in the text",
    "by_frequency": "occurrences in the texts",
}


def figures_dict(record: Any, figures: Iterable[Figure]) -> dict[str, Any]:
    """Figures of a record as JSON has them, with their intervals.

    >>> from fillmask_ui.evaluation.summary import GroupFigures
    >>> group = GroupFigures("mask", 10, 2, 1.5, None, 0.5, 0.75, 8.0, 2.0)
    >>> figures_dict(group, GROUP_FIGURES)["mean_rank"]
    8.0
    """
    values: dict[str, Any] = {}
    for figure in figures:
        values[figure.key] = figure.value(record)
        if figure.interval and figure.interval_in_json:
            values[f"{figure.interval}_95"] = interval_list(figure.interval_of(record))
    return values


def interval_list(interval: Interval | None) -> list[float] | None:
    """An interval as JSON has it."""
    return None if interval is None else [interval.low, interval.high]
