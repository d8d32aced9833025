"""What an evaluation measures: every choice that shapes its numbers, and their signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.masking import MaskRecipe, generator

CROSS_ENTROPY = "cross-entropy"
PSEUDO_PERPLEXITY = "pseudo-perplexity"
UNIFORM = "uniform"
SUFFIX = "suffix"
METRICS = (CROSS_ENTROPY, PSEUDO_PERPLEXITY, UNIFORM, SUFFIX)

# `text`: masks of a text depend on (seed, id) alone. `collator`: one generator runs through all
# texts, as in the published evaluator.
MASK_STREAMS = ("text", "collator")

# Raised when the same choices give other numbers than before.
PROTOCOL_VERSION = 1


@dataclass(frozen=True)
class EvaluationConfig:
    """Every choice of an evaluation but model and texts.

    Attributes:
        metric: one of `METRICS`.
        recipe: for cross-entropy, what is chosen and how it is shown.
        within_word: for pseudo-perplexity, hide the later sub-tokens of the word too.
        suffix_tokens: for the suffix, how many tokens at the end are hidden.
        seed: of the masks.
        mask_stream: one of `MASK_STREAMS`.
        max_tokens: longer texts are cut at the end; None for the model's own limit.
        batch_tokens: tokens of a padded batch; changes the speed, and the numbers a little: those
            of a dynamically quantized model in the fourth digit, as its activations are scaled
            by batch, others in the last.

    Raises:
        OptionError: for a value outside its range, or an option that the metric does not have.
    """

    metric: str = CROSS_ENTROPY
    recipe: MaskRecipe = field(default_factory=MaskRecipe)
    within_word: bool = False
    suffix_tokens: int = 8
    seed: int = 42
    mask_stream: str = "text"
    max_tokens: int | None = None
    batch_tokens: int = 1024

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise OptionError(unknown("metric", self.metric, METRICS))
        if self.mask_stream not in MASK_STREAMS:
            raise OptionError(unknown("mask stream", self.mask_stream, MASK_STREAMS))
        if self.within_word and self.metric != PSEUDO_PERPLEXITY:
            raise OptionError(
                f"within-word hiding belongs to pseudo-perplexity; the metric was {self.metric}"
            )
        if self.metric != CROSS_ENTROPY and self.recipe != MaskRecipe():
            raise OptionError(
                "mask probability, shares and whole words belong to cross-entropy; the metric was "
                f"{self.metric}, which hides {_HIDES[self.metric]}"
            )
        if self.mask_stream == "collator" and self.metric != CROSS_ENTROPY:
            raise OptionError(
                f"the collator's stream of masks belongs to cross-entropy; the metric was "
                f"{self.metric}"
            )
        for name, least in (("suffix_tokens", 1), ("batch_tokens", 1), ("max_tokens", 3)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise OptionError(
                    f"{name.replace('_', ' ')} must be at least {least}; it was {value}"
                )
        generator(self.seed, 0)

    def resolved(self, *longest: int) -> EvaluationConfig:
        """With `max_tokens` set to what all the models can take.

        Raises:
            OptionError: if more was asked for.
        """
        limit = min(longest)
        if self.max_tokens is not None and self.max_tokens > limit:
            raise OptionError(
                f"max tokens was {self.max_tokens}, but the model takes at most {limit}"
            )
        return self if self.max_tokens is not None else replace(self, max_tokens=limit)

    @property
    def signature(self) -> str:
        """What has to be equal for two figures to be comparable.

        >>> print(EvaluationConfig("pseudo-perplexity", max_tokens=512).signature)
        metric:pseudo-perplexity|within-word:no|max:512|batch:1024|v:1
        """
        parts = [f"metric:{self.metric}"]
        recipe = self.recipe
        if self.metric == CROSS_ENTROPY:
            shares = (recipe.mask_share, recipe.random_share, recipe.unchanged_share)
            parts += [
                f"p:{recipe.probability:g}",
                "shares:" + "/".join(f"{share:g}" for share in shares),
                "unit:" + ("word" if recipe.whole_word else "token"),
                f"stream:{self.mask_stream}",
            ]
        elif self.metric == PSEUDO_PERPLEXITY:
            parts.append("within-word:" + ("yes" if self.within_word else "no"))
        elif self.metric == SUFFIX:
            parts.append(f"suffix:{self.suffix_tokens}")
        if self.metric in (CROSS_ENTROPY, UNIFORM):
            parts.append(f"seed:{self.seed}")
        parts += [
            f"max:{self.max_tokens or 'model'}",
            f"batch:{self.batch_tokens}",
            f"v:{PROTOCOL_VERSION}",
        ]
        return "|".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EvaluationConfig:
        """The inverse of `to_dict`."""
        return cls(**{**values, "recipe": MaskRecipe(**values["recipe"])})


_HIDES = {
    PSEUDO_PERPLEXITY: "each token once",
    UNIFORM: "a share drawn anew for each text",
    SUFFIX: "the tokens at the end",
}
