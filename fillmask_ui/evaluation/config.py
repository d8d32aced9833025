"""What an evaluation measures: every choice that shapes its numbers, and their signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.schemes import SCHEMES, CrossEntropy, Scheme, make_scheme
from fillmask_ui.masking import MaskRecipe, generator
from fillmask_ui.options import check_options, option

# Raised when the same choices give other numbers than before.
PROTOCOL_VERSION = 1


@dataclass(frozen=True, init=False)
class EvaluationConfig:
    """Every choice of an evaluation but model and texts.

    Raises:
        OptionError: for a value outside its range, or an option that the metric does not have.

    >>> EvaluationConfig("suffix", suffix_tokens=3, seed=1).scheme
    Suffix(suffix_tokens=3)
    """

    metric: str = option(
        "cross-entropy",
        f"{', '.join([*SCHEMES][:-1])} or {[*SCHEMES][-1]}.",
        choices=tuple(SCHEMES),
    )
    seed: int = option(42, "Of the masks.")
    max_tokens: int | None = option(
        None, "Cut longer texts; the model's limit.", metavar="N", least=3
    )
    # Changes the numbers a little: those of a dynamically quantized model, whose activations are
    # scaled by batch, in the fourth digit, others in the last.
    batch_tokens: int = option(
        1024, "Tokens of a padded batch: speed and memory.", metavar="N", least=1
    )
    scheme: Scheme = field(default_factory=CrossEntropy)  # the metric with its own options

    def __init__(
        self,
        metric: str = "cross-entropy",
        *,
        seed: int = 42,
        max_tokens: int | None = None,
        batch_tokens: int = 1024,
        scheme: Scheme | None = None,
        **own: Any,
    ) -> None:
        values = {"seed": seed, "max_tokens": max_tokens, "batch_tokens": batch_tokens}
        vars(self).update(metric=metric, scheme=scheme or make_scheme(metric, own), **values)
        check_options(self)
        generator(seed, 0)  # refuses a negative one

    @classmethod
    def option_owners(cls) -> tuple[type, ...]:
        """The dataclasses whose options `__init__` takes by name."""
        return (cls, *SCHEMES.values())

    @property
    def mask_stream(self) -> str:
        """Whether masks depend on the text alone, or on all texts before it."""
        return self.scheme.mask_stream if isinstance(self.scheme, CrossEntropy) else "text"

    def resolved(self, *longest: int) -> EvaluationConfig:
        """With `max_tokens` set to what all the models can take.

        Raises:
            OptionError: if more was asked for.
        """
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
        """What has to be equal for two figures to be comparable.

        >>> print(EvaluationConfig("pseudo-perplexity", max_tokens=512).signature)
        metric:pseudo-perplexity|within-word:no|max:512|batch:1024|v:1
        """
        parts = [f"metric:{self.metric}", *self.scheme.signature]
        if self.scheme.seeded:
            parts.append(f"seed:{self.seed}")
        parts += [f"max:{self.max_tokens or 'model'}", f"batch:{self.batch_tokens}"]
        return "|".join([*parts, f"v:{PROTOCOL_VERSION}"])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values: `__init__` by name.

        The options of the other metrics are there with their defaults, as they always were.
        """
        values: dict[str, Any] = {"metric": self.metric}
        for scheme in (*(known() for known in SCHEMES.values()), self.scheme):
            values |= asdict(scheme)
        for name in ("seed", "max_tokens", "batch_tokens"):
            values[name] = getattr(self, name)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EvaluationConfig:
        """The inverse of `to_dict`."""
        recipe = {"recipe": MaskRecipe(**values["recipe"])} if "recipe" in values else {}
        return cls(**{**values, **recipe})
