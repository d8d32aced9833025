"""What an evaluation measures: every choice that shapes its numbers, and their signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.metrics import METRICS, Metric, make_metric
from fillmask_ui.masking import check_seed
from fillmask_ui.options import check_options, option

# Raised when the same choices give other numbers. 2: dynamically quantized models are scaled by
# text, no longer by batch.
PROTOCOL = 2


@dataclass(frozen=True, init=False)
class EvaluationConfig:
    """Every choice of an evaluation but model and texts.

    Raises:
        OptionError: for a value out of range, or an option that the metric does not have.

    >>> EvaluationConfig("suffix", suffix_tokens=3, seed=1).metric
    Suffix(suffix_tokens=3)
    """

    option_panel = "Measure"

    # Given by its name and its own options, or as an instance.
    metric: Metric = option(
        "cross-entropy",
        f"{', '.join([*METRICS][:-1])} or {[*METRICS][-1]}.",
        choices=tuple(METRICS),
    )
    seed: int = option(42, "Seed of the masks.")
    max_tokens: int | None = option(
        None, "Cut longer texts; the model's limit by default.", metavar="N", least=3
    )
    # It changes the last digits alone.
    batch_tokens: int | None = option(
        None,
        "Tokens per batch (speed and memory only); 512 by default.",
        metavar="N",
        least=1,
        panel="Engines and batches",
    )

    def __init__(
        self,
        metric: str | Metric = "cross-entropy",
        *,
        seed: int = 42,
        max_tokens: int | None = None,
        batch_tokens: int | None = None,
        **metric_options: Any,
    ) -> None:
        if isinstance(metric, str):
            metric = make_metric(metric, metric_options)
        else:
            metric = replace(metric, **metric_options)
        shared = {"seed": seed, "max_tokens": max_tokens, "batch_tokens": batch_tokens}
        vars(self).update(metric=metric, **shared)
        check_options(self)
        check_seed(seed)

    @classmethod
    def option_owners(cls) -> tuple[type, ...]:
        return (cls, *METRICS.values())

    @property
    def mask_stream(self) -> str:
        """Whether masks depend on the text alone, or on all texts before it."""
        return getattr(self.metric, "mask_stream", "text")

    def resolved(self, *longest: int) -> EvaluationConfig:
        """With `max_tokens` set to what all models take; more is an `OptionError`."""
        limit = min(longest)
        if self.max_tokens is None:
            return replace(self, max_tokens=limit)
        if self.max_tokens > limit:
            raise OptionError(
                f"max tokens was {self.max_tokens}, but the model takes at most {limit}"
            )
        return self

    @property
    def signature(self) -> str:
        """What must be equal for two figures to compare.

        >>> print(EvaluationConfig("pseudo-perplexity", max_tokens=512).signature)
        metric:pseudo-perplexity|within-word:no|max:512|v:2
        """
        parts = [f"metric:{self.metric.name}", *self.metric.signature]
        if self.metric.seeded:
            parts.append(f"seed:{self.seed}")
        parts.append(f"max:{self.max_tokens or 'model'}")
        return "|".join([*parts, f"v:{PROTOCOL}"])

    def to_dict(self) -> dict[str, Any]:
        """Arguments of `__init__`."""
        shared = {name: getattr(self, name) for name in ("seed", "max_tokens", "batch_tokens")}
        return {"metric": self.metric.name, **asdict(self.metric), **shared}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EvaluationConfig:
        defaults: dict[str, Any] = {}
        for metric in METRICS.values():
            defaults |= vars(metric())
        arguments = {
            name: type(defaults[name])(**value) if isinstance(value, Mapping) else value
            for name, value in values.items()
        }
        return cls(**arguments)
