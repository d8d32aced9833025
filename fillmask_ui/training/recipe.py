"""What a run is asked to do, and what it reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fillmask_ui.errors import OptionError, unknown

OPTIMIZERS = ("adamw", "muon")
PRECISIONS = ("bf16", "fp32")


@dataclass(frozen=True)
class Recipe:
    """Every choice that shapes a run, apart from the text and the initial weights.

    Attributes:
        minutes: length of the run; the learning rate decays to zero at its end.
        steps: length in steps instead; exactly one of the two is given.
        block_tokens: T, tokens a row.
        batch_blocks: B, rows a step.
        mask_share: part of the ordinary tokens that is hidden in training.
        whole_word: whether words are hidden in training, with all their tokens; losses are told
            for tokens hidden singly all the same.
        optimizer: `adamw` or `muon`.
        learning_rate: at the peak.
        warmup: part of the run that is warm-up.
        weight_decay: of the matrices.
        clip: greatest gradient norm.
        precision: `bf16` (autocast) or `fp32`.
        validation_segments: held out of the training text to follow the loss at 15 % masks.
        validation_minutes: between two validations.
        checkpoint_minutes: between two checkpoints.
        seed: of everything random.
        device: torch device.
        compile: whether torch.compile fuses the body.
        blend: whether the end is an average with the initial weights, at the share that is best
            on the validation segments.
    """

    minutes: float | None = None
    steps: int | None = None
    block_tokens: int = 192
    batch_blocks: int = 20
    mask_share: float = 0.2
    whole_word: bool = False
    optimizer: str = "adamw"
    learning_rate: float = 5e-4
    warmup: float = 0.02
    weight_decay: float = 0.01
    clip: float = 1.0
    precision: str = "bf16"
    validation_segments: int = 300
    validation_minutes: float = 10.0
    checkpoint_minutes: float = 10.0
    seed: int = 42
    device: str = "cpu"
    compile: bool = False
    blend: bool = False

    def __post_init__(self) -> None:
        if (self.minutes is None) == (self.steps is None):
            raise OptionError("give either a number of minutes or a number of steps")
        if (self.minutes or self.steps or 0) <= 0:
            raise OptionError(f"a run of {self.minutes or self.steps} is too short; take more")
        if not 0 < self.mask_share < 1:
            raise OptionError(f"mask share {self.mask_share} is outside (0, 1); BERT used 0.15")
        if not 0 <= self.warmup < 1:
            raise OptionError(f"warm-up {self.warmup} is outside [0, 1); it is a part of the run")
        if not 0 < self.learning_rate < 1:
            raise OptionError(f"learning rate {self.learning_rate} is outside (0, 1); try 5e-4")
        if self.batch_blocks < 1:
            raise OptionError(f"a batch of {self.batch_blocks} blocks is empty; take 1 or more")
        if self.precision not in PRECISIONS:
            raise OptionError(unknown("precision", self.precision, PRECISIONS))
        if self.optimizer not in OPTIMIZERS:
            raise OptionError(unknown("optimizer", self.optimizer, OPTIMIZERS))


@dataclass(frozen=True)
class LogRow:
    """One line of the log.

    Attributes:
        step: optimizer steps so far.
        elapsed_seconds: training time so far, over all resumed parts.
        progress: part of the run that is over.
        tokens: seen so far, padding left out.
        epoch: passes over the text so far, a fraction.
        rate: learning rate of the last step.
        train_nll_nats: mean since the last row, at the training share.
        gradient_norm: of the last step, before clipping.
        validation_nll_nats: at 15 %, 80/10/10; None where not measured at this row.
        validation_top1: share of hidden tokens ranked first.
    """

    step: int
    elapsed_seconds: float
    progress: float
    tokens: int
    epoch: float
    rate: float
    train_nll_nats: float
    gradient_norm: float
    validation_nll_nats: float | None = None
    validation_top1: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)
