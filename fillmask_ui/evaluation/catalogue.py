"""The catalogue of figures: the key, name and unit of each, and where it is found.

JSON, the shell, the page and the report read these tables. A new figure is an attribute of a record
in `summary` and a row here; those of one metric stand with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fillmask_ui.intervals import Interval

NATS, BITS = "nats", "bits"


@dataclass(frozen=True)
class Figure:
    """One figure of a record."""

    key: str  # in JSON
    name: str  # for people
    unit: str = ""  # in brackets behind the name; blank for counts, shares and ratios
    interval: str = ""  # attribute of its 95 % interval; blank for none
    attribute: str = ""  # of the record; the key if blank
    interval_in_json: bool = True

    @property
    def interval_key(self) -> str:
        return f"{self.interval}_95" if self.interval and self.interval_in_json else ""

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def value(self, record: Any) -> Any:
        return getattr(record, self.attribute or self.key)

    def interval_of(self, record: Any) -> Interval | None:
        return getattr(record, self.interval) if self.interval else None


MODEL_FIGURES = (
    Figure("mean_nll_nats", "mean NLL", NATS, "interval"),
    Figure("mean_nll_bits", "mean NLL", BITS),
    Figure("median_nll_nats", "median NLL", NATS),
    Figure("perplexity", "perplexity", "", "perplexity_interval", interval_in_json=False),
    Figure("nll_per_character_nats", "NLL per character", NATS, "per_character_interval"),
    Figure("nll_per_character_bits", "NLL per character", BITS),
    Figure("top1_accuracy", "top-1 accuracy"),
    Figure("top5_accuracy", "top-5 accuracy"),
    Figure("mean_rank", "mean rank"),
    Figure("mean_entropy_nats", "mean entropy", NATS),
    Figure("calibration_error", "calibration error"),
    Figure("tokens", "tokens"),
    Figure("effective_texts", "texts of equal length that would count as much"),
    Figure("characters", "characters"),
    Figure("texts_truncated", "texts cut at the end", attribute="truncated"),
    Figure("tokens_left_out", "tokens left out", attribute="left_out"),
)
GROUP_FIGURES = (
    Figure("tokens", "tokens"),
    Figure("texts", "texts"),
    Figure("mean_nll_nats", "mean NLL", NATS, "interval"),
    Figure("top1_accuracy", "top-1"),
    Figure("top5_accuracy", "top-5"),
    Figure("mean_rank", "mean rank"),
    Figure("mean_entropy_nats", "mean entropy", NATS),
)
COMPARISON_FIGURES = (
    Figure("unit", "compared by"),
    Figure("texts", "texts in both"),
    Figure("difference_nats", "difference of the mean NLL", NATS, "difference_interval"),
    Figure("further_texts", "further texts that settle it four times in five"),
    Figure("agreement", "same best guess"),
    Figure("flips", "best guesses that differ"),
    Figure("lost", "right in the reference only"),
    Figure("won", "right in the candidate only"),
    Figure("mean_kl_nats", "KL(candidate || reference)", NATS),
    Figure("mean_kl_reverse_nats", "KL(reference || candidate)", NATS),
    Figure("mean_abs_logit_difference", "mean |logit difference|"),
    Figure("max_abs_logit_difference", "largest |logit difference|"),
)
# Groups that a model's figures are split into: attribute and JSON key, and what they go by.
SPLITS = {
    "by_kind": "what the model saw",
    "by_part": "part of the word",
    "by_position": "position in the text",
    "by_frequency": "occurrences in the texts",
}


def figures_dict(record: Any, figures: Iterable[Figure]) -> dict[str, Any]:
    """Figures of a record in JSON, with their intervals.

    >>> from fillmask_ui.evaluation.summary import GroupFigures
    >>> group = GroupFigures("mask", 10, 2, 1.5, None, 0.5, 0.75, 8.0, 2.0)
    >>> figures_dict(group, GROUP_FIGURES)["mean_rank"]
    8.0
    """
    values: dict[str, Any] = {}
    for figure in figures:
        values[figure.key] = figure.value(record)
        if figure.interval_key:
            values[figure.interval_key] = interval_list(figure.interval_of(record))
    return values


def interval_list(interval: Interval | None) -> list[float] | None:
    """An interval in JSON."""
    return None if interval is None else [interval.low, interval.high]
