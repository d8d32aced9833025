"""The choices of iterative unmasking, each checked on its own and against the others."""

from dataclasses import dataclass

from fillmask_ui.errors import OptionError
from fillmask_ui.options import check_options, option

NO_ORDER = "none"
LEFT_TO_RIGHT = "left_to_right"
CONFIDENCES = ("top_prob", "prob_diff", "entropy")
ORDERS = (NO_ORDER, *CONFIDENCES, LEFT_TO_RIGHT)
PIECES = ("any", "fitting")
LEAST_TEMPERATURE = 1e-6  # logits divided by less overflow


@dataclass(frozen=True)
class UnmaskingOptions:
    """How a text is unmasked, whatever the seed; choices that exclude each other are refused.

    >>> UnmaskingOptions(top_k=5, top_p=0.9)
    Traceback (most recent call last):
    fillmask_ui.errors.OptionError: top_k and top_p were both given: choose one of them
    """

    option_panel = "Metric unmasking"

    max_steps: int | None = option(
        None,
        "Most steps; by default one per hidden position. The last step fills the rest.",
        least=1,
        most=10_000,
    )
    order: str = option(
        "top_prob",
        "Which positions are filled first: the most confident by probability (top_prob), by lead "
        "over the second token (prob_diff) or by entropy; left_to_right; or at random (none).",
        choices=ORDERS,
    )
    confidence_temperature: float = option(
        0.0, "Scale of the Gumbel noise added to the confidences; 0 adds none.", least=0
    )
    threshold: float | None = option(
        None,
        "Instead of a fixed number per step, fill the most confident positions while the "
        "uncertainties before them sum to less than this.",
    )
    temperature: float = option(
        0.0,
        "Temperature of the distribution that tokens are drawn from; 0 takes the most "
        "probable token.",
        least=0,
    )
    top_k: int | None = option(None, "Draw among the K most probable tokens.", least=1)
    top_p: float | None = option(
        None, "Draw among the most probable tokens, as few as reach this probability together."
    )
    pieces: str = option(
        "any",
        "any, or fitting: write sub-tokens that continue a word only after a word.",
        choices=PIECES,
    )
    remask: int = option(
        0,
        "After each step but the last, hide this many of the least probable tokens of earlier "
        "steps again.",
        least=0,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if 0 < self.temperature < LEAST_TEMPERATURE:
            raise OptionError(
                f"temperature must be 0, which takes the most probable token, or at least "
                f"{LEAST_TEMPERATURE:g}; it was {self.temperature:g}"
            )
        if self.top_k is not None and self.top_p is not None:
            raise OptionError("top_k and top_p were both given: choose one of them")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise OptionError(f"top p must be above 0 and at most 1; it was {self.top_p:g}")
        if self.threshold is not None and self.threshold <= 0:
            raise OptionError(f"threshold must be above 0; it was {self.threshold:g}")
        if self.threshold is not None and self.order not in CONFIDENCES:
            raise OptionError(
                f"a threshold adds up uncertainties, and the order {self.order!r} has none: "
                f"choose {', '.join(CONFIDENCES)}, or leave the threshold out"
            )

    @property
    def signature(self) -> str:
        chosen = {name: value for name, value in vars(self).items() if value is not None}
        parts = [f"{name.replace('_', '-')}:{value}" for name, value in sorted(chosen.items())]
        return "|".join(parts)


@dataclass(frozen=True)
class UnmaskingConfig(UnmaskingOptions):
    """How a text is unmasked."""

    option_panel = "Filling"

    seed: int = option(42, "Seed of the random draws.", least=0)
